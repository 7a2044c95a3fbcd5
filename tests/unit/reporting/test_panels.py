"""Panels of the page: a family brings its own, and the report names no method; the line on the setting."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jinja2 import DictLoader

from brainfed import reporting
from brainfed.methods import METHODS
from brainfed.papers import PAPERS
from brainfed.reporting import Citation, Cited, Paper, read_outline
from brainfed.reporting._document import render
from brainfed.reporting._pictures import read_captions
from brainfed.reporting._sections import experiment_section
from brainfed.reporting.panels import GENERIC, Panel, Place
from brainfed.runtime import read_table, write_arrays, write_table
from support.reports.report_project import CAPTIONS, page_of, read

SOURCES = sorted(file for file in Path(reporting.__path__[0]).rglob("*") if file.suffix in (".py", ".j2"))
ALSO_A_FIGURE = {"motion"}
"""Methods whose name is also that of a figure of the cohort."""


def toy(**changes):
    """A family whose panel counts the variants of a method, and applies where there is one."""

    def count(known):
        return sum(variant.method == "localgcn" for variant in known.outline.variants)

    panel = Panel("toy", Place.BEFORE_SCORES, count, "toy/count.html.j2")
    template = "<h4>A toy</h4>\n<p>{{ content }} local in {{ experiment.outline.title }}; {{ parts.name(variant) }}</p>"
    template = template.replace("variant", "experiment.outline.variants[0]")
    work = Citation("Doe J (2026). A toy of a method. Journal of Toys 1, 2\u20133.")
    own = Paper("toy", DictLoader({"count.html.j2": template}), (panel,), (Cited((work,), frozenset({"localgcn"})),))
    return replace(own, **changes)


def test_the_report_names_no_method():
    names = set(METHODS) - ALSO_A_FIGURE
    assert len(names) > 30
    quoted = re.compile(rf"[\"']({'|'.join(map(re.escape, sorted(names)))})[\"']")
    found = {file.name: quoted.findall(file.read_text(encoding="utf-8")) for file in SOURCES}
    assert len(found) > 60 and {name: methods for name, methods in found.items() if methods} == {}


def test_a_new_family_has_its_panel_and_its_citation_on_the_page(outline):
    page = render(read_outline(outline), CAPTIONS, [toy()])
    results = page[page.index('<section id="results">') : page.index('<section id="federation">')]
    assert results.count("<h4>A toy</h4>") == 1
    assert results.index("<p>1 local in All methods; <span") < results.index("<h4>All scores</h4>")
    assert "A toy of a method." in page
    outline["cohorts"][0]["experiments"][0]["variants"] = [
        variant for variant in outline["cohorts"][0]["experiments"][0]["variants"] if variant["method"] != "localgcn"
    ]
    without = render(read_outline(outline), CAPTIONS, [toy()])
    assert "A toy" not in without


def test_what_changed_nothing_is_said_beside_each_number(outline, page, tmp_path):
    """Scores, tests and gains of a method with ComBat that compared no two sites."""
    sentence = "ComBat changed nothing for FedGCN: no institution has two sites"
    assert sentence not in page
    variants = outline["cohorts"][0]["experiments"][0]["variants"]
    (method,) = [one for one in variants if one["name"] == "fedgcn"]
    write_arrays(tmp_path / "features.safetensors", {"features": np.zeros((1, 1))}, {"harmonised": {"one": []}})
    method["feature_files"] = [str(tmp_path / "features.safetensors")]
    method["stages"] = {**method["stages"], "features": {**method["stages"]["features"], "harmonise": "combat"}}
    assert page_of(outline).count(sentence) == 3


def test_a_page_without_families_has_the_parts_of_any_method(outline, page):
    bare = render(read_outline(outline), CAPTIONS, [])
    for title in ("All scores", "Right and wrong predictions", "What crosses between institutions", "Cost of every"):
        assert title in bare
    for title in ("Beside the paper", "What the new nodes do", "is shown beside the methods that its paper"):
        assert title in page and title not in bare


def test_a_note_on_privacy_is_printed_once_a_page(outline):
    second = {**outline["cohorts"][0]["experiments"][0], "name": "again", "title": "Again"}
    outline["cohorts"][0]["experiments"].append(second)
    assert page_of(outline).count("FedNI and FedSage+ have the same setting of noise") == 1


def test_what_stands_beside_a_method_is_declared_by_its_family(outline):
    page = render(read_outline(outline, {"localgcn": ("fedgcn", "absent")}), CAPTIONS, [])
    assert "LocalGCN is shown beside the methods that its paper compares it with." in page
    assert re.search(r"LocalGCN, with an AUC of 0\.\d+ \(.*?\), differs by .*? from FedGCN\.", page)


def test_panels_have_names_of_their_own():
    names = [panel.name for panel in (*GENERIC, *(panel for paper in PAPERS for panel in paper.panels))]
    assert len(names) == len(set(names)) > 20


WHOLE = "4-fold cross-validation; 2 repeats (8 test folds)"


@pytest.mark.parametrize(
    ("drawn", "one", "two"),
    [
        ("random", "1 institution drawn at random", "2 institutions drawn at random"),
        ("sites", "1 institution, one a site", "2 institutions, one a site"),
        ("site_groups", "1 institution, a group of sites", "2 institutions, groups of sites"),
        (
            "consecutive",
            "1 institution of consecutive subjects, the rest at random",
            "2 institutions of consecutive subjects, the rest at random",
        ),
    ],
)
def test_one_institution_is_singular(drawn, one, two, outline, experiment, tmp_path):
    experiment["split"] = {**experiment["split"], "institutions": drawn}
    assert setting(outline) == f"{two}; {WHOLE}"
    for number, path in enumerate(experiment["splits"]):
        alone = read_table(path, ["subject", "institution", "fold"]).assign(institution="institution-1")
        experiment["splits"][number] = str(tmp_path / f"split-{number}.parquet")
        write_table(experiment["splits"][number], alone)
    assert setting(outline) == f"{one}; {WHOLE}"


def setting(outline):
    (cohort,) = read(outline).cohorts
    return experiment_section(cohort, cohort.experiments[0], read_captions(CAPTIONS, cohort.words), []).setting
