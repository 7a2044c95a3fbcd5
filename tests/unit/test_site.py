"""The documents build as a site without a warning: no link leads nowhere, no page is left out of the contents."""

import re
import runpy
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from latex2mathml.converter import convert

REPOSITORY = Path(__file__).resolve().parents[2]
BUILT = pytest.mark.full("All pages take six seconds to build; their links and fences are checked without it.")


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", "docs", ".", str(folder)]
    built = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@BUILT
def test_the_site_loads_nothing(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((REPOSITORY / "docs").rglob("*.md")))
    for page in pages:
        content = page.read_text(encoding="utf-8")
        assert 'src="http' not in content and 'rel="stylesheet" href="http' not in content, page
        assert not re.search(r"<script[^>]*mathjax", content, re.IGNORECASE), page


@BUILT
def test_every_equation_is_mathml(site):
    shown = 0
    for source in sorted((REPOSITORY / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", source.read_text(encoding="utf-8"), flags=re.DOTALL)
        blocks, inline = len(re.findall(r"\$\$.+?\$\$", text)), len(re.findall(r"(?<!\$)\$[^$]+\$(?!\$)", text))
        page = (site / source.relative_to(REPOSITORY).with_suffix(".html")).read_text(encoding="utf-8")
        assert page.count('display="block"') == blocks, source
        assert page.count('display="inline"') == inline, source
        shown += blocks
    assert shown > 20


@pytest.mark.parametrize("equation", [r"\undefined{x}", r"\begin{aligned} a &= b \end{aligned}"])
def test_an_equation_that_is_not_understood_is_found(equation):
    unread = runpy.run_path(str(REPOSITORY / "docs" / "conf.py"))["UNREAD"]
    assert unread.search(convert(equation))
    assert not unread.search(convert(r"\frac{1}{n} \sum_i \log\, S_i < \varepsilon"))


FLOWCHART = runpy.run_path(str(REPOSITORY / "docs" / "flowchart.py"))
SMALL = """flowchart BT
  base["base: files & dates"]
  middle["middle: what stands between"] --> base
  top --> middle
  top --> base
"""


def test_a_box_stands_below_all_boxes_that_its_arrows_lead_to():
    divided, places = FLOWCHART["place_boxes"](FLOWCHART["read_flowchart"](SMALL))
    assert {name: places[name][1] for name in ("base", "middle", "top")} == {"base": 0, "middle": 1, "top": 2}
    (passed,) = [node for node in divided if not isinstance(node, str)]
    assert places[passed][1] == 1
    assert abs(places[passed][0] - places["middle"][0]) > FLOWCHART["WIDTH"] / 2
    assert set(divided.successors(passed)) == {"base"} and set(divided.predecessors(passed)) == {"top"}


def test_a_flowchart_is_drawn_with_its_words_and_arrows():
    drawn = FLOWCHART["draw_flowchart"](FLOWCHART["read_flowchart"](SMALL))
    root = ElementTree.fromstring(drawn)
    words = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert words == ["base", "files & dates", "middle", "what stands between", "top"]
    assert drawn.count("marker-end") == 3
    assert root.get("aria-label") == "Arrows: middle to base; top to middle; top to base"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("flowchart TD\n  a --> b", "expected 'flowchart BT' in the first line, found 'flowchart TD'"),
        ("flowchart BT\n  a -.-> b", "expected name\\[\"title\"\\] or name --> name, found 'a -.-> b'"),
        ("flowchart BT\n  a --> b\n  b --> a", "expected arrows without a circle"),
    ],
)
def test_a_flowchart_that_is_not_understood_is_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        FLOWCHART["read_flowchart"](text)


@BUILT
def test_the_packages_are_drawn(site):
    text = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    (fence,) = re.findall(r"```mermaid\n(.*?)```", text, re.DOTALL)
    page = (site / "ARCHITECTURE.html").read_text(encoding="utf-8")
    boxes = FLOWCHART["read_flowchart"](fence).nodes
    assert page.count('rx="4"/>') == len(boxes) > 10
    assert all(f'class="name">{name}<' in page for name in boxes)
