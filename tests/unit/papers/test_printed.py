"""Which number of FedNI's paper stands beside which variant."""

from dataclasses import asdict, replace

import pandas as pd
import pytest

from brainfed.configuration._loading import shipped_settings
from brainfed.configuration.stages.registry import stage_settings
from brainfed.graphs import GraphSettings
from brainfed.imaging import FeatureSettings
from brainfed.inpainting import FusingSettings
from brainfed.methods import METHODS, inpainter_of
from brainfed.papers._fedni_numbers import (
    FEDNI_FIGURES,
    FEDNI_FULL,
    FEDNI_TABLE_V,
    FEDNI_TABLE_VI,
    PAPER_COLUMNS,
    PAPER_METRICS,
    hard_labels,
    paper_cohort,
    printed_value,
)
from brainfed.papers._fedni_tables import paper_rows
from brainfed.reporting import Scored, ShownVariant

FEDNI = ShownVariant("fedni", "fedni", "FedNI", "federated")
RIDGE = ShownVariant("ridge-central", "ridge", "Ridge", "linear", {"training": "central"}, topology="central")
COLUMNS = ("accuracy", "balanced_accuracy", "auc", "precision", "recall", "f1")


def resolved(name, method, *, inpainting=None, fusing=None, graph=None, features=None, **settings):
    """A variant with every setting of its method and stages, as the plan resolves them."""
    known = METHODS[method]
    stages = {"features": asdict(FeatureSettings(**(features or {}))), "graph": {}, "inpainting": {}, "fusing": {}}
    if "graph" in stage_settings(known):
        usual = {"scope": "global"} if known.topology == "central" else {}
        stages["graph"] = asdict(GraphSettings(**(usual | (graph or {}))))
    if (inpainter := inpainter_of(known)) is not None:
        stages["inpainting"] = asdict(inpainter.settings(**(inpainting or {})))
        stages["fusing"] = asdict(FusingSettings(**{**known.options.get("fused", {}), **(fusing or {})}))
    own = asdict(known.settings(**settings))
    shipped = shipped_settings(known)
    return ShownVariant(name, method, known.title, known.family, own, stages=stages, shipped=shipped)


def fedni(name="fedni-x", **given):
    return resolved(name, "fedni", **given)


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
        (resolved("fedgcn", "fedgcn"), 0.644, 0.643),
        (resolved("fedgcn-k-k10", "fedgcn", graph={"k": 10}), 0.644, 0.643),
        (resolved("fedsage-plus", "fedsage-plus"), 0.658, 0.655),
        (resolved("fedmlp", "fedmlp"), 0.630, 0.627),
        (resolved("localgcn", "localgcn"), 0.600, 0.598),
        (resolved("centralgcn", "centralgcn"), 0.655, 0.654),
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
        fedni(graph={"scope": "local"}),
        fedni(graph={"embedding": "rfe"}),
        fedni(inpainting={"masking": "random"}, noise=0.0),
        fedni(inpainting={"masking": "random"}, skip="linear"),
        fedni(inpainting={"masking": "random", "discriminator": False}),
        fedni("fedni-rfe", features={"selection": "rfe"}),
        fedni("fedni", graph={"age_gap": 5.0}),
        fedni("fedni", rounds=100),
        fedni("fedni", standardise="none"),
        fedni("fedni", inpainting={"noise": 0.0}),
        fedni("fedni", inpainting={"rounds": 5}),
        fedni("fedni", inpainting={"reconstruction": "mean"}),
        fedni("fedni", fusing={"cap": None}),
        fedni(fusing={"edges": "binary", "cap": None}),
        RIDGE,
        replace(FEDNI, shipped={"noise": 0.01}),
        resolved("fedgcn", "fedgcn", noise=0.0),
        resolved("fedgcn", "fedgcn", graph={"k": 5}),
        resolved("fedgcn", "fedgcn", features={"connectivity": "partial"}),
        resolved("fedsage-plus", "fedsage-plus", inpainting={"exchange": "raw"}),
        resolved("fedsage-plus", "fedsage-plus", fusing={"cap": 0.5}),
    ],
)
def test_a_variant_without_a_printed_number_has_none(variant):
    assert printed_value(variant, "abide", "accuracy") is None


def test_a_list_of_an_artefact_equals_the_tuple_of_the_defaults():
    own = fedni("fedni")
    read = replace(own, settings=own.settings | {"hidden": [64, 32]})
    assert printed_value(read, "abide", "accuracy") == 0.667


def test_the_figures_have_the_numbers_of_the_paper():
    """Everything in Fig. 2 to 4 lies below FedNI, which is Table V's; 66 + 11 = 77 s in Table VI."""
    for column, metric in enumerate(("accuracy", "auc")):
        for cohort in ("abide", "adni"):
            full = FEDNI_FULL.value(cohort, metric)
            assert full == FEDNI_TABLE_V[cohort]["fedni"][column][0]
            for rows in FEDNI_FIGURES.values():
                assert all(row.value(cohort, metric) < full for row in rows)
    assert sum(phase["seconds"] for phase in FEDNI_TABLE_VI.values()) == 77


def test_the_paper_stands_beside_its_own_methods_only():
    """Ten runs a variant and metric, .05 to either side: two decimals."""
    means = {"fedgcn": 0.6, "fedgcn-noise-off": 0.5, "ridge-central": 0.7}
    spread = {"scope": "institution", "sd": 0.05, "sd_of_repeats": 0.012}
    summary = pd.DataFrame(
        [
            {"variant": name, "metric": metric, "mean": mean, **spread}
            for name, mean in means.items()
            for metric in COLUMNS
        ]
    )
    runs = pd.DataFrame(
        [
            (name, number // 5, number % 5, "institution", metric, mean + 0.05 * (-1) ** number)
            for name, mean in means.items() for metric in COLUMNS for number in range(10)
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )  # fmt: skip
    own, fewer = resolved("fedgcn", "fedgcn"), resolved("fedgcn", "fedgcn", graph={"k": 5})
    assert paper_rows(summary, [fewer, RIDGE], "abide", Scored(runs, 0.25)) == []
    changed = resolved("fedgcn-noise-off", "fedgcn", noise=0.0)
    rows = paper_rows(summary, [own, changed, RIDGE], "abide", Scored(runs, 0.25))
    assert [row.variant.name for row in rows] == ["fedgcn"]
    assert [cell.text for cell in rows[0].cells][:5] == ["0.60", "0.644", "0.60", "0.643", "0.60"]
    assert rows[0].cells[1].note == "(.009)"
    assert [cell.printed for cell in rows[0].cells][:6] == [False, True, False, True, False, False]


def test_the_papers_auc_stands_beside_our_balanced_accuracy_and_ours_alone():
    beside = {column.ours: column.paper for column in PAPER_COLUMNS}
    assert beside["balanced_accuracy"] == "auc"
    assert beside["auc"] == ""
    assert sorted(filter(None, beside.values())) == sorted(PAPER_METRICS)


@pytest.mark.parametrize(("cohort", "apart"), [("abide", 0.004), ("adni", 0.010)])
def test_the_papers_auc_is_its_accuracy_within_the_stated_limit(cohort, apart):
    """FedNI Table V: largest difference FedNI's on ABIDE (.667, .663), FedMLP's on ADNI (.731, .721)."""
    found = [abs(row[0][0] - row[1][0]) for row in FEDNI_TABLE_V[cohort].values()]
    assert max(found) == pytest.approx(apart)
    assert f"equals its accuracy within .{round(1000 * apart):03d} in every row" in hard_labels(cohort)
    assert "probably" in hard_labels(cohort)


def test_table_v_is_whole():
    """FedNI Table V: six methods, five metrics, two cohorts; FedNI leads ABIDE in every metric."""
    assert [len(FEDNI_TABLE_V[cohort]) for cohort in ("abide", "adni")] == [6, 6]
    assert {len(row) for table in FEDNI_TABLE_V.values() for row in table.values()} == {len(PAPER_METRICS)}
    for column in range(len(PAPER_METRICS)):
        means = {method: row[column][0] for method, row in FEDNI_TABLE_V["abide"].items()}
        assert max(means, key=lambda method: means[method]) == "fedni"


@pytest.mark.parametrize(
    ("cohort", "found"),
    [
        ("abide", ("abide", True)),
        ("ABIDE-quick", ("abide", True)),
        ("adni", ("adni", True)),
        ("demo", ("abide", False)),
    ],
)
def test_which_column_of_the_paper(cohort, found):
    assert paper_cohort(cohort) == found
