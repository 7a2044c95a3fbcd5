"""The report in a real browser: it opens, loads nothing, shows every figure, fits the window, and prints."""

import json
import re
import shutil
import subprocess
from html import unescape
from importlib.resources import files
from pathlib import Path

import pytest

from brainfed.reporting.outcome.page import write_outcome
from support.reports.report_project import draw_project, subject_ids, write_page
from support.sites.study_outcome import SITES, outline_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip
LISTEN = """<script>
window.problems = [];
addEventListener("error", (event) => problems.push(String(event.message || event.target.outerHTML)), true);
for (const level of ["error", "warn"]) console[level] = (...words) => problems.push(words.join(" "));
</script>"""
MEASURE = """<script>
const alternatives = new Map([...document.querySelectorAll(".drawing")]
  .map((frame) => [frame, frame.querySelector("svg").getAttribute("aria-label")]));
addEventListener("load", () => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const folded = all("details.experiment").filter((part) => !part.open).length;
  all("details.experiment, details.fold, details.part").forEach((part) => { part.open = true; });
  const seen = {
    problems,
    folded,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name)
      .filter((name) => !name.startsWith("data:")),
    images: all(".drawing").map((frame) => ({ alt: alternatives.get(frame), name: frame.dataset.figure,
      shown: frame.clientWidth * frame.clientHeight, width: frame.querySelector("svg").clientWidth,
      words: frame.textContent.trim().length })),
    charts: all("script.chart").length,
    drawn: all(".drawing svg.marks").length,
    buttons: all(".downloads button").map((button) => button.getAttribute("aria-label")),
    broken: all("a[href^='#']").map((link) => link.hash.slice(1)).filter((id) => !document.getElementById(id)),
    twice: all("[id]").map((node) => node.id).filter((id, index, ids) => ids.indexOf(id) !== index),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    width: innerWidth,
    text: document.body.innerText,
  };
  const head = document.querySelector("table.sortable thead tr:last-child th:nth-child(2)");
  head.querySelector("button").click();
  seen.sorted = [...head.closest("table").tBodies[0].rows].map((row) => Number(row.cells[1].dataset.value));
  document.documentElement.setAttribute("data-seen", JSON.stringify(seen));
});
</script>"""

AXE_CORE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8").replace("</script>", "<\\/script>")
AXE = """<script>
addEventListener("load", () => axe.run(document, {resultTypes: ["violations"], ...OPTIONS}).then(({violations}) => {
  const found = violations.map(({id, impact, nodes}) => [id, impact, nodes.length, nodes[0].html.slice(0, 200)]);
  document.documentElement.setAttribute("data-axe", JSON.stringify(found));
}));
</script>"""
EVERYTHING: dict[str, object] = {}
OF_LAYOUT = {"rules": {"color-contrast": {"enabled": False}}}
OF_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""Rules of axe: contrasts take most of its time, and are checked at one width in each colour scheme."""
USE = """<script>
const saved = [];
URL.createObjectURL = (content) => { saved.push(content); return "data:,"; };
HTMLAnchorElement.prototype.click = function () {};
const wait = (check) => new Promise((done) => {
  const timer = setInterval(() => { if (check()) { clearInterval(timer); done(); } }, 20);
});
const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
addEventListener("load", async () => {
  location.hash = all("section.secondary").at(-1).id;
  await wait(() => all("section.secondary > details.experiment").at(-1).open);
  all("details.experiment, details.fold, details.part").forEach((part) => { part.open = true; });
  await wait(() => all("script.chart").every((held) => held.previousElementSibling.querySelector("svg.marks")));
  const used = { charts: all("script.chart").length, roles: all(".drawing [role^='graphics']").length };
  const results = document.querySelector("[id^='results-']");
  const names = (text) => all(".drawing", results).map((frame) => frame.textContent.includes(text));
  used.before = names("LocalGCN").filter(Boolean).length;
  const box = results.querySelector("details.methods input[value='localgcn']");
  used.rows = all("tbody tr:not([hidden])", results.querySelector("table.sortable")).length;
  box.click();
  await wait(() => names("LocalGCN").filter(Boolean).length < used.before);
  await new Promise((done) => setTimeout(done, 200));
  used.after = names("LocalGCN").filter(Boolean).length;
  used.left = all("tbody tr:not([hidden])", results.querySelector("table.sortable")).length;
  used.count = results.querySelector("details.methods .count").textContent;
  const scores = results.querySelector("table.sortable").closest(".scroll").nextElementSibling;
  scores.querySelector("button").click();
  used.table = await saved.pop().text();
  const [svg, png] = all(".downloads button", results.querySelector("figure"));
  svg.click();
  used.svg = await saved.pop().text();
  png.click();
  await wait(() => saved.length);
  used.png = saved.pop().size;
  const place = results.querySelector("[data-figure='forest'] svg");
  const mark = place.querySelector(".mark-symbol path");
  const { x, y } = mark.getBoundingClientRect();
  const options = { bubbles: true, clientX: x + 2, clientY: y + 2 };
  for (const kind of ["pointerover", "pointermove", "mouseover", "mousemove"]) {
    mark.dispatchEvent(new (kind.startsWith("p") ? PointerEvent : MouseEvent)(kind, options));
  }
  await new Promise((done) => setTimeout(done, 100));
  used.tooltip = document.querySelector("#vg-tooltip-element")?.innerText ?? "";
  document.documentElement.setAttribute("data-used", JSON.stringify(used));
});
</script>"""
WAY = """<script>
addEventListener("load", () => {
  const links = [...document.querySelectorAll("#cohort a[href^='#subject-']")];
  const link = links.find((one) => one.textContent === "zq-0003");
  link.click();
  setTimeout(() => {
    const person = document.getElementById(link.hash.slice(1));
    const texts = (selector) => [...person.querySelectorAll(selector)].map((node) => node.textContent.trim());
    document.documentElement.setAttribute("data-way", JSON.stringify({
      subject: link.textContent,
      open: person.open && person.closest("details.fold").open,
      tables: texts("caption"), methods: texts("th .named"),
      pictures: [...person.querySelectorAll("img")].map((picture) => picture.naturalWidth),
    }));
  }, 500);
});
</script>"""
CAPTIONS = """<script>
addEventListener("load", () => document.documentElement.setAttribute("data-bare", JSON.stringify(
  [...document.querySelectorAll("table")].filter((table) => !table.caption || !table.querySelector("th[scope]"))
    .map((table) => table.outerHTML.slice(0, 200)))));
</script>"""

DRAWN = """<script>
addEventListener("load", () => {
  const timer = setInterval(() => {
    const chart = document.querySelector(".drawing svg.marks");
    if (!chart) return;
    clearInterval(timer);
    const words = [...chart.querySelectorAll("text")].map((text) => text.textContent);
    document.documentElement.setAttribute("data-drawn", JSON.stringify({problems, words}));
  }, 20);
});
</script>"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a chromium on PATH (apt-get install chromium)"),
]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """A project of many sites, and its subjects one by one."""
    folder = tmp_path_factory.mktemp("project")
    draw_project(folder, show_subjects=True, sites=14)
    return folder


@pytest.fixture(scope="module")
def report(drawn):
    return write_page(drawn, show_subjects=False)


@pytest.fixture(scope="module")
def asked(drawn):
    return write_page(drawn, show_subjects=True)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The page of a study of three sites, one of which tests no controls."""
    folder = tmp_path_factory.mktemp("outcome")
    page = folder / "outcome.html"
    write_outcome(outline_of(folder, {**SITES, "madrid": (0, 22)}), page)
    return page


def chromium(profile, *arguments):
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def look(report, tmp_path, width):
    """What a window of this width shows of the report, measured by a script inside it."""
    return measured(report, tmp_path, width, MEASURE, "data-seen")


def measured(report, tmp_path, width, script, attribute, *flags, height=900):
    """What a script at the end of the page leaves in an attribute of its root."""
    page = report.read_text(encoding="utf-8")
    before, _, after = page.rpartition("</body>")
    page = before.replace("<head>", f"<head>{LISTEN}", 1) + f"{script}</body>{after}"
    instrumented = tmp_path / "instrumented.html"
    instrumented.write_text(page, encoding="utf-8")
    arguments = (
        f"--window-size={width},{height}",
        "--hide-scrollbars",
        "--virtual-time-budget=30000",
        "--dump-dom",
        *flags,
    )
    rendered = chromium(tmp_path / "profile", *arguments, instrumented.as_uri())
    return json.loads(unescape(re.search(rf'{attribute}="([^"]*)"', rendered).group(1)))


PATIENT = "--virtual-time-budget=300000"
DARK = "--blink-settings=preferredColorScheme=0"


def barriers(page, tmp_path, width, options, *flags):
    """The violations that axe finds with these options."""
    script = AXE.replace("OPTIONS", json.dumps(options))
    return measured(page, tmp_path, width, f"<script>{AXE_CORE}</script>{script}", "data-axe", *flags)


@pytest.mark.parametrize(
    ("width", "options", "flags"),
    [
        pytest.param(1280, EVERYTHING, (), marks=pytest.mark.full("All rules on the whole page take twenty seconds.")),
        (500, OF_LAYOUT, ()),
        pytest.param(500, OF_COLOURS, (DARK,), marks=pytest.mark.full("Each page in a browser takes five seconds.")),
    ],
)
def test_axe_finds_no_barrier(report, tmp_path, width, options, flags):
    assert barriers(report, tmp_path, width, options, *flags) == []


@pytest.mark.parametrize(
    ("options", "found"),
    [(EVERYTHING, {"color-contrast", "image-alt"}), (OF_LAYOUT, {"image-alt"}), (OF_COLOURS, {"color-contrast"})],
)
def test_axe_finds_a_barrier(tmp_path, options, found):
    page = tmp_path / "grey.html"
    body = '<body style="background: #fff; color: #ddd"><p>hardly seen</p><img src="data:,"></body>'
    page.write_text(f"<html><head></head>{body}</html>")
    rules = {rule for rule, *_ in barriers(page, tmp_path, 1280, options)}
    assert rules & {"color-contrast", "image-alt"} == found


def test_every_table_has_a_caption_and_heads_with_a_scope(report, tmp_path):
    assert measured(report, tmp_path, 1280, CAPTIONS, "data-bare") == []


@pytest.mark.parametrize(
    ("width", "flags"),
    [
        (500, ()),
        *(
            pytest.param(*case, marks=pytest.mark.full("Each page in a browser takes five seconds."))
            for case in ((1280, ()), (1280, (DARK,)), (500, (DARK,)))
        ),
    ],
)
def test_the_outcome_of_a_study_opens_without_errors_requests_overflow_or_barrier(outcome, tmp_path, width, flags):
    seen = measured(outcome, tmp_path, width, MEASURE, "data-seen", *flags, height=2700)
    assert (seen["width"], seen["charts"]) == (width, 1)
    assert [seen[name] for name in ("problems", "requests", "broken", "twice")] == [[], [], [], []]
    assert seen["overflow"] == 0
    assert seen["sorted"] == sorted(seen["sorted"], reverse=True)
    assert barriers(outcome, tmp_path, width, EVERYTHING, *flags) == []
    assert measured(outcome, tmp_path, width, CAPTIONS, "data-bare", *flags) == []
    drawn = measured(outcome, tmp_path, width, DRAWN, "data-drawn", PATIENT, *flags, height=2700)
    assert drawn["problems"] == [] and {"berlin", "oslo", "FedTangent"} <= set(drawn["words"])


@pytest.mark.parametrize("width", [1280, 800, 500])
def test_the_report_opens_without_errors_requests_or_overflow(report, tmp_path, width):
    seen = look(report, tmp_path, width)
    assert seen["width"] == width
    assert seen["problems"] == []
    assert seen["requests"] == []
    assert seen["overflow"] == 0
    assert seen["broken"] == []
    assert seen["twice"] == []


def test_every_figure_has_a_size_and_words(report, tmp_path):
    seen = look(report, tmp_path, 1280)
    images = seen["images"]
    assert len(images) == 36
    for image in images:
        assert len(image["alt"]) > 20
        assert image["shown"] > 10_000
        assert image["words"] > 10
    assert len({image["alt"] for image in images}) == 36
    assert seen["folded"] == 5


def test_wide_figures_stay_readable_in_a_narrow_window_and_the_flow_chart_fits(report, tmp_path):
    images = look(report, tmp_path, 500)["images"]
    widths = {image["alt"]: image["width"] for image in images}
    headline, flow = images[0]["alt"], next(alt for alt in widths if alt.startswith("From the rows"))
    assert widths[headline] > 600
    assert 400 < widths[flow] < 500
    images = look(report, tmp_path, 1280)["images"]
    assert [500 < image["width"] < 600 for image in images if image["alt"] == flow] == [True]


def test_a_click_sorts_a_table(report, tmp_path):
    values = look(report, tmp_path, 1280)["sorted"]
    assert len(values) == 9
    assert values == sorted(values, reverse=True)


def test_subject_ids_are_shown_only_on_request(report, asked, tmp_path):
    assert not any(subject in report.read_text(encoding="utf-8") for subject in subject_ids())
    seen = look(asked, tmp_path, 1280)
    assert "zq-0003" in seen["text"]
    assert "zq-0005" in asked.read_text(encoding="utf-8")


def test_an_issue_leads_to_the_way_of_its_subject(asked, tmp_path):
    """A click on an id among the issues opens the subject: scan, connectivity and the scores of methods in front."""
    way = measured(asked, tmp_path, 1280, WAY, "data-way")
    assert way["subject"] == "zq-0003"
    assert way["open"]
    assert way["tables"] == ["Scan of zq-0003", "Scores of zq-0003"]
    assert way["methods"] == ["FedNI", "Ridge (central)", "LocalGCN"]
    assert len(way["pictures"]) == 2 and all(width > 0 for width in way["pictures"])


def test_the_report_prints_on_at_most_eight_pages(report, tmp_path):
    printed = tmp_path / "report.pdf"
    chromium(tmp_path / "profile", f"--print-to-pdf={printed}", "--no-pdf-header-footer", Path(report).as_uri())
    content = printed.read_bytes()
    assert content.startswith(b"%PDF")
    assert 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 8


def test_charts_answer_a_reader(report, tmp_path):
    """Every chart is drawn anew; the filter takes a method out of charts and tables; tooltips and downloads work."""
    used = measured(report, tmp_path, 1280, USE, "data-used", PATIENT, height=30_000)
    assert used["charts"] == 21
    assert used["roles"] == 0
    assert used["after"] < used["before"]
    assert used["left"] == used["rows"] - 1
    assert used["count"] == "8 of 9"
    header, *rows = used["table"].splitlines()
    assert header.split("\t")[:2] == ["method", "accuracy"]
    assert len(rows) == 8
    assert not any(row.startswith("LocalGCN") for row in rows)
    assert used["svg"].startswith("<svg")
    assert used["png"] > 5_000
    assert "95 % interval" in used["tooltip"]
