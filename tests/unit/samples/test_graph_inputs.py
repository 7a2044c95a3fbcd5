"""Subjects as whole graphs: joined by id, unlabelled ones left out, test labels hidden."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.runtime.artefacts import write_table
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams
from brainfed.samples.assemble import assemble_graphs
from brainfed.samples.inputs import Outcome
from brainfed.samples.results import check, history_table, predictions_table
from support.files.connectome_files import built, correlations, edges_of, ids

COUNT, REGIONS = 7, 6
FOLD = np.array([0, 1, 0, 1, -1, 0, 1])
DIAGNOSIS = np.array([1, 0, 0, 1, 0, 1, 0])
LABELLED = [place for place in range(COUNT) if FOLD[place] >= 0]


@pytest.fixture
def graphs(tmp_path):
    """The graphs of seven subjects, and tables of them with shuffled rows; the fifth has no label."""
    order = np.random.default_rng(0).permutation(COUNT)
    split = pd.DataFrame({"subject": ids(COUNT), "institution": list("abababa"), "fold": FOLD})
    people = pd.DataFrame(
        {
            "subject": ids(COUNT),
            "site": "one",
            "age": 20.0,
            "sex": pd.array(["male"] * COUNT, dtype="string"),
            "diagnosis": pd.array(np.where(FOLD >= 0, DIAGNOSIS, None), dtype="Int8"),
            "mean_fd": 0.1,
        }
    )
    write_table(tmp_path / "split.parquet", split.iloc[order])
    write_table(tmp_path / "participants.parquet", people.iloc[order[::-1]])
    return built(tmp_path, correlations(COUNT, REGIONS), REGIONS)


def assembled(folder, files=1, labels="true", **given):
    return assemble_graphs(
        split=folder / "split.parquet",
        participants=folder / "participants.parquet",
        connectomes=[folder / "connectomes.safetensors"] * files,
        labels=labels,
        streams=Streams(1),
        **given,
    )


def test_labelled_subjects_have_their_graphs(tmp_path, graphs):
    inputs, truth = assembled(tmp_path)
    assert inputs.subjects == tuple(ids(COUNT)[place] for place in LABELLED)
    assert inputs.institutions == ("a", "b")
    np.testing.assert_array_equal(inputs.institution, np.array([0, 1, 0, 1, 0, 1, 0])[LABELLED])
    np.testing.assert_array_equal(truth, DIAGNOSIS[LABELLED])
    for place, subject in enumerate(LABELLED):
        assert edges_of(inputs.fold_graphs(0), place) == edges_of(graphs, subject)


def test_labels_are_hidden_where_their_subjects_are_tested(tmp_path, graphs):
    for labels in ("true", "permuted"):
        inputs, truth = assembled(tmp_path, labels=labels)
        tested = np.arange(2)[:, None] == FOLD[LABELLED]
        np.testing.assert_array_equal(inputs.labels, np.where(tested, -1, truth))


def test_one_file_a_fold_gives_every_fold_its_graphs(tmp_path, graphs):
    inputs, _ = assembled(tmp_path, files=2)
    assert len(inputs.graphs) == 2 and inputs.fold_graphs(1) is inputs.graphs[1]
    shared, _ = assembled(tmp_path)
    assert shared.fold_graphs(1) is shared.graphs[0]


def test_a_subject_of_the_split_without_a_graph_is_named(tmp_path, graphs):
    built(tmp_path, correlations(COUNT - 1, REGIONS), REGIONS)
    with pytest.raises(UserError, match=r"connectomes\.safetensors: subject 's06' is missing"):
        assembled(tmp_path)


def test_graphs_of_other_subjects_widths_or_folds_are_no_inputs(tmp_path, graphs):
    inputs, _ = assembled(tmp_path)
    whole = inputs.graphs[0]
    wide = replace(whole, nodes=np.pad(whole.nodes, ((0, 0), (0, 1))))
    for held in ((graphs,), (whole, wide), (whole, whole, whole), ()):
        with pytest.raises(ValueError, match="expected"):
            replace(inputs, graphs=held)
    with pytest.raises(ValueError, match="must not have the label"):
        replace(inputs, labels=np.ones_like(inputs.labels))


def test_an_outcome_on_graphs_becomes_tables(tmp_path, graphs):
    inputs, truth = assembled(tmp_path, classes=3)
    tested = np.arange(2)[:, None] == inputs.fold
    scores = np.where(tested[..., None], 1 / 3, np.nan) * np.ones(3)
    outcome = Outcome(scores, "probability", scores[None], np.ones((1, 2, 2)))
    check(inputs, outcome)
    table = predictions_table(inputs, outcome, truth, ["x", "y", "z"])
    assert table["subject"].tolist() == list(inputs.subjects)
    assert table["label"].tolist() == truth.tolist()
    assert len(history_table(inputs, outcome, truth)) == 4
    with pytest.raises(ValueError, match="contributions"):
        check(inputs, replace(outcome, contributions=np.zeros((len(inputs.subjects), 3, 1), dtype=np.float32)))
