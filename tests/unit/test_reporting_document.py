"""The page as text: several cohorts, a null control, words that must not be missing."""

import copy
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.measures import MEASURES
from brainfed.evaluation.statistics import compare
from brainfed.reporting.document import render
from brainfed.reporting.outline import read_outline
from brainfed.reporting.paper_numbers import FEDNI_SAYS
from brainfed.reporting.pictures import read_pictures
from brainfed.runtime.artefacts import write_table, write_tsv
from brainfed.runtime.errors import UserError
from report_experiments import write_fidelity
from report_project import CAPTIONS, outline_of, with_figure, write_project


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("project")
    write_project(path)
    return path


@pytest.fixture
def outline(folder):
    return outline_of(folder, show_subjects=False)


def page_of(outline):
    return render(read_outline(outline), CAPTIONS)


def words(page):
    """The page's text without pictures, styles and tags."""
    body = re.sub(r"<(style|script)>.*?</\1>|<[^>]+>", " ", page[page.index("<body>") :], flags=re.DOTALL)
    return " ".join(body.split())


def test_the_page_says_what_a_reviewer_asks_for(outline):
    text = words(page_of(outline))
    for said in (
        "Transductive: the features of test subjects are in the population graph",
        "It gives no formal privacy guarantee",
        "patients leave the institution",
        "Not comparable: the paper’s numbers are from ABIDE I and II",
        "46 of 48 subjects in the phenotype table are analysed",
        "1 group of subjects with the same data was found",
        "SHA-256 of their ids",
        "The papers’ test would call",
        "Can the site be told from the embedding?",
        "Not significant” does not mean equal",
    ):
        assert said in text


def test_the_page_says_what_a_lab_asks_of_its_data(outline):
    text = words(page_of(outline))
    for said in (
        "Patients and controls do not differ significantly in motion: mean FD 0.",
        "Connectivity does not go with motion (QC-FC): none of 91 connections do",
        "the site explains",
        "connectivity unlike the others\u2019 (robust z below \u22123.5)",
        "Not measured: temporal signal-to-noise ratio.",
        "site SITE_1: mean FD 0.31 mm, elsewhere 0.12 mm",
    ):
        assert said in text


def test_a_cohort_without_motion_or_series_says_what_was_not_measured(outline, tmp_path):
    measures = pd.read_parquet(outline["cohorts"][0]["measures"]).assign(**dict.fromkeys(MEASURES, np.nan))
    connections = pd.read_parquet(outline["cohorts"][0]["connections"]).iloc[:0]
    write_table(tmp_path / "measures.parquet", measures)
    write_table(tmp_path / "connections.parquet", connections)
    paths = {name: str(tmp_path / f"{name}.parquet") for name in ("measures", "connections")}
    outline["cohorts"][0] |= paths
    text = words(page_of(outline))
    assert "Not measured: motion (mean FD), repetition time, temporal signal-to-noise ratio, scan length" in text
    assert "QC-FC):" not in text
    assert "moved more" not in text


def test_the_same_artefacts_give_the_same_page(outline):
    assert page_of(outline) == page_of(copy.deepcopy(outline))


def test_two_cohorts_and_two_experiments_share_no_anchor(outline):
    cohort = outline["cohorts"][0]
    cohort["experiments"].append({**cohort["experiments"][0], "name": "again", "title": "Once more"})
    outline["cohorts"].append({**copy.deepcopy(cohort), "name": "second"})
    page = page_of(outline)
    anchors = re.findall(r'\sid="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert {"results-toy-methods", "results-toy-again", "results-second-methods"} <= set(anchors)
    assert "second: Once more" in words(page)


def test_a_null_control_claims_nothing_about_federation(outline):
    outline["cohorts"][0]["experiments"][0]["labels"] = "permuted"
    text = words(page_of(outline))
    assert "Null control, labels shuffled: mean AUC from" in text
    assert "This is an illustration: at least 20 permutations make a test." in text
    assert "Labels were shuffled inside every institution and fold" in text
    assert not re.search(r"Federation (beats|shows|loses|falls|does)", text)
    assert "The best federated method" not in text
    assert "Beside the paper" not in text


def test_a_cohort_without_graphs_says_so(outline):
    figures = outline["cohorts"][0]["figures"]
    for name in ("graph", "homophily", "degrees"):
        del figures[name]
    assert "No method of this cohort uses a population graph." in words(page_of(outline))


def test_a_figure_without_a_caption_is_a_mistake():
    with pytest.raises(UserError, match=r"the figure 'new' has no caption; write workflow/report/new\.rst"):
        read_pictures({"new": "new.svg"}, {"old": "An old figure."}, "cohort toy")


def test_the_answer_is_told_once(outline):
    page = words(page_of(outline))
    assert page.count("Ridge (central) has the highest AUC; FedNI does not differ significantly from") == 2
    assert page.count("FedNI reaches an AUC of") == 1


def test_the_paper_stands_beside_its_own_protocol_only(outline):
    experiment = outline["cohorts"][0]["experiments"][0]
    experiment["split"] = experiment["split"] | {"validation": "leave_one_site_out"}
    assert "Beside the paper" not in words(page_of(outline))


def test_paths_of_this_computer_are_not_told(outline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    inside, outside = tmp_path / "resources" / "inside.tsv", tmp_path.parent / "elsewhere" / "outside.tsv"
    outline["config"] = {"cohorts": {"toy": {"phenotypes": str(inside), "files": [str(outside), "data/{subject}.1D"]}}}
    page = page_of(outline)
    assert str(tmp_path.parent) not in page
    assert "phenotypes: resources/inside.tsv" in page
    assert "- outside.tsv" in page
    assert "- data/{subject}.1D" in page


def test_the_page_says_what_the_generated_nodes_do(outline):
    text = words(page_of(outline))
    for said in (
        "What the generated nodes do",
        "FedNI minus FedGCN, the same classifier without them:",
        "FedNI minus FedNI (random nodes), as many nodes drawn at random:",
        "neither on the uploads of the generator (inpainting) nor on those of the classifier",
        "preparation inpainting classifier together",
        "FedNI inpainting encoder (2 tensors) a server 2.0 MB 2.0 MB 0.01",
        "Subgraph federated learning with missing neighbor generation",
    ):
        assert said in text


def test_without_a_generator_nothing_is_said_of_one(outline):
    experiment = outline["cohorts"][0]["experiments"][0]
    experiment["variants"] = [variant for variant in experiment["variants"] if not variant.get("fused")]
    text = words(page_of(outline))
    assert "What the generated nodes do" not in text
    assert "method classifier peak memory (MiB)" in text
    assert "Subgraph federated learning" not in text


def test_fidelity_stands_beside_its_baselines(outline, tmp_path):
    experiment = outline["cohorts"][0]["experiments"][0]
    (own,) = (variant for variant in experiment["variants"] if variant["name"] == "fedni")
    own["fidelity"] = [write_fidelity(tmp_path / "repeat-0.json")]
    text = words(page_of(outline))
    assert "Generated against true neighbours" in text
    beside = "mean of the visible neighbours 0.200, the subject itself 0.090"
    assert f"features: centred cosine FedNI 0.120 {beside} no better than: mean of the visible neighbours" in text


def test_the_figure_of_a_group_is_shown_once(outline):
    experiments = outline["cohorts"][0]["experiments"]
    first = with_figure(experiments[0]) | {"group": "clients"}
    experiments += [first | {"name": f"clients-count{count}"} for count in (2, 4)]
    page = page_of(outline)
    assert page.count('id="figure-bars-') == 1
    assert page.count('id="figure-forest-') == 3


def test_an_experiment_with_a_figure_says_what_the_figure_says(outline):
    experiments = outline["cohorts"][0]["experiments"]
    experiments.append(with_figure(experiments[0]))
    text = words(page_of(outline))
    finding = "Accuracy: nothing differs significantly from Ridge (central); AUC: Majority class significantly below"
    assert f"Generated nodes against random ones : {finding}" in text
    assert text.count(finding) == 2
    assert "The paper, Fig. 4: FedNI beats inpainting at random by .018 in accuracy on ABIDE." in text


def test_a_page_of_one_figure_opens_with_it(outline):
    experiments = outline["cohorts"][0]["experiments"]
    experiments[:] = [with_figure(experiments[0])]
    page = page_of(outline)
    heading = re.search(r"<h1>(.*?)</h1>", page)[1]
    assert heading.startswith("Accuracy: nothing differs significantly from Ridge (central)")
    head = page[: page.index("<nav")]
    assert "Accuracy and AUC side by side" in head
    assert page.count('alt="Accuracy and AUC side by side') == 1


def test_who_uses_diagnoses_to_choose_neighbours_is_named(outline):
    plain = words(page_of(outline))
    assert "weighted by agreeing phenotype; diagnoses are not used to build the graph." in plain
    assert "from what the graph compares, principal components, 5-fold" in plain
    own = {variant["name"]: variant for variant in outline["cohorts"][0]["experiments"][0]["variants"]}
    own["fedgcn"]["stages"]["features"]["selection"] = "rfe"
    own["ridge-central"]["stages"]["features"]["selection"] = "rfe"
    features = words(page_of(outline))
    assert "diagnoses are not used to build the graph, except by FedGCN, whose graphs, or the features" in features
    assert "from what the graph compares, principal components, 5-fold" in features
    own["fedni"]["stages"]["graph"]["embedding"] = "rfe"
    both = words(page_of(outline))
    assert "except by FedGCN, FedNI, whose graphs, or the features that they compare, are chosen on the" in both
    assert "principal components or, where recursive elimination chose them on the training labels" in both
    assert "never used to build the graph" not in both


def judged(text):
    """What the page's sentences say of FedNI minus FedGCN in AUC: whether it is significant."""
    clauses = re.findall(r"FedNI (?:has the highest AUC; it )?((?:beats|does not differ|loses to)[^.:]*)", text)
    parts = [part for clause in clauses for part in re.split(r"(?=beats|does not differ|loses to)", clause)]
    effects = re.findall(r"FedNI minus FedGCN, the same classifier without them:.*? in AUC \(([^)]*)\)", text)
    numbers = re.findall(r"against FedGCN \(p\s(.\s[0-9.]+)\)", text)
    return [
        *(not part.startswith("does not") for part in parts if re.search(r"FedGCN(?! \()", part)),
        *(effect == "significant" for effect in effects),
        *(p.startswith("<") or float(p[1:]) < 0.05 for p in numbers),
    ]


@pytest.mark.parametrize("difference", [0.02, 0.05, 0.08])
def test_the_page_never_contradicts_itself(difference, outline, tmp_path):
    """FedNI minus FedGCN: one word in the verdict, the sentence with its numbers, the paragraph, and the table.

    The middle one is significant alone and among the baselines, and not among all methods of the table.
    """
    experiment = outline["cohorts"][0]["experiments"][0]
    runs = pd.read_csv(experiment["tables"]["runs"], sep="\t")
    ours = runs["variant"].eq("fedni") & runs["scope"].eq("institution")
    wobble = 0.02 * np.random.default_rng(5).standard_normal(int(ours.sum()))
    without = runs[runs["variant"].eq("fedgcn") & runs["scope"].eq("institution")]["value"].to_numpy()
    runs.loc[ours, "value"] = without + difference + wobble - wobble.mean()
    write_tsv(tmp_path / "runs.tsv", runs)
    tests = compare(runs, "fedni", "auc", "institution", 1 / 3).assign(scope="institution")
    accuracy = compare(runs, "fedni", "accuracy", "institution", 1 / 3).assign(scope="institution")
    pooled = [compare(runs, "fedni", m, "pooled", 1 / 3).assign(scope="pooled") for m in ("auc", "accuracy")]
    write_tsv(tmp_path / "tests.tsv", pd.concat([tests, accuracy, *pooled]))
    tables = experiment["tables"] | {"runs": str(tmp_path / "runs.tsv"), "tests": str(tmp_path / "tests.tsv")}
    experiment |= {"tables": tables, "reference": "fedni"}
    said = judged(words(page_of(outline)))
    by_table = bool(tests.set_index("variant").loc["fedgcn", "p_holm"] < 0.05)
    assert len(said) >= 4
    assert set(said) == {by_table}


def test_a_figure_of_others_than_fedni_says_nothing_of_fedni_s_own_tests(outline):
    """With ridge as the figure's reference, FedNI's comparisons would be counted otherwise than its stars."""
    experiments = outline["cohorts"][0]["experiments"]
    experiments[:] = [with_figure(experiments[0])]
    assert "FedNI reaches an AUC of" not in words(page_of(outline))


def test_what_is_not_timed_is_said_and_what_is_prepared_is(outline):
    text = words(page_of(outline))
    assert "Reading scans, and features that no fold fits, are not in them." in text
    assert "6.5 s graph 2.5 s, fusing 4.0 s" in text
    assert "or once a fold where its graph or its features are fitted on a fold" in text
    assert "in the row of each, and is spent once" in text
    assert "generator 81.9 k, discriminator 20.5 k" in text


def test_the_fidelity_note_promises_no_interval_that_does_not_exist(outline, tmp_path):
    experiment = outline["cohorts"][0]["experiments"][0]
    (own,) = (variant for variant in experiment["variants"] if variant["name"] == "fedni")
    own["fidelity"] = [write_fidelity(tmp_path / "repeat-0.json")]
    text = words(page_of(outline))
    assert "rank correlations and the F1 of edges have none" in text
    assert "1.20 are predicted (ratio 0.13) and 0.50 generated, after rounding and cap (ratio 0.05)" in text


def test_captions_claim_no_test_that_was_not_made():
    texts = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in CAPTIONS}
    assert "Neighbouring cells were not tested against each other." in texts["surface"]
    assert "are among those of a larger one" in texts["clients"]
    assert "were not tested against each other" in texts["clients"]
    assert "experiment(s)" not in texts["workflow"]
    assert "8 NVIDIA GeForce 3090 GPUs" in FEDNI_SAYS["table6"]
