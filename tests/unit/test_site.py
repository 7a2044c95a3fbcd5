"""The documents build as a site without a warning: no link leads nowhere, no page is left out of the contents."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

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
