"""The page as text: several cohorts, a null control, words that must not be missing."""

import copy
import re
from contextlib import chdir
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.quality import QUALITY_MEASURES
from brainfed.evaluation import IMPORTANCE_COLUMNS as VIEW_COLUMNS
from brainfed.evaluation import METRICS, PAPER_SCORING, compare_with_reference, no_rows, planted_table, strongest_table
from brainfed.evaluation._patterns import Patterns
from brainfed.evaluation._scores import institution_table
from brainfed.papers._fedni_numbers import FEDNI_SAYS
from brainfed.reporting import PageTests, read_pictures, read_scored
from brainfed.reporting.charts._scores import forest_chart, headline_chart
from brainfed.reporting.text import find_answer, find_beside
from brainfed.runtime import UserError, write_table, write_tsv
from support.reports.chart_rows import rows_of
from support.reports.report_experiments import read, write_fidelity
from support.reports.report_project import CAPTIONS, outline_of, page_of, shared_project, with_figure, words_of


def test_the_page_answers_a_reviewer(text):
    for said in (
        "Transductive: the features of test subjects are in the population graph",
        "It gives no formal privacy guarantee",
        "patients\u2019 data leave the institution",
        "Not comparable: the paper’s numbers are from ABIDE I and II",
        "46 of 48 subjects in the phenotype table are analysed",
        "1 group of subjects with the same data was found",
        "SHA-256 of their ids",
        "The papers’ test would call",
        "Can the site be identified from the embedding?",
        "Brackets hold 95 % intervals.",
        "The paper’s AUC equals its accuracy within .004 in every row. It is therefore probably computed from",
        "Holm’s correction takes all 32 tests of this section as one family",
        "Everybody is tested twice, by a model that did not train on them: 8 tests of 10 to 12 people, 5 to 6 in each",
    ):
        assert said in text


def test_the_page_answers_a_lab_about_its_data(text):
    for said in (
        "Motion and diagnosis: mean FD 0.",
        "Site and diagnosis: guessing each site’s more frequent diagnosis is right for 65",
        "Connectivity does not go with motion (QC-FC): none of 91 connections do",
        "The site explains",
        "Site and connectivity: a model names the site from a summary of connectivity no better than by naming the "
        "largest site",
        "connectivity unlike the others\u2019 (robust z below \u22123.5)",
        "Not measured: temporal signal-to-noise ratio.",
        "site SITE_1: mean FD 0.31 mm, elsewhere 0.12 mm",
    ):
        assert said in text


def test_a_cohort_without_motion_or_series_lists_missing_measures(outline, tmp_path):
    measures = pd.read_parquet(outline["cohorts"][0]["measures"]).assign(**dict.fromkeys(QUALITY_MEASURES, np.nan))
    connections = pd.read_parquet(outline["cohorts"][0]["connections"]).iloc[:0]
    write_table(tmp_path / "measures.parquet", measures)
    write_table(tmp_path / "connections.parquet", connections)
    paths = {name: str(tmp_path / f"{name}.parquet") for name in ("measures", "connections")}
    outline["cohorts"][0] |= paths
    text = words_of(page_of(outline))
    assert "Not measured: motion (mean FD), repetition time, temporal signal-to-noise ratio, scan length" in text
    assert "QC-FC):" not in text and "Motion and diagnosis" not in text
    assert "mean connectivity" not in text


def explain(experiment, folder, planted, views):
    """Give an experiment the pattern of a linear model, these planted connections and the loss without each view."""
    pairs = np.array([["", f"A-{number:02d}", "<B>"] for number in range(40)])
    patterns = Patterns(np.linspace(-2, 2, 40) + 0.1 * np.random.default_rng(0).standard_normal((6, 1, 40)), pairs, ())
    tables = {name: str(folder / f"{name}.tsv") for name in ("patterns", "planted", "views")}
    write_tsv(tables["patterns"], strongest_table("ridge-central", patterns, {}))
    write_tsv(tables["planted"], planted_table("ridge-central", patterns, planted))
    write_tsv(tables["views"], views)
    experiment["tables"] = experiment["tables"] | tables
    experiment["figures"] = experiment["figures"] | {"patterns": experiment["figures"]["forest"]}


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """A page with fidelity and an unplanted pattern, without graphs, of sites left out, with paths of this computer."""
    folder = tmp_path_factory.mktemp("other")
    outline = outline_of(shared_project(), show_subjects=False)
    cohort = outline["cohorts"][0]
    experiment = cohort["experiments"][0]
    for name in ("graph", "homophily", "degrees"):
        del cohort["figures"][name]
    experiment["split"] = experiment["split"] | {"validation": "leave_one_site_out"}
    (own,) = (variant for variant in experiment["variants"] if variant["name"] == "fedni")
    own["fidelity"] = [write_fidelity(folder / "repeat-0.json")]
    explain(experiment, folder, {}, no_rows(VIEW_COLUMNS))
    inside, outside = folder / "resources" / "inside.tsv", folder.parent / "elsewhere" / "outside.tsv"
    outline["config"] = {"cohorts": {"toy": {"phenotypes": str(inside), "files": [str(outside), "data/{subject}.1D"]}}}
    with chdir(folder):
        return page_of(outline)


def test_the_same_artefacts_give_the_same_page(outline, page):
    assert page_of(outline) == page


def test_two_cohorts_and_two_experiments_share_no_anchor(outline):
    cohort = outline["cohorts"][0]
    outline["cohorts"].append({**copy.deepcopy(cohort), "name": "second"})
    outline["cohorts"][1]["experiments"][0]["title"] = "Once more"
    cohort["experiments"].append({**cohort["experiments"][0], "name": "again"})
    page = page_of(outline)
    anchors = re.findall(r'\sid="([^"]+)"', page)
    assert len(anchors) == len(set(anchors))
    assert {"results-toy-methods", "results-toy-again", "results-second-methods"} <= set(anchors)
    assert "second: Once more" in words_of(page)


def test_a_null_control_claims_nothing_about_federation(outline):
    outline["cohorts"][0]["experiments"][0]["labels"] = "permuted"
    text = words_of(page_of(outline))
    assert "Null control, labels shuffled: mean AUC from" in text
    assert "This is an illustration: at least 20 permutations make a test." in text
    assert "Labels were shuffled inside every institution and fold" in text
    assert "beside the same model" not in text
    assert not re.search(r"federated methods?,? (reaches|differs)", text)
    assert "Beside the paper" not in text


def test_a_clustered_experiment_is_scored_twice_and_its_clusters_are_drawn(outline, text, tmp_path, experiment):
    assert "by two scorings" not in text
    names = [variant["name"] for variant in experiment["variants"]]
    runs = pd.read_csv(experiment["tables"]["runs"], sep="\t")
    table = institution_table(runs, {}, {"fedgcn": "localgcn"})
    table.loc[(table["variant"] == "fedgcn") & (table["scoring"] == PAPER_SCORING), "accuracy"] += 0.023
    write_tsv(tmp_path / "clients.tsv", table)
    experiment["tables"]["clients"] = str(tmp_path / "clients.tsv")
    experiment["figures"]["clusters"] = experiment["figures"]["gain"]
    experiment["variants"][names.index("fedgcn")]["clusters"] = True
    page = page_of(outline)
    clustered = words_of(page)
    assert (
        "Scoring by the best of several models on the test data adds .023 to FedGCN; the ranking uses the last"
        in clustered
    )
    assert "printed in the paper" not in clustered
    assert '<figure id="figure-clusters-cohort-toy-experiment-methods">' in page
    assert '<a href="#figure-clusters-cohort-toy-experiment-methods">A picture under Learning</a>' in page


def test_what_a_cohort_does_not_have_is_not_on_its_page(other, tmp_path_factory):
    """No graph; no comparison with a paper of another protocol; no path of this computer."""
    assert "No method of this cohort uses a population graph." in words_of(other)
    assert "Beside the paper" not in words_of(other)
    assert str(tmp_path_factory.getbasetemp()) not in other
    assert "phenotypes: resources/inside.tsv" in other and "- outside.tsv" in other
    assert "- data/{subject}.1D" in other


def test_fidelity_stands_beside_its_baselines_and_promises_no_interval_that_does_not_exist(other):
    text = words_of(other)
    assert "Generated against true neighbours" in text
    beside = "mean of the visible neighbours 0.200, the subject itself 0.090"
    assert f"features: centred cosine FedNI 0.120 {beside} no better than: mean of the visible neighbours" in text
    assert "rank correlations and the F1 of edges have none" in text
    assert "1.20 are predicted (ratio 0.13) and 0.50 generated, after rounding and cap (ratio 0.05)" in text


def test_an_experiment_of_both_scopes_points_at_their_picture(outline, text):
    cohort = outline["cohorts"][0]
    assert "shows both." not in text
    cohort["figures"]["scopes"] = cohort["figures"]["graph"]
    drawn = words_of(page_of(outline))
    assert "under two readings of the local graphs" in drawn and "shows both." not in drawn
    own = {variant["name"]: variant for variant in cohort["experiments"][0]["variants"]}
    own["localgcn"]["stages"]["graph"]["scope"] = "local"
    page = page_of(outline)
    assert '<figure id="figure-scopes-cohort-toy">' in page
    assert '<a href="#figure-scopes-cohort-toy">a picture under Graphs</a> shows both.' in page


def test_a_figure_without_a_caption_is_a_mistake():
    with pytest.raises(UserError, match=r"the figure 'new' has no caption; write workflow/report/new\.rst"):
        read_pictures({"new": "new.svg"}, {"old": "An old figure."}, "cohort toy")


def test_the_answer_is_stated_once(text):
    assert text.count("FedNI, the best of 4 federated methods, reaches an AUC of 0.81 [0.62, 1.00]: +0.09 [") == 2
    assert text.count("FedNI, with an AUC of") == 1


def test_the_page_describes_the_generated_nodes(text):
    for said in (
        "What the new nodes do",
        "FedNI minus FedGCN, the same classifier without them:",
        "FedNI minus FedNI (random nodes), as many nodes drawn at random:",
        "neither on the uploads of the generator (inpainting) nor on those of the classifier",
        "preparation inpainting classifier together",
        "FedNI inpainting encoder (2 tensors) a server 2.0 MB 2.0 MB 0.01",
        "Subgraph federated learning with missing neighbor generation",
    ):
        assert said in text


def test_without_a_generator_the_page_mentions_none(outline, experiment):
    experiment["variants"] = [variant for variant in experiment["variants"] if not variant.get("fused")]
    text = words_of(page_of(outline))
    assert "What the new nodes do" not in text and "method classifier peak memory (MiB)" in text
    assert "Subgraph federated learning" not in text


def test_readings_stand_in_one_table(outline):
    """FedGCN alone has a variant of every reading: of LocalGCN's epochs it reads nothing, and keeps its score."""
    outline["cohorts"][0]["experiments"][0]["figure"] = "readings"
    text = words_of(page_of(outline))
    nearest = "Nearest to the paper\u2019s accuracies on another cohort of FedGCN: as shipped, mean distance"
    assert f"Readings of the paper {nearest}" in text
    assert "reading LocalGCN paper .600 FedGCN paper .644 FedSage+ paper .658 FedNI paper .667 mean absolute" in text
    assert re.search(r"no noise noise = 0\.0 \u2013 0\.\d+ \u2013 \u2013 \.\d{3} ", text)
    assert re.search(r"epochs = 20 epochs = 20 0\.\d+ \(0\.\d+\) \(0\.\d+\) \(0\.\d+\) \.\d{3} ", text)
    assert re.search(r"random nodes nodes = random \u2013 \(0\.\d+\) \u2013 0\.\d+ \.\d{3} ", text)
    assert "It is no tuning, and its scores are no estimate for new subjects. The paper\u2019s numbers are from" in text


def test_the_figure_of_a_group_is_shown_once(outline):
    experiments = outline["cohorts"][0]["experiments"]
    first = with_figure(experiments[0]) | {"group": "clients"}
    experiments += [first | {"name": f"clients-count{count}"} for count in (2, 4)]
    page = page_of(outline)
    assert (page.count('id="figure-bars-'), page.count('id="figure-forest-')) == (1, 3)


def test_an_experiment_with_a_figure_has_its_finding(outline):
    experiments = outline["cohorts"][0]["experiments"]
    experiments.append(with_figure(experiments[0]))
    text = words_of(page_of(outline))
    finding = "Accuracy: nothing differs significantly from Ridge (central); AUC: Majority class significantly below"
    assert f"Generated nodes against random ones : {finding}" in text and text.count(finding) == 2
    assert "The paper, Fig. 4: FedNI beats inpainting at random by .018 in accuracy on ABIDE." in text


def test_a_page_of_one_figure_opens_with_it(outline):
    experiments = outline["cohorts"][0]["experiments"]
    experiments[:] = [with_figure(experiments[0])]
    page = page_of(outline)
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page)[1]
    assert heading.startswith("Accuracy: nothing differs significantly from Ridge (central)")
    head = page[: page.index("<nav")]
    assert "Accuracy and AUC side by side" in head
    assert page.count('aria-label="Accuracy and AUC side by side') == 1


def test_variants_with_neighbours_chosen_by_diagnosis_are_named(outline, text):
    assert "weighted by agreeing phenotype; diagnoses are not used to build the graph." in text
    assert "from what the graph compares, principal components, 5-fold" in text
    own = {variant["name"]: variant for variant in outline["cohorts"][0]["experiments"][0]["variants"]}
    own["fedgcn"]["stages"]["features"]["selection"] = "rfe"
    own["ridge-central"]["stages"]["features"]["selection"] = "rfe"
    features = words_of(page_of(outline))
    assert "diagnoses are not used to build the graph, except by FedGCN, whose graphs, or the features" in features
    assert "from what the graph compares, principal components, 5-fold" in features
    own["fedni"]["stages"]["graph"]["embedding"] = "rfe"
    both = words_of(page_of(outline))
    assert "except by FedGCN, FedNI, whose graphs, or the features that they compare, are chosen on the" in both
    assert "principal components or, where recursive elimination chose them on the training labels" in both
    assert "never used to build the graph" not in both


def judged(text):
    """What the page's sentences say of FedNI minus FedGCN in AUC: whether it is significant."""
    effects = re.findall(r"FedNI minus FedGCN, the same classifier without them:.*? in AUC \(([^)]*)\)", text)
    return [effect == "significant" for effect in effects]


@pytest.mark.parametrize(
    "difference", [0.05, *(pytest.param(clear, marks=pytest.mark.full("A clear case.")) for clear in (0.02, 0.08))]
)
def test_the_page_never_contradicts_itself(difference, outline, tmp_path, experiment):
    """FedNI minus FedGCN: one word in the paragraph and the table, none in the verdict.

    The middle one is significant alone and among the methods, and not among all methods, metrics and scopes.
    """
    runs = pd.read_csv(experiment["tables"]["runs"], sep="\t")
    ours = runs["variant"].eq("fedni") & runs["scope"].eq("institution")
    wobble = 0.02 * np.random.default_rng(5).standard_normal(int(ours.sum()))
    without = runs[runs["variant"].eq("fedgcn") & runs["scope"].eq("institution")]["value"].to_numpy()
    runs.loc[ours, "value"] = without + difference + wobble - wobble.mean()
    write_tsv(tmp_path / "runs.tsv", runs)
    tests = compare_with_reference(runs, "fedni", 1 / 3)
    write_tsv(tmp_path / "tests.tsv", tests)
    tables = experiment["tables"] | {"runs": str(tmp_path / "runs.tsv"), "tests": str(tmp_path / "tests.tsv")}
    experiment |= {"tables": tables, "reference": "fedni"}
    page = page_of(outline)
    said = judged(words_of(page))
    held = tests.query("metric == 'auc' and scope == 'institution'").set_index("variant")["p_holm"]
    assert said == [bool(held["fedgcn"] < 0.05)]
    verdict = re.search(r"<h1[^>]*>(.*?)</h1>", page)[1]
    assert not re.search(r"signific|p\s[=<>]", verdict)


def numbers_of(text, name):
    """Every AUC (mean over institutions) that the page prints of a method, where it calls it so."""
    patterns = (
        rf"{name}(?:, [^.:;]*?)?,? reaches(?: an AUC of)? (\d\.\d+)",
        rf"{name}, with an AUC of (\d\.\d+)",
        rf"{name} has the highest AUC of all methods, (\d\.\d+)",
    )
    return [found for pattern in patterns for found in re.findall(pattern, text)]


def test_one_number_is_printed_one_way(outline, page, text):
    """The mean AUC of every method in the sentences, the score table, the table of counterparts and the figures."""
    shown = read({"cohort": "toy", **outline["cohorts"][0]["experiments"][0]})
    scored = read_scored(shown)
    compared = PageTests(scored, shown.variants, shown.reference)
    table = page[page.index("<h4>mean over institutions</h4>") : page.index("<h4>all test subjects pooled</h4>")]
    counterparts = page[page.index("What federation changes") : page.index('<figure id="figure-gain')]
    forest = rows_of(forest_chart(scored, shown.variants, shown.reference)).set_index("method")["shown"]
    headline = rows_of(headline_chart(find_answer(compared), find_beside(compared)))
    above = dict(zip(headline["method"].str.partition(": ")[2], headline["shown"], strict=True))
    said = 0
    for variant in shown.variants:
        expected = scored.interval(variant.name, "auc").text
        row = next(part for part in table.split("<tr")[1:] if f">{variant.title}</span>" in part)
        assert re.findall(r"<td data-value[^>]*>([^<]*)", row)[METRICS.index("auc")] == expected
        assert forest[variant.title] == above.get(variant.title, expected) == expected
        found = numbers_of(text, re.escape(variant.title))
        assert set(found) <= {expected}
        said += len(found)
        for part in counterparts.split("<tr")[2:]:
            cells = [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", part)]
            assert cells[0] != variant.title or cells[1] == expected
            assert cells[2] != f"alone: {variant.title}" or cells[3] == expected
    assert said >= 6 and len(above) >= 5


def test_every_federated_method_stands_beside_its_counterparts_and_nothing_else(text):
    part = text[text.index("What federation changes") : text.index("Square brackets: 95")]
    assert "FedGCN 0.69 alone: LocalGCN 0.72" in part
    assert "FedSage+ and FedNI have no counterpart on pooled data here: add centralgcn." in part
    assert "FedNI (random nodes) has no counterpart alone or on pooled data here: add localgcn and centralgcn." in part
    assert "Ridge" not in part


def test_untimed_and_timed_preparation_are_distinct(text):
    assert "Reading scans, and features that no fold fits, are not in them." in text
    assert "6.5 s graph 2.5 s, fusing 4.0 s" in text
    assert "or once a fold where its graph or its features are fitted on a fold" in text
    assert "in the row of each, and is spent once" in text
    assert "generator 81.9 k, discriminator 20.5 k" in text


def test_captions_claim_no_test_that_was_not_made():
    texts = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in CAPTIONS}
    assert "Neighbouring cells were not tested against each other." in texts["surface"]
    assert "are among those of a larger one" in texts["clients"]
    assert "were not tested against each other" in texts["clients"]
    assert "experiment(s)" not in texts["workflow"]
    assert "8 NVIDIA GeForce 3090 GPUs" in FEDNI_SAYS["table6"]


def test_a_linear_model_shows_what_drives_it(outline, text, tmp_path, experiment, other):
    assert "What drives the prediction" not in text
    importance = [("ridge-central", "thickness", 0.71, 0.69, 0.02, 0.01, 8)]
    explain(experiment, tmp_path, {("<B>", "A-39"): 1}, pd.DataFrame(importance, columns=VIEW_COLUMNS))
    explained = words_of(page_of(outline))
    for said in (
        "What drives the prediction These connections change most along with the prediction: in subjects that a linear "
        "model takes for patients the raised ones are higher",
        "not a cause",
        "Without a parcellation the regions have no coordinates",
        "The simulation changes 1 of 40 connections with the diagnosis",
        "A-39 \u2013 &lt;B&gt; raised +",
        "6 runs, 40 features; by chance a feature is among the 20 strongest in 50.0 % of runs.",
        "thickness 0.710 0.690 +0.020 0.010",
        "patterns.tsv among the tables holds up to 1,000 strongest features",
    ):
        assert said in explained
    unplanted = words_of(other)
    assert "What drives the prediction" in unplanted
    assert "The simulation changes" not in unplanted and "Loss of AUC when one view" not in unplanted


def test_a_paragraph_for_an_article_names_cohort_splits_methods_tests_and_software(outline, text):
    paragraph = text[text.index("We analysed ") : text.index("Please cite")]
    shown = read({"cohort": "toy", **outline["cohorts"][0]["experiments"][0]})
    absent = [variant.title for variant in shown.variants if variant.title not in paragraph]
    assert absent == [variant.title for variant in shown.variants if variant.is_control]
    for part in ("region series (", "-fold cross-validation", "Transductive:", "Nadeau and Bengio 2003", "Holm 1979"):
        assert part in paragraph
    assert f"the seed {outline['seed']}. Software: brainfed " in paragraph
