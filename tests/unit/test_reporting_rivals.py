"""Whether FedNI beats what it is compared with, in numbers and in words; which printed number stands beside what."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from brainfed.graphs.settings import GraphSettings
from brainfed.inpainting.settings import FusingSettings, InpaintingSettings
from brainfed.reporting.answer import find_answer
from brainfed.reporting.paper_numbers import FEDNI_FIGURES, FEDNI_FULL, FEDNI_TABLE_V, FEDNI_TABLE_VI
from brainfed.reporting.printed import printed_value
from brainfed.reporting.rivals import contest_clause, contest_sentence, contest_verdict, find_contest, listed
from brainfed.reporting.score_figures import headline_figure
from brainfed.reporting.style import drawing
from brainfed.reporting.variants import ShownVariant

FEDNI = ShownVariant("fedni", "fedni", "FedNI", "federated")
FEDGCN = ShownVariant("fedgcn", "fedgcn", "FedGCN", "federated")
SAGE = ShownVariant("fedsage-plus", "fedsage-plus", "FedSage+", "federated")
FEDMLP = ShownVariant("fedmlp", "fedmlp", "FedMLP", "federated")
RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"})
EVERYBODY = [FEDMLP, FEDGCN, SAGE, FEDNI, RIDGE]
WOBBLE = np.array([-0.02, -0.01, 0.0, 0.01, 0.02, -0.02, -0.01, 0.0, 0.01, 0.02])


def runs_of(**values):
    """Institution AUCs of ten runs: each variant its mean and a wobble of its own."""
    return pd.DataFrame(
        [
            (variant.replace("_", "-"), index // 5, index % 5, "institution", "auc", mean + wobble)
            for number, (variant, mean) in enumerate(values.items())
            for index, wobble in enumerate(np.roll(WOBBLE, number))
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )


def contest_of(**values):
    return find_contest(runs_of(**values), EVERYBODY, 0.25)


def test_one_line_says_who_leads_and_whom_fedni_beats():
    contest = contest_of(fedni=0.70, fedgcn=0.60, fedsage_plus=0.70, fedmlp=0.80, ridge_central=0.82)
    assert contest_verdict(contest) == (
        "Ridge (central) has the highest AUC; FedNI beats FedGCN, does not differ significantly from FedSage+ "
        "and loses to FedMLP and Ridge (central)"
    )
    assert [rival.outcome for rival in contest.rivals] == [1, 0, -1, -1]


def test_a_leading_fedni_is_named_once():
    contest = contest_of(fedni=0.90, fedgcn=0.60, fedmlp=0.7)
    assert contest_verdict(contest) == "FedNI has the highest AUC; it beats FedGCN and FedMLP"


def test_differences_are_fedni_minus_the_rival():
    """Wobbles (-2 ... 2, twice) shifted by one differ by -0.04 in two runs and 0.01 in eight: sd 0.02108."""
    contest = contest_of(fedni=0.70, fedgcn=0.60)
    (rival,) = contest.rivals
    assert rival.difference.mean == pytest.approx(0.1)
    reach = 2.26216 * np.sqrt((1 / 10 + 0.25) * 0.0210819**2)
    assert rival.difference.low == pytest.approx(0.1 - reach, abs=1e-6)
    assert rival.difference.high == pytest.approx(0.1 + reach, abs=1e-6)
    assert contest_sentence(contest).endswith(": +0.100 [+0.072, +0.128] against FedGCN (p\u00a0<\u00a00.001).")


def test_holm_counts_the_rivals_that_are_there():
    """p of the lone comparison is doubled beside a second one that is larger."""
    alone = contest_of(fedni=0.70, fedgcn=0.67)
    both = contest_of(fedni=0.70, fedgcn=0.67, ridge_central=0.70)
    assert both.rivals[0].p == pytest.approx(2 * alone.rivals[0].p)
    assert "Holm-corrected over these 2" in contest_sentence(both)


def test_without_fedni_or_a_rival_there_is_no_contest():
    assert contest_of(fedgcn=0.7, fedmlp=0.6) is None
    assert contest_of(fedni=0.7) is None


def test_one_run_is_not_tested():
    runs = runs_of(fedni=0.7, fedgcn=0.6).query("repeat == 0 and fold == 0")
    contest = find_contest(runs, EVERYBODY, 0.25)
    assert contest_clause(contest) == "has too few runs to be tested against FedGCN"
    assert contest_sentence(contest).endswith("+0.060 against FedGCN (not tested).")


def test_the_first_picture_shows_fedni_and_what_it_is_held_against_once_each():
    runs = runs_of(fedni=0.70, fedgcn=0.60, fedsage_plus=0.72, fedmlp=0.80, ridge_central=0.82)
    answer = find_answer(runs, EVERYBODY, "ridge-central", "localgcn", 0.25)
    with drawing():
        (axes,) = headline_figure(answer, find_contest(runs, EVERYBODY, 0.25)).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "pooled data: Ridge (central)",
        "best federated: FedMLP",
        "generated nodes: FedNI",
        "the same without generated nodes: FedGCN",
        "another generator: FedSage+",
    ]


def test_lists_in_words():
    lists = ([], ["a"], ["a", "b"], ["a", "b", "c"])
    assert [listed(items, "or") for items in lists] == ["", "a", "a or b", "a, b or c"]


def fedni(name="fedni-x", *, inpainting=None, fusing=None, graph=None, **settings):
    stages = {
        "graph": asdict(GraphSettings(**(graph or {}))),
        "inpainting": asdict(InpaintingSettings(**(inpainting or {}))),
        "fusing": asdict(FusingSettings(**(fusing or {}))),
    }
    return ShownVariant(name, "fedni", "FedNI", "federated", {"noise": 0.01, "skip": "none", **settings}, stages=stages)


@pytest.mark.parametrize(
    ("variant", "accuracy", "auc"),
    [
        (fedni("fedni"), 0.667, 0.663),
        (fedni("fedni-k-k10"), 0.667, 0.663),
        (fedni(inpainting={"masking": "random"}), 0.658, 0.655),
        (fedni(fusing={"edges": "binary"}), 0.650, 0.646),
        (fedni(inpainting={"discriminator": False}), 0.660, 0.657),
        (fedni(inpainting={"federated": "none"}), 0.651, 0.645),
        (fedni(inpainting={"federated": "discriminator"}), 0.655, 0.653),
        (fedni(inpainting={"federated": "both"}), 0.665, 0.661),
        (fedni(fusing={"nodes": "random"}), 0.649, 0.647),
        (FEDGCN, 0.644, 0.643),
        (SAGE, 0.658, 0.655),
    ],
)
def test_a_variant_stands_beside_its_own_bar(variant, accuracy, auc):
    """FedNI Table V and Fig. 2 to 4, ABIDE."""
    assert printed_value(variant, "abide", "accuracy") == accuracy
    assert printed_value(variant, "abide", "auc") == auc


@pytest.mark.parametrize(
    "variant",
    [
        fedni(graph={"k": 5}),
        fedni(graph={"scope": "global_cut"}),
        fedni(graph={"embedding": "rfe"}),
        fedni(inpainting={"masking": "random"}, noise=0.0),
        fedni(inpainting={"masking": "random"}, skip="linear"),
        fedni(inpainting={"masking": "random", "discriminator": False}),
        fedni("fedni-rfe"),
        RIDGE,
        ShownVariant("fedgcn-no-noise", "fedgcn", "FedGCN", "federated"),
    ],
)
def test_what_the_paper_did_not_print_stands_alone(variant):
    assert printed_value(variant, "abide", "accuracy") is None


def test_the_figures_say_what_the_paper_says():
    """Everything in Fig. 2 to 4 lies below FedNI, which is Table V's; 66 + 11 = 77 s in Table VI."""
    for column, metric in enumerate(("accuracy", "auc")):
        for cohort in ("abide", "adni"):
            full = FEDNI_FULL.value(cohort, metric)
            assert full == FEDNI_TABLE_V[cohort]["fedni"][column][0]
            for rows in FEDNI_FIGURES.values():
                assert all(row.value(cohort, metric) < full for row in rows)
    assert sum(phase["seconds"] for phase in FEDNI_TABLE_VI.values()) == 77
