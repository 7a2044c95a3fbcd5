"""Participants with the columns that a job declares, and no other."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.phenotype import ALL, FIELDS, Participant, participants_table, values_of
from brainfed.configuration.layout._layout import OF_METHODS
from brainfed.methods import METHODS
from brainfed.samples import Phenotypes, phenotypes_of, read_people

PEOPLE = [
    ("a", Participant("north", 31.0, "male", 1, 0.25), ""),
    ("b", Participant("south", float("nan"), None, None, float("nan")), "no series"),
    ("c", Participant("north", 7.5, "female", 0, 0.5), ""),
]


@pytest.mark.parametrize("count", range(1, len(FIELDS)))
def test_a_file_has_the_declared_columns_of_all_participants_and_no_other(count):
    everything = participants_table(values_of(PEOPLE, FIELDS))
    for columns in combinations(FIELDS, count):
        table = participants_table(values_of(PEOPLE, reversed(columns)))
        fields = ["subject", *(field for name in columns for field in FIELDS[name])]
        pd.testing.assert_frame_equal(table, everything[fields])


def test_all_columns_are_those_of_the_participants():
    table = participants_table(values_of(PEOPLE, ALL))
    assert list(table) == [
        "subject", "site", "age", "sex", "diagnosis", "mean_fd", "fd_source", "fd_problem", "has_series", "absence",
    ]  # fmt: skip
    assert table["fd_source"].tolist() == ["table", "", "table"]
    assert table["has_series"].tolist() == [True, False, True]


def test_whether_a_diagnosis_is_known_does_not_tell_which_it_is():
    other = [(subject, Participant("north", 1.0, None, 1, 1.0), absence) for subject, _, absence in PEOPLE[::2]]
    assert values_of(other, ["labelled"]) == values_of(PEOPLE[::2], ["labelled"])


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="found 'iq'"):
        values_of(PEOPLE, ["age", "iq"])


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_no_cell_of_a_column_reaches_a_method_that_does_not_declare_it(method, tmp_path):
    declared = (*OF_METHODS, *method.phenotypes)
    participants_table(values_of(PEOPLE, declared)).to_parquet(tmp_path / "people.parquet")
    split = pd.DataFrame({"subject": ["a", "b", "c"], "institution": "north", "fold": 0})
    split.to_parquet(tmp_path / "split.parquet")
    known = phenotypes_of(read_people(tmp_path / "split.parquet", tmp_path / "people.parquet"))
    for name in ("site", "sex", "age", "mean_fd"):
        if name in declared:
            assert len(known.of(name)) == 3
        else:
            with pytest.raises(ValueError, match=f"column '{name}' .* add it to `Method.phenotypes`"):
                known.of(name)


def test_generated_nodes_have_unknown_values_of_declared_columns_alone():
    more = Phenotypes(sex=np.array([1, 0])).with_unknown(2)
    assert more.of("sex").tolist() == [1, 0, -1, -1]
    assert (more.site, more.age, more.mean_fd) == (None, None, None)
    assert np.isnan(more.or_unknown("age", 4)).all()
