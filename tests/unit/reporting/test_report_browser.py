"""The report in a real browser: it opens, loads nothing, shows every figure, fits the window, and prints."""

import json
import re
from importlib.resources import files

import pytest

from brainfed.sites._outcome_page import render_outcome
from support.reports.browser import CHROMIUM, Browser
from support.reports.report_project import shared_project, subject_ids, write_page
from support.sites.study_outcome import SITES, outline_of

MEASURE = """(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const folded = all("details.experiment").filter((part) => !part.open).length;
  all("details.experiment, details.fold, details.part").forEach((part) => { part.open = true; });
  const seen = {
    problems,
    folded,
    requests: performance.getEntriesByType("resource").map((entry) => entry.name)
      .filter((name) => !name.startsWith("data:")),
    images: all(".drawing").map((frame) => ({ alt: frame.querySelector("[aria-label]").getAttribute("aria-label"),
      shown: frame.clientWidth * frame.clientHeight, width: frame.querySelector("svg").clientWidth,
      words: frame.textContent.trim().length })),
    charts: all("script.chart").length,
    broken: all("a[href^='#']").map((link) => link.hash.slice(1)).filter((id) => !document.getElementById(id)),
    twice: all("[id]").map((node) => node.id).filter((id, index, ids) => ids.indexOf(id) !== index),
    bare: all("table").filter((table) => !table.caption || !table.querySelector("th[scope]"))
      .map((table) => table.outerHTML.slice(0, 200)),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    width: innerWidth,
    text: document.body.innerText,
  };
  const head = document.querySelector("table.sortable thead tr:last-child th:nth-child(2)");
  head.querySelector("button").click();
  seen.sorted = [...head.closest("table").tBodies[0].rows].map((row) => Number(row.cells[1].dataset.value));
  return seen;
})()"""

AXE_CORE = (files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
AXE = """axe.run(document, {resultTypes: ["violations"], ...OPTIONS}).then(({violations}) =>
  violations.map(({id, impact, nodes}) => [id, impact, nodes.length, nodes[0].html.slice(0, 200)]))"""
EVERYTHING: dict[str, object] = {}
OF_LAYOUT = {"rules": {"color-contrast": {"enabled": False}}}
OF_COLOURS = {"runOnly": ["color-contrast", "link-in-text-block"]}
"""Rules of axe: contrasts take most of its time, and are checked at one width in each colour scheme."""
USE = """(async () => {
  const saved = [];
  URL.createObjectURL = (content) => { saved.push(content); return "data:,"; };
  HTMLAnchorElement.prototype.click = function () {};
  const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];
  location.hash = all("section.secondary").at(-1).id;
  await wait(() => all("section.secondary > details.experiment").at(-1).open);
  all("details.experiment, details.fold, details.part").forEach((part) => { part.open = true; });
  await wait(() => all("script.chart").every((held) => held.previousElementSibling.querySelector("svg.marks")));
  const used = { charts: all("script.chart").length, roles: all(".drawing [role^='graphics']").length };
  const results = document.querySelector("[id^='results-']");
  const named = () => all(".drawing", results).filter((frame) => frame.textContent.includes("LocalGCN")).length;
  const rows = () => all("tbody tr:not([hidden])", results.querySelector("table.sortable")).length;
  used.before = named();
  used.rows = rows();
  results.querySelector("details.methods input[value='localgcn']").click();
  await wait(() => named() < used.before && rows() < used.rows);
  used.after = named();
  used.left = rows();
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
  const tooltip = () => document.querySelector("#vg-tooltip-element")?.innerText ?? "";
  await wait(tooltip);
  return { ...used, tooltip: tooltip() };
})()"""
WAY = """(async () => {
  const links = [...document.querySelectorAll("#cohort a[href^='#subject-']")];
  const link = links.find((one) => one.textContent === "zq-0003");
  link.click();
  const person = document.getElementById(link.hash.slice(1));
  const pictures = () => [...person.querySelectorAll("img")].map((picture) => picture.naturalWidth);
  await wait(() => person.open && pictures().every((width) => width));
  const texts = (selector) => [...person.querySelectorAll(selector)].map((node) => node.textContent.trim());
  return {
    subject: link.textContent, open: person.open && person.closest("details.fold").open,
    tables: texts("caption"), methods: texts("th .named"), pictures: pictures(),
  };
})()"""
DRAWN = """(async () => {
  const words = () => [...document.querySelectorAll(".drawing svg.marks text")].map((text) => text.textContent);
  await wait(() => words().length);
  return { problems, words: words() };
})()"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="needs a chromium on PATH (apt-get install chromium)"),
]
SLOW = pytest.mark.full("The same page in another colour scheme or width takes seconds.")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_page(shared_project(), tmp_path_factory.mktemp("page") / "report.html")


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The report that shows its subjects one by one."""
    return write_page(shared_project(), tmp_path_factory.mktemp("page") / "asked.html", show_subjects=True)


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """The page of a study of three sites, one of which tests no controls."""
    folder = tmp_path_factory.mktemp("outcome")
    page = folder / "outcome.html"
    page.write_text(render_outcome(outline_of(folder, {**SITES, "madrid": (0, 22)})), encoding="utf-8")
    return page


@pytest.fixture(scope="module")
def seen(browser, report):
    """Width -> what a window of it shows of the report's own figures, all of it opened and a table sorted."""
    found = {}
    for width in (1280, 800, 500):
        with browser.page(report, width, still=True) as page:
            found[width] = page.value(MEASURE)
    return found


def barriers(page, options):
    """The violations that axe finds with these options."""
    page.value(f"{AXE_CORE}; 0")
    return page.value(AXE.replace("OPTIONS", json.dumps(options)))


@pytest.mark.parametrize(
    ("width", "options", "dark"),
    [
        pytest.param(1280, EVERYTHING, False, marks=SLOW),
        (500, OF_LAYOUT, False),
        pytest.param(500, OF_COLOURS, True, marks=SLOW),
    ],
)
def test_axe_finds_no_barrier(browser, report, width, options, dark):
    """All parts are open: axe takes those of a closed one to lie behind the rest of the page."""
    with browser.page(report, width, dark=dark, still=True) as page:
        page.value('document.querySelectorAll("details").forEach((part) => { part.open = true; })')
        assert barriers(page, options) == []


def test_axe_finds_a_barrier(browser, tmp_path):
    grey = tmp_path / "grey.html"
    body = '<body style="background: #fff; color: #ddd"><p>hardly seen</p><img src="data:,"></body>'
    grey.write_text(f"<html><head></head>{body}</html>")
    with browser.page(grey, 1280) as page:
        for options, expected in (
            (EVERYTHING, {"color-contrast", "image-alt"}),
            (OF_LAYOUT, {"image-alt"}),
            (OF_COLOURS, {"color-contrast"}),
        ):
            rules = {rule for rule, *_ in barriers(page, options)}
            assert rules & {"color-contrast", "image-alt"} == expected


@pytest.mark.parametrize(
    ("width", "dark"),
    [(500, False), *(pytest.param(*case, marks=SLOW) for case in ((1280, False), (1280, True), (500, True)))],
)
def test_the_outcome_of_a_study_opens_without_errors_requests_overflow_or_barrier(browser, outcome, width, dark):
    with browser.page(outcome, width, 2700, dark=dark) as page:
        drawn = page.value(DRAWN)
        assert barriers(page, EVERYTHING) == []
        seen = page.value(MEASURE)
    assert drawn["problems"] == [] and {"berlin", "oslo", "FedTangent"} <= set(drawn["words"])
    assert (seen["width"], seen["charts"], seen["overflow"]) == (width, 1, 0)
    assert [seen[name] for name in ("problems", "requests", "broken", "twice", "bare")] == [[]] * 5
    assert seen["sorted"] == sorted(seen["sorted"], reverse=True)


@pytest.mark.parametrize("width", [1280, 800, 500])
def test_the_report_opens_without_errors_requests_or_overflow_and_its_tables_have_captions(seen, width):
    shown = seen[width]
    assert (shown["width"], shown["overflow"]) == (width, 0)
    assert [shown[name] for name in ("problems", "requests", "broken", "twice", "bare")] == [[]] * 5


def test_every_figure_has_a_size_and_words(seen):
    images = seen[1280]["images"]
    assert len(images) == 36
    for image in images:
        assert len(image["alt"]) > 20 and image["shown"] > 10_000 and image["words"] > 10
    assert (len({image["alt"] for image in images}), seen[1280]["folded"]) == (36, 5)


def test_wide_figures_stay_readable_in_a_narrow_window_and_the_flow_chart_fits(seen):
    images = seen[500]["images"]
    widths = {image["alt"]: image["width"] for image in images}
    headline, flow = images[0]["alt"], next(alt for alt in widths if alt.startswith("From the rows"))
    assert widths[headline] > 600 and 340 < widths[flow] < 400
    assert [340 < image["width"] < 400 for image in seen[1280]["images"] if image["alt"] == flow] == [True]


def test_a_click_sorts_a_table(seen):
    values = seen[1280]["sorted"]
    assert (len(values), values) == (9, sorted(values, reverse=True))


def test_subject_ids_are_shown_only_on_request_and_an_issue_leads_to_the_way_of_its_subject(browser, report, asked):
    """A click on an id among the issues opens the subject: scan, connectivity and the scores of methods in front."""
    assert not any(subject in report.read_text(encoding="utf-8") for subject in subject_ids())
    assert "zq-0005" in asked.read_text(encoding="utf-8")
    with browser.page(asked, 1280) as page:
        way = page.value(WAY)
        assert "zq-0003" in page.value(MEASURE)["text"]
    assert way["subject"] == "zq-0003" and way["open"]
    assert way["tables"] == ["Scan of zq-0003", "Scores of zq-0003"]
    assert way["methods"] == ["FedNI", "Ridge (central)", "LocalGCN"]
    assert len(way["pictures"]) == 2 and all(width > 0 for width in way["pictures"])


def test_the_report_prints_on_at_most_eight_pages(browser, report):
    with browser.page(report, 1280) as page:
        content = page.printed()
    assert content.startswith(b"%PDF") and 3 <= len(re.findall(rb"/Type\s*/Page\b", content)) <= 8


def test_charts_answer_a_reader(browser, report):
    """Every chart is drawn anew; the filter takes a method out of charts and tables; tooltips and downloads work."""
    with browser.page(report, 1280, 40_000) as page:
        used = page.value(USE)
    assert used["charts"] == 33 and used["roles"] == 0 and used["after"] < used["before"]
    assert (used["left"], used["count"]) == (used["rows"] - 1, "8 of 9")
    header, *rows = used["table"].splitlines()
    assert (header.split("\t")[:2], len(rows)) == (["method", "accuracy"], 8)
    assert not any(row.startswith("LocalGCN") for row in rows) and used["svg"].startswith("<svg")
    assert used["png"] > 5_000 and "95 % interval" in used["tooltip"]
