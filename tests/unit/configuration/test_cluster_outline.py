"""Which experiments are scored twice and have clusters to draw, and the files that this reads."""

import pytest
import yaml

from brainfed.cohort.sources.listing import list_cohort
from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.loading import load_plan
from brainfed.configuration.outline.clusters import (
    clustered_experiments,
    clustered_histories,
    clustered_variants,
    local_twins,
)
from brainfed.configuration.outline.experiment import experiment_outline

CONFIG = """
project: study
cohorts:
  ours: {source: simulate, simulate: {subjects: 12}}
split: {count: 2, folds: 2, repeats: 2}
variants:
  early: {method: gcfl, first_cut: 5}
experiments:
  clustered: {variants: [selftrain, fedavg-gin, early, ridge-central, gcfl-plus]}
  plain: {variants: [selftrain, fedavg-gin], reference: selftrain}
"""


@pytest.fixture(scope="module")
def plan():
    return load_plan(yaml.safe_load(CONFIG))


def test_experiments_with_a_clustered_variant_are_scored_twice(plan):
    assert [name for name in clustered_experiments(plan) if not name.endswith("-quick")] == ["clustered"]
    assert [variant.name for variant in clustered_variants(plan.experiments["clustered"])] == ["early", "gcfl-plus"]


def test_histories_are_in_order_of_variants_and_inside_them_of_repeats(plan):
    experiment = plan.experiments["clustered"]
    every = [path.split("/")[4:6] for path in clustered_histories("ours", experiment)]
    assert every == [["early", "repeat-0"], ["early", "repeat-1"], ["gcfl-plus", "repeat-0"], ["gcfl-plus", "repeat-1"]]
    first = clustered_histories("ours", experiment, repeats=1)
    assert [path.split("/")[4:] for path in first] == [
        ["early", "repeat-0", "history.parquet"], ["gcfl-plus", "repeat-0", "history.parquet"]
    ]  # fmt: skip


def test_federated_variants_are_compared_with_self_training(plan):
    assert local_twins(plan.experiments["clustered"]) == dict.fromkeys(
        ["fedavg-gin", "early", "gcfl-plus"], "selftrain"
    )


def test_a_report_reads_the_table_and_the_figure_of_a_clustered_experiment_alone(plan):
    layout = Layout(plan, {name: list_cohort(name, cohort) for name, cohort in plan.project.cohorts.items()})
    outlines = {name: experiment_outline(layout, "ours", plan.experiments[name]) for name in ("clustered", "plain")}
    assert outlines["clustered"]["tables"]["clients"] == "results/ours/tables/clustered-clients.tsv"
    assert outlines["clustered"]["figures"]["clusters"] == "results/ours/figures/clustered/clusters.svg"
    shown = {variant["name"]: variant["clusters"] for variant in outlines["clustered"]["variants"]}
    assert [name for name, clusters in shown.items() if clusters] == ["early", "gcfl-plus"]
    assert "clients" not in outlines["plain"]["tables"]
    assert "clusters" not in outlines["plain"]["figures"]
