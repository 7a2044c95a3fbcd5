"""What a generator is trained on: joined by id, without a diagnosis, and under `inductive` without the tested."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from brainfed.graphs import GraphSettings
from brainfed.runtime import Streams, UserError, write_arrays, write_table
from brainfed.samples import inpainting_inputs, read_cut

SUBJECTS = ["a", "b", "c", "d"]
FOLD = [0, 1, 0, 1]


@pytest.fixture
def files(tmp_path):
    """Four subjects in two institutions; the files hold them in different orders."""
    participants = pd.DataFrame(
        {
            "subject": SUBJECTS,
            "site": ["north", "south", "south", "north"],
            "age": [10.0, 20.0, np.nan, 40.0],
            "sex": pd.array(["male", "female", None, "male"], dtype="string"),
            "diagnosis": pd.array([0, 1, 1, 0], dtype="Int8"),
            "mean_fd": [0.1, 0.2, 0.3, 0.4],
        }
    )
    split = pd.DataFrame({"subject": SUBJECTS, "institution": ["y", "x", "y", "x"], "fold": FOLD})
    write_table(tmp_path / "split.parquet", split.iloc[[2, 0, 3, 1]])
    write_table(tmp_path / "participants.parquet", participants.iloc[::-1])
    features = {"features": np.array([[4.0], [3.0], [2.0], [1.0]], dtype=np.float32)}
    write_arrays(tmp_path / "features.safetensors", features, {"subjects": SUBJECTS[::-1]})
    graph = {"row": [0, 2], "column": [2, 0], "weight": [0.5, 0.5]}
    cut = {"cut_row": [0, 1], "cut_column": [1, 0], "cut_weight": [0.25, 0.25]}
    kinds = {"row": np.int64, "column": np.int64, "weight": np.float32}
    arrays = {name: np.array(values, dtype=kinds[name.removeprefix("cut_")]) for name, values in (graph | cut).items()}
    write_arrays(tmp_path / "graph.safetensors", arrays, {"subjects": SUBJECTS, "selected": [[0], [0]]})
    return tmp_path


def read(folder, **changes):
    arguments = {
        "split": folder / "split.parquet",
        "participants": folder / "participants.parquet",
        "features": folder / "features.safetensors",
        "graph": folder / "graph.safetensors",
        "graph_settings": GraphSettings(k=2),
        "protocol": "transductive",
        "part": "all",
        "streams": Streams(1),
    }
    return inpainting_inputs(**arguments | changes)


def test_everything_is_joined_by_id_in_ascending_order(files):
    inputs = read(files)
    assert inputs.subjects == ("a", "b", "c", "d")
    assert inputs.institutions == ("x", "y")
    assert inputs.institution.tolist() == [1, 0, 1, 0]
    assert inputs.features.tolist() == [[1.0], [2.0], [3.0], [4.0]]
    assert inputs.site.tolist() == [0, 1, 1, 0]
    assert inputs.sex.tolist() == [1, 0, -1, 1]
    np.testing.assert_array_equal(inputs.age, [10, 20, np.nan, 40])
    assert list(zip(inputs.graph.row, inputs.graph.column, strict=True)) == [(0, 2), (2, 0)]
    assert [columns.tolist() for columns in inputs.selected] == [[0], [0]]


def test_no_diagnosis_moves_anything(files):
    before = read(files)
    participants = pd.read_parquet(files / "participants.parquet")
    write_table(files / "participants.parquet", participants.assign(diagnosis=1 - participants["diagnosis"]))
    for name, value in vars(read(files)).items():
        np.testing.assert_equal(
            dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value,
            dataclasses.asdict(getattr(before, name)) if dataclasses.is_dataclass(value) else getattr(before, name),
        )
    assert "diagnosis" not in vars(before)
    assert "labels" not in vars(before)


@pytest.mark.parametrize(
    ("protocol", "part", "fitted"),
    [
        ("transductive", "all", [True, True, True, True]),
        ("transductive", "fold-1", [True, True, True, True]),
        ("inductive", "fold-0", [False, True, False, True]),
        ("inductive", "fold-1", [True, False, True, False]),
    ],
)
def test_the_fitted_subjects(files, protocol, part, fitted):
    inputs = read(files, protocol=protocol, part=part)
    assert inputs.fitted.tolist() == fitted
    assert inputs.part == part


def test_the_edges_that_were_cut_are_read_where_there_are_any(files):
    cut = read_cut(files / "graph.safetensors", SUBJECTS)
    assert list(zip(cut.row, cut.column, cut.weight, strict=True)) == [(0, 1, 0.25), (1, 0, 0.25)]
    with pytest.raises(UserError, match="its subjects are not those of the split"):
        read_cut(files / "graph.safetensors", SUBJECTS[::-1])
    with pytest.raises(UserError, match="cut_row"):
        read_cut(files / "features.safetensors", SUBJECTS)


def test_a_graph_of_other_subjects_is_refused(files):
    split = pd.read_parquet(files / "split.parquet")
    write_table(files / "split.parquet", split[split["subject"] != "b"])
    with pytest.raises(UserError, match="its subjects are not those of the split"):
        read(files)
