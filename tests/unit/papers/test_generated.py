"""What the page says of generated nodes: how many, what they change, what their training sends and costs; and why."""

from dataclasses import MISSING, fields, replace

import numpy as np
import pandas as pd
import pytest

from brainfed.papers._fedni_nodes import GeneratedNodes, count_sentences, effect_sentences, read_generated
from brainfed.papers._fedni_tables import homophily_sentences, why_sentences
from brainfed.reporting import CohortOutline, PageTests, read_scored
from brainfed.reporting.tables import read_costs, read_exchanges
from brainfed.runtime import write_arrays, write_tsv
from support.reports.report_experiments import experiment, read, variant_outline

RANDOM = {"institutions": "random", "validation": "folds"}


def page_tests(outline):
    return PageTests(read_scored(outline), outline.variants, outline.reference)


def cohort_with(figures):
    nothing = dict.fromkeys((field.name for field in fields(CohortOutline) if field.default is MISSING), "")
    return CohortOutline(
        **nothing | {"name": "toy", "quality": (), "crossings": (), "flag": {}, "figures": figures, "experiments": ()}
    )


def test_generated_nodes_are_counted_from_the_fused_graph(tmp_path):
    """Three subjects, two generated nodes of the first; node 3 is joined to 0 and 1, node 4 to 0 and to node 3."""
    edges = [(0, 0), (0, 3), (0, 4), (1, 1), (1, 3), (2, 2), (3, 0), (3, 1), (3, 3), (3, 4), (4, 0), (4, 3), (4, 4)]
    row, column = np.array(edges).T
    arrays = {"row": row, "column": column, "parent": np.zeros(2, dtype=np.int64), "count": np.array([2.4, 0.6, 0.0])}
    write_arrays(tmp_path / "fused.safetensors", arrays, {})
    outline = variant_outline(tmp_path, "fedni", "fedni") | {"fused": [str(tmp_path / "fused.safetensors")] * 2}
    variants = read(experiment(tmp_path, "none", [(outline, 0.6, 0.6)])).variants
    (found,) = read_generated(variants)
    assert (found.subjects, found.generated) == (3, 2)
    assert found.each == pytest.approx(2 / 3)
    assert found.predicted == pytest.approx(1.0)
    assert found.predicted_sd == pytest.approx(np.sqrt((1.4**2 + 0.4**2 + 1) / 3))
    assert found.neighbours == pytest.approx(3 / 2)
    assert found.reached == pytest.approx(2 / 3)


def test_no_node_and_a_limit_on_nodes_are_said(tmp_path):
    (variant,) = read(experiment(tmp_path, "none", [(variant_outline(tmp_path, "fedni", "fedni"), 0.6, 0.6)])).variants
    some = GeneratedNodes(variant, 200, 100.0, 12.5, 4.0, 3.0, 0.9)
    assert count_sentences([some], RANDOM) == [
        "FedNI predicts 12.50 missing neighbours for a subject and generates 0.50: a limit on the nodes decides their "
        "number, the prediction decides who gets them."
    ]
    (none,) = count_sentences([replace(some, generated=0.0, predicted=0.24)], RANDOM)
    assert none.startswith("FedNI generates no node: it predicts 0.24 missing neighbours for a subject on average")
    assert count_sentences([replace(some, generated=1500.0)], RANDOM) == []


@pytest.mark.parametrize(
    ("split", "stages", "said"),
    [
        (RANDOM, {}, ""),
        ({"institutions": "sites"}, {}, "these are sites,"),
        ({"institutions": "site_groups"}, {}, "these are groups of sites,"),
        ({"validation": "leave_one_site_out"}, {}, "these are sites,"),
        ({"institutions": "sites"}, {"graph": {"scope": "local"}}, ""),
        ({"institutions": "sites"}, {"inpainting": {"count": "printed"}}, ""),
    ],
)
def test_a_warning_follows_a_number_that_is_scaled_for_random_institutions(tmp_path, split, stages, said):
    outline = experiment(tmp_path, "none", [(variant_outline(tmp_path, "fedni", "fedni"), 0.6, 0.6)])
    (variant,) = read(outline).variants
    scaled = {"graph": {"scope": "global_cut"}, "inpainting": {"count": "calibrated"}}
    held = GeneratedNodes(replace(variant, stages={**variant.stages, **scaled, **stages}), 9, 9.0, 1.0, 1.0, 3.0, 1.0)
    found = count_sentences([held], {**RANDOM, **split})
    assert len(found) == bool(said)
    assert all("tend to be too high" in one and said in one for one in found)


def test_a_method_without_generated_nodes_has_no_row(tmp_path):
    outline = experiment(tmp_path, "none", [(variant_outline(tmp_path, "fedgcn", "fedgcn"), 0.6, 0.6)])
    assert read_generated(read(outline).variants) == []


def test_the_effect_of_the_nodes_on_the_scores(tmp_path):
    rows = [
        (variant_outline(tmp_path, "fedni", "fedni"), 0.66, 0.70),
        (variant_outline(tmp_path, "fedgcn", "fedgcn"), 0.60, 0.70),
        (variant_outline(tmp_path, "fedni-random-nodes", "fedni", fusing={"nodes": "random"}), 0.66, 0.71),
    ]
    outline = read(experiment(tmp_path, "none", rows))
    without, random, counted = effect_sentences(page_tests(outline))
    assert without.startswith("FedNI minus FedGCN, the same classifier without them: +0.060 [")
    assert "in accuracy (significant) and 0.000 [" in without
    assert without.endswith("in AUC (not significant).")
    assert random.startswith("FedNI minus FedNI (random nodes), as many nodes drawn at random: 0.00 [")
    assert (
        counted
        == "p is Holm-corrected over all 4 comparisons with FedNI in the tests below, methods, metrics and scopes."
    )


def test_every_control_of_the_nodes_has_a_sentence(tmp_path):
    held = [(variant_outline(tmp_path, "fedni", "fedni"), 0.66, 0.71)] + [
        (variant_outline(tmp_path, f"fedni-{nodes}", "fedni", fusing={"nodes": nodes}), 0.66, 0.70)
        for nodes in ("true", "mean", "shuffled")
    ]
    found = effect_sentences(page_tests(read(experiment(tmp_path, "none", held))))
    assert ["the institution's mean" in found[0], "trade places" in found[1], "an oracle" in found[2]] == [True] * 3


def test_centroids_stand_beside_their_own_controls_and_predict_nothing(tmp_path):
    held = [
        (variant_outline(tmp_path, "fedni-centroids", "fedni-centroids"), 0.66, 0.71),
        (variant_outline(tmp_path, "fedgcn", "fedgcn"), 0.60, 0.70),
        (variant_outline(tmp_path, "fedni-centroids-mean", "fedni-centroids", fusing={"nodes": "mean"}), 0.66, 0.70),
        (variant_outline(tmp_path, "fedni-mean", "fedni", fusing={"nodes": "mean"}), 0.66, 0.70),
    ]
    outline = read(experiment(tmp_path, "none", held))
    without, mean, _ = effect_sentences(page_tests(outline))
    assert "minus FedGCN, the same classifier without them: +0.060 [" in without
    assert "the institution's mean in place of each node" in mean
    (variant,) = (one for one in outline.variants if one.name == "fedni-centroids")
    own = replace(variant, stages={**variant.stages, "inpainting": {"min_group": 10}})
    none, many = (GeneratedNodes(own, 9, count, 1.0, 1.0, 3.0, 1.0) for count in (0.0, 3.0))
    assert [none.predicts, count_sentences([many], RANDOM)] == [False, []]
    assert count_sentences([none], RANDOM) == [
        f"{own.title} has no new node: it trains on the population graph as it is."
    ]


def test_the_nodes_are_judged_among_all_comparisons_with_fedni(tmp_path):
    """Alone FedNI minus FedGCN would be significant, among the baselines of the page it is not: one word for both."""
    rows = [(variant_outline(tmp_path, name, name), mean, mean) for name, mean in
            (("fedni", 0.66), ("fedgcn", 0.649), ("fedmlp", 0.66), ("fedsage-plus", 0.66))]  # fmt: skip
    outline = read(experiment(tmp_path, "none", rows, reference="fedmlp"))
    scored = read_scored(outline)
    alone = scored.differences("fedgcn", ["fedni"], "auc")["fedni"][1]
    among = scored.differences("fedni", ["fedgcn", "fedmlp", "fedsage-plus"], "auc")["fedgcn"][1]
    assert alone < 0.05 < among
    effects = effect_sentences(page_tests(outline))
    assert "(significant)" not in effects[0]
    assert effects[1].endswith("over the 3 comparisons with FedNI on this page, metric by metric.")


def test_both_phases_of_an_exchange_stand_apart(tmp_path):
    rows = [(variant_outline(tmp_path, name, name), 0.6, 0.6) for name in ("fedgcn", "fedni")]
    variants = read(experiment(tmp_path, "none", rows)).variants
    found = read_exchanges(variants)
    assert [(one.variant.name, one.stage) for one in found] == [
        ("fedgcn", "classifier"), ("fedni", "inpainting"), ("fedni", "classifier")
    ]  # fmt: skip
    inpainting = found[1]
    assert inpainting.kinds == ["encoder"]
    assert (inpainting.volume("upload"), inpainting.volume("download")) == (10_137_600, 10_137_600)
    assert [one.noise for one in found] == [0.01, 0.01, 0.01]


def test_both_phases_of_a_cost_stand_apart(tmp_path):
    """Generators of 300 and 320 s, classifiers of 40 and 41 s; 10 + 30 rounds."""
    rows = [(variant_outline(tmp_path, name, name), 0.6, 0.6) for name in ("fedgcn", "fedni")]
    plain, own = read_costs(read(experiment(tmp_path, "none", rows)).variants)
    assert (own.seconds, own.inpainting_seconds, own.memory, own.rounds) == (40.5, 310.0, 900.0, 40)
    assert own.operations == {"inpainting": 29_000_000_000_000, "classifier": 127_543_680_000}
    assert np.isnan(plain.inpainting_seconds)
    assert own.together == 350.5 + sum(own.preparation.values())
    assert plain.together == plain.seconds + sum(plain.preparation.values())
    assert (plain.rounds, plain.operations, plain.memory) == (10, {"classifier": 127_543_680_000}, 500.0)


def test_homophily_is_reported_with_chance():
    table = pd.DataFrame(
        [("inside institutions", "diagnosis", 0.53, 0.50), ("inside institutions", "diagnosis", 0.51, 0.50),
         ("inside institutions", "sex", 1.0, 0.7)],
        columns=["title", "label", "found", "chance"],
    )  # fmt: skip
    (said,) = homophily_sentences(table)
    assert said.startswith("Edges that join equal diagnoses, in the graphs shown under Graphs (those of the first")
    assert ": 52 % (inside institutions; by chance 50 %)." in said
    assert said.endswith("hardly more alike than chance, that may dilute the signal.")
    assert homophily_sentences(table.assign(found=np.nan)) == []


def test_variants_that_improve_the_plain_network_are_named(tmp_path):
    rows = [
        (variant_outline(tmp_path, "fedgcn", "fedgcn"), 0.6, 0.60),
        (variant_outline(tmp_path, "fedgcn-skip", "fedgcn", settings={"skip": "linear"}), 0.6, 0.68),
        (variant_outline(tmp_path, "fedgcn-shuffled", "fedgcn", graph={"shuffle": True}), 0.6, 0.601),
        (variant_outline(tmp_path, "fedgcn-paper", "fedgcn", settings={"standardise": "none"}), 0.6, 0.54),
        (variant_outline(tmp_path, "fedmlp", "fedmlp"), 0.6, 0.66),
    ]
    figures = {"homophily": str(tmp_path / "homophily.svg")}
    table = pd.DataFrame([("inside", "diagnosis", 0.6, 0.5)], columns=["title", "label", "found", "chance"])
    write_tsv(tmp_path / "homophily.tsv", table)
    outline = read(experiment(tmp_path, "bars", rows, name="why"))
    homophily, repairs = why_sentences(cohort_with(figures), outline, page_tests(outline))
    assert "60 % (inside; by chance 50 %)" in homophily
    assert repairs == (
        "Beside FedGCN as it is (AUC 0.60), significantly better: FedGCN (skip) (+0.080) and FedMLP (+0.06); "
        "significantly worse: FedGCN (paper) (\u22120.060) (4 compared, "
        "Holm-corrected over all 8 comparisons with FedGCN in the tests below, methods, metrics and scopes)."
    )
    assert len(why_sentences(cohort_with({}), outline, page_tests(outline))) == 1


def test_other_experiments_ask_no_why(tmp_path):
    rows = [(variant_outline(tmp_path, name, name), 0.6, 0.6) for name in ("fedgcn", "fedmlp")]
    outline = read(experiment(tmp_path, "bars", rows))
    assert why_sentences(cohort_with({}), outline, page_tests(outline)) == []
