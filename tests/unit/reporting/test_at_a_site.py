"""The report of one site of a study: which sites trained together, whose scores these are, who adds a counterpart."""

import copy
import re
from dataclasses import replace

import pytest

from brainfed.reporting import ShownVariant, read_outline
from brainfed.reporting._document import study_sentences
from brainfed.reporting._outline import SharedStudy
from support.reports.report_project import outline_of, page_of, shared_project, words_of

STUDY = {"sites": ["berlin", "madrid", "oslo"], "site": "oslo", "sets": 6}
SHARED = SharedStudy(("berlin", "madrid", "oslo"), "oslo", 0)
LOCAL = ShownVariant("ridge-local", "ridge", "Ridge", "linear", {"training": "local"}, topology="local")
TANGENT = ShownVariant("fedtangent", "fedtangent", "FedTangent", "federated", topology="federated")
MLP = ShownVariant("fedmlp", "fedmlp", "FedMLP", "federated", topology="federated")
ADVICE = "the coordinator adds localgcn to the study before it begins"


@pytest.fixture(scope="module")
def outline():
    """That of a site, whose federated methods have no counterpart but one that the coordinator may add."""
    outline = outline_of(shared_project(), show_subjects=False) | {"study": STUDY}
    (experiment,) = outline["cohorts"][0]["experiments"]
    experiment["split"] = {**experiment["split"], "institutions": "sites"}
    for variant in experiment["variants"]:
        if variant["counterparts"]:
            variant["counterparts"] = {"alone": {"name": "", "differs": [], "missing": ADVICE, "other_model": ""}}
    return outline


@pytest.fixture(scope="module")
def page(outline):
    return page_of(outline)


def test_the_headline_names_the_sites_that_trained_together(page):
    head = words_of(page[: page.index("</header>")].replace("<details", "<cut").partition("<cut")[0])
    for said in (
        "toy: oslo, in a study with berlin and madrid",
        "Can three institutions predict",
        ", oslo alone LocalGCN 0.",
        "These are scores at oslo.",
        "; the site is oslo.",
        "The sites berlin, madrid and oslo trained together.",
        "were trained between these sites, on the subjects of all of them.",
        "The models of Majority class, Ridge (local) and LocalGCN were trained on the subjects of oslo alone.",
        "All scores here are those of subjects of oslo.",
        "Exact numbers of 6 different sets of subjects of oslo were added up",
    ):
        assert said in head
    assert "each institution alone" not in head and "every site is an institution" not in head


def test_the_paragraph_for_an_article_names_them_too(page):
    (paragraph,) = re.findall(r"<blockquote>(.*?)</blockquote>", page, flags=re.DOTALL)
    for said in (
        "The sites berlin, madrid and oslo trained together. The models of FedGCN, FedGCN (no noise), ",
        "Design: 1 institution of a study between 3 sites; 4-fold cross-validation",
        "Scores are means over 8 runs",
    ):
        assert said in paragraph, paragraph


def test_no_pooled_counterpart_is_missed_and_the_coordinator_adds_the_local_one(page):
    text = words_of(page)
    assert f"no local counterpart in this experiment: {ADVICE}." in text
    assert f"have no counterpart alone here: {ADVICE}." in text
    assert "trained at oslo alone. No data of several sites are in one place" in text
    assert "counterpart alone or on pooled data" not in text and "1 institutions" not in text
    assert "work of the simulation" not in text


def test_a_page_without_an_answer_names_the_sites_as_well(outline):
    shuffled = copy.deepcopy(outline)
    shuffled["cohorts"][0]["experiments"][0]["labels"] = "permuted"
    head = words_of(page_of(shuffled).partition("</header>")[0])
    assert "toy: oslo, in a study with berlin and madrid" in head
    assert "The sites berlin, madrid and oslo trained together." in head


def test_a_report_of_institutions_in_one_place_is_of_no_study(outline):
    assert read_outline(outline).study == replace(SHARED, sets=6)
    assert read_outline({name: value for name, value in outline.items() if name != "study"}).study is None


def test_one_method_is_said_in_the_singular_and_none_trained_together_is_said():
    assert study_sentences(SHARED, [LOCAL, TANGENT], "subjects") == [
        "The sites berlin, madrid and oslo trained together.",
        "The model of FedTangent was trained between these sites, on the subjects of all of them.",
        "The model of Ridge (local) was trained on the subjects of oslo alone.",
        "All scores here are those of subjects of oslo.",
    ]
    assert study_sentences(SHARED, [TANGENT, MLP], "subjects")[1].startswith("The models of FedTangent and FedMLP were")
    assert study_sentences(SHARED, [LOCAL], "subjects")[0] == (
        "The sites berlin, madrid and oslo take part in one study, but no method here was trained between them."
    )


def test_features_from_a_mean_over_all_sites_are_no_work_of_one():
    shared = ShownVariant(
        "tangent-local", "tangent", "Tangent", "linear", topology="local",
        stages={"features": {"tangent": True, "reference": "training"}},
    )  # fmt: skip
    said = "Tangent features start from a mean over all sites, also those of local methods."
    assert said in study_sentences(SHARED, [shared, TANGENT], "subjects")
    assert said not in study_sentences(SHARED, [LOCAL, TANGENT], "subjects")


def test_a_site_that_is_left_out_says_who_trained_its_models():
    assert study_sentences(SHARED, [TANGENT, MLP], "subjects", unseen=True)[1].endswith(
        f"trained between {' and '.join(SHARED.others)} to be tested at {SHARED.site}, without any subjects of it."
    )
