"""What institutions gain: rows, printed numbers found by settings, and what scoring on the test set is worth."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from brainfed.configuration.shipped import shipped_settings
from brainfed.evaluation.scorings import COLUMNS
from brainfed.methods.registry import METHODS, SHIPPED_VARIANTS
from brainfed.reporting.tables.institutions.gains import gain_table
from brainfed.reporting.tables.institutions.gcfl_numbers import (
    GCFL_NUMBERS,
    INSTITUTIONS,
    TABLES,
    THRESHOLDS,
    gcfl_source,
    printed_method,
)
from brainfed.reporting.variants import ShownVariant

PROTEINS = {"eps1": 0.03, "eps2": 0.06, "sequence": 10}


def shown(name, **changes):
    """A shipped variant with further settings."""
    own = dict(SHIPPED_VARIANTS[name])
    method = METHODS[own.pop("method")]
    settings = asdict(method.settings()) | own | changes
    return ShownVariant(
        name, method.name, method.title, method.family, settings, shipped=shipped_settings(method),
        clusters=method.clusters,
    )  # fmt: skip


VARIANTS = [
    shown("selftrain"), shown("fedavg-gin"), shown("fedprox-gin"), shown("gcfl", **PROTEINS),
    shown("gcfl-plus", **PROTEINS),
]  # fmt: skip


def table_of(**scores):
    """Rows of `COLUMNS`: variant -> (last model, paper scoring)."""
    rows = [
        (name.replace("_", "-"), scoring, accuracy, 0.02, 0.05, 5, "" if name == "selftrain" else "selftrain",
         np.nan if name == "selftrain" else accuracy - 0.75, None if name == "selftrain" else 7, 1, 10)
        for name, both in scores.items()
        for scoring, accuracy in zip(("last model", "paper scoring"), both, strict=True)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=list(COLUMNS))


SCORES = table_of(
    selftrain=(0.72, 0.72), fedavg_gin=(0.75, 0.75), fedprox_gin=(0.756, 0.756), gcfl=(0.741, 0.765),
    gcfl_plus=(0.759, 0.78),
)  # fmt: skip


def texts(table):
    return {row.variant.name: [cell.text for cell in row.cells] for row in table.rows}


def test_a_row_has_both_scorings_beside_the_printed_numbers():
    table = gain_table(SCORES, VARIANTS, "gcfl", "PROTEINS")
    assert texts(table)["gcfl-plus"] == [
        "0.759", "+0.009", "7 of 10", "0.780", "+0.030", "7 of 10", "0.778", "\u22120.015", "9 of 10"
    ]  # fmt: skip
    assert texts(table)["selftrain"] == ["0.720", "–", "–", "0.720", "–", "–", "0.721", "–", "–"]
    (best,) = [row for row in table.rows if row.cells[0].marked]
    assert best.variant.name == "gcfl-plus"
    assert best.cells[0].note == ".020 · .050"
    assert best.cells[2].note == "1 equal"
    assert table.source.endswith("NeurIPS 2021, Table 3.")


def test_the_worth_of_the_scoring_is_a_sentence():
    table = gain_table(SCORES, VARIANTS, "", "toy")
    assert table.worth == (
        "Scoring by the best of several models on the test data adds .024 to GCFL and .021 to GCFL+; the ranking uses "
        "the last model."
    )
    assert table.source == ""
    assert {len(row.cells) for row in table.rows} == {6}
    same = gain_table(table_of(gcfl=(0.7, 0.7), gcfl_plus=(0.7, 0.7001)), VARIANTS[3:], "", "toy")
    assert "adds nothing to GCFL and less than .001 to GCFL+;" in same.worth


@pytest.mark.parametrize("cohort", sorted(GCFL_NUMBERS))
def test_every_row_of_the_paper_is_found_under_its_thresholds(cohort):
    eps1, eps2, sequence = THRESHOLDS[cohort]
    cut = {"eps1": eps1, "eps2": eps2, "sequence": sequence}
    variants = [*VARIANTS[:3], shown("gcfl", **cut), shown("gcfl-plus", **cut)]
    assert [printed_method(variant, cohort) for variant in variants] == list(GCFL_NUMBERS[cohort])
    assert all(0 <= (row.improved or 0) <= INSTITUTIONS[cohort] for row in GCFL_NUMBERS[cohort].values())


@pytest.mark.parametrize(
    "variant",
    [
        shown("selftrain", epochs=49),
        shown("fedavg-gin", proximal=0.1),
        shown("fedavg-gin", proximal=0.01, rounds=100),
        shown("gcfl"),
        shown("gcfl", **PROTEINS, first_cut=0),
        shown("gcfl", **PROTEINS, clustering="balanced"),
        shown("gcfl-plus", **PROTEINS | {"sequence": 5}),
        shown("fedgcn"),
    ],
    ids=lambda variant: f"{variant.name}-{variant.settings.get('rounds')}",
)
def test_a_variant_with_other_settings_has_no_printed_number(variant):
    assert printed_method(variant, "proteins") == ""


def test_a_sequence_is_no_setting_of_plain_gcfl():
    assert printed_method(shown("gcfl", **PROTEINS | {"sequence": 5}), "proteins") == "gcfl"


def test_settings_of_connectomes_do_not_hide_a_printed_number():
    assert printed_method(replace(VARIANTS[1], stages={"connectomes": {"density": 0.3}}), "mix") == "fedavg"


def test_other_institutions_than_the_papers_are_reported():
    assert gcfl_source("MIX", 9).endswith("Table 4. It has 13 institutions, we have 9.")
    assert (
        set(INSTITUTIONS)
        == set(GCFL_NUMBERS)
        == set(THRESHOLDS)
        == {name for names in TABLES.values() for name in names}
    )


def test_an_experiment_of_another_cohort_has_no_printed_column():
    assert gain_table(SCORES, VARIANTS, "gcfl", "abide").source == ""


def test_a_variant_called_plus_has_a_plus_in_its_title():
    assert [variant.title for variant in VARIANTS[3:]] == ["GCFL", "GCFL+"]
    short = replace(VARIANTS[4], name="gcfl-plus-short")
    assert (short.title, short.unswept_title) == ("GCFL+ (short)", "GCFL+ (short)")
    sage = shown("fedsage-plus")
    assert sage.title == METHODS["fedsage-plus"].title
