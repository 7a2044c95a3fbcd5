"""The page of a cohort of public graphs, of which nobody is a person."""

import re
from dataclasses import asdict

import pandas as pd
import pytest

from brainfed.cohort import class_words
from brainfed.cohort.settings import SplitSettings
from brainfed.evaluation._scores import COLUMNS
from brainfed.reporting import read_outline
from brainfed.reporting._sections import _protocol
from brainfed.runtime import canonical_json, write_text, write_tsv
from support.reports import report_project

FORBIDDEN = (
    "patient", "people", "person", "scan", "brain", "imaging", "phenotype", "diagnosis", "diagnoses", "subject",
    "everybody", "FreeSurfer",
)  # fmt: skip
ALLOWED = (
    "brainfed", "training-subjects", "has a subject", "nobody is a person",
)  # fmt: skip
"""The program, a tensor of the ledger, and the sentence that compares a graph with a subject."""
METHODS = {
    "majority": ("majority", "Majority class", "baseline", {}),
    "ridge-central": ("central-gin", "GIN on pooled graphs", "graph", {"epochs": 2, "curve_every": 1}),
    "selftrain": ("selftrain", "GIN alone", "graph", {"epochs": 2, "curve_every": 1}),
    "fedavg-gin": ("fedavg-gin", "FedAvg", "federated", {"rounds": 2}),
    "gcfl": ("gcfl", "GCFL", "federated", {"rounds": 2}),
}
"""`ridge-central` is the reference of the made-up project, by name."""
SKILL = {"majority": 0.0, "ridge-central": 1.5, "selftrain": 0.6, "fedavg-gin": 0.8, "gcfl": 0.9}
SPLIT = asdict(SplitSettings(validation="holdout", institutions="consecutive"))
SIZES = {
    "contradicting": 1, "data_sets": [{"by_degree": True, "features": 3, "graphs": 48, "name": "TOY"}], "degree": 3.0,
    "digest": "a" * 64, "equal": 2, "nodes": {"least": 3, "median": 6.0, "most": 8}, "regions": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Text of the page before the config and the citations."""
    folder = tmp_path_factory.mktemp("graphs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report_project, "METHODS", METHODS)
        patch.setattr(report_project, "SKILL", SKILL)
        patch.setattr(report_project, "COUNTERPARTS", {"fedavg-gin": "selftrain"})
        patch.setattr(report_project, "FOLDS", 1)
        patch.setattr(report_project, "SPLIT", SPLIT)
        outline = report_project.draw_project(folder, pictures=False)
    _turn_into_graphs(outline["cohorts"][0], folder)
    return shown(report_project.page_of(outline))


def _turn_into_graphs(cohort, folder):
    write_text(folder / "sizes.json", canonical_json(SIZES))
    write_tsv(folder / "issues.tsv", pd.DataFrame(columns=["subject", "kind", "detail", "action"]))
    drawing = cohort["figures"]["flow"]
    cohort |= {
        "source": "tudataset", "kind": "graphs", "target": "class", "classes": ["sparse", "dense"], "crossings": [],
        "atlas": "", "site_trace": "", "connectivity": str(folder / "sizes.json"),
        "issues": str(folder / "issues.tsv"), "figures": {"sizes": drawing},
    }  # fmt: skip
    rows = [
        (name, scoring, 0.7, 0.02, 0.05, 2, "" if name == "selftrain" else "selftrain", 0.01, 1, 0, 2)
        for name in METHODS
        for scoring in ("last model", "paper scoring")
    ]
    write_tsv(folder / "clients.tsv", pd.DataFrame(rows, columns=list(COLUMNS)))
    (experiment,) = cohort["experiments"]
    experiment["tables"]["clients"] = str(folder / "clients.tsv")
    experiment["figures"]["clusters"] = drawing
    for variant in experiment["variants"]:
        variant["clusters"] = variant["method"] == "gcfl"


def shown(page):
    before = page.partition("The config, every default filled in")[0]
    text = re.sub(
        r"<(style|script|svg)\b.*?</\1>|<summary>Every tensor.*?</details>|<[^>]+>", " ", before, flags=re.DOTALL
    )
    return " ".join(text.split())


@pytest.mark.parametrize("word", FORBIDDEN)
def test_no_word_on_people_stands_on_a_page_of_graphs(page, word):
    text = page
    for allowed in ALLOWED:
        text = text.replace(allowed, "")
    found = [text[max(0, match.start() - 80) : match.end() + 40] for match in re.finditer(word, text, re.IGNORECASE)]
    assert not found


@pytest.mark.parametrize(
    "sentence",
    [
        "Dense graphs are the positive class",
        "institutions of consecutive graphs, the rest at random",
        "Without graphs, Majority class reaches",
        "graphs leave the institution",
        "all test graphs pooled",
        "for which nothing is chosen on test graphs. The paper’s scoring beside it does choose",
        "the features of test graphs may be in label-free fits",
    ],
)
def test_the_page_says_it_of_graphs(page, sentence):
    assert sentence in page


def test_a_page_without_fedni_names_no_rows_of_it(page):
    assert "FedNI is shown beside" not in page and "FedNI beside what it is compared with" not in page


def test_more_than_two_classes_of_graphs_are_no_subjects():
    words = class_words("class", ("a", "b", "c"))
    assert not [slot for slot, word in words.slots.items() if "subject" in word]
    assert {"graph of another class"} == {named.singular[0] for _, named in words.contrasts}
    people = class_words("diagnosis", ("CN", "MCI", "AD"))
    assert people.slots["patients"] == "subjects of a class"
    assert (people.subjects, people.site, people.unread) == ("subjects", "site", "imaging")


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("population", [True, False])
def test_a_population_graph_is_named_where_a_variant_has_one(protocol, population, tmp_path):
    values = report_project.outline_of(tmp_path, show_subjects=False)
    experiment = values["cohorts"][0]["experiments"][0]
    experiment["protocol"] = protocol
    experiment["variants"] = [one for one in experiment["variants"] if population or not one["stages"]["graph"]]
    shown = read_outline(values).cohorts[0]
    sentence = _protocol(shown.experiments[0], shown.words)
    assert ("graph" in sentence) == population and "test subjects" in sentence
