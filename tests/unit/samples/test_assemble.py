"""One repeat's artefacts become a method's inputs: joined by id, test labels hidden."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from brainfed.runtime import Streams, UserError, write_arrays, write_table
from brainfed.samples import assemble, read_features, read_people

COUNT = 24
FOLDS = 3


class Artefacts:
    """A small cohort's files: 24 subjects, two institutions, three folds, features (24, 4), a ring of edges."""

    def __init__(self, folder, order=None):
        self.folder = folder
        self.order = np.arange(COUNT) if order is None else order
        self.subjects = np.array([f"s{number:02d}" for number in range(COUNT)], dtype=object)
        rng = np.random.default_rng(0)
        self.diagnosis = rng.permutation(COUNT) % 2
        self.fold = rng.permutation(COUNT) % FOLDS
        self.institution = np.where(rng.permutation(COUNT) % 2, "east", "west").astype(object)
        self.features = rng.standard_normal((COUNT, 4)).astype(np.float32)
        self.age = rng.uniform(8, 40, COUNT)
        self.age[3] = np.nan
        self.sex = np.where(rng.permutation(COUNT) % 2, "male", "female").astype(object)
        self.sex[5] = None

    def write(self):
        """Every table and array with its rows in `order`."""
        order = self.order
        split = pd.DataFrame({"subject": self.subjects, "institution": self.institution, "fold": self.fold})
        participants = pd.DataFrame(
            {
                "subject": self.subjects,
                "site": np.where(np.arange(COUNT) < 10, "b-site", "a-site"),
                "age": self.age,
                "sex": pd.array(self.sex, dtype="string"),
                "diagnosis": pd.array(self.diagnosis, dtype="Int8"),
                "mean_fd": np.arange(COUNT) / 100,
            }
        )
        write_table(self.folder / "split.parquet", split.iloc[order])
        write_table(self.folder / "participants.parquet", participants.iloc[order[::-1]])
        metadata = {"subjects": list(self.subjects[order])}
        write_arrays(self.folder / "features.safetensors", {"features": self.features[order]}, metadata)
        place = np.empty(COUNT, dtype=np.int64)
        place[order] = np.arange(COUNT)
        row = np.concatenate([np.arange(COUNT), np.arange(COUNT)])
        column = np.concatenate([np.arange(COUNT), np.roll(np.arange(COUNT), 1)])
        weight = np.concatenate([np.ones(COUNT), np.arange(1, COUNT + 1)]).astype(np.float32)
        entries = order.tolist() + [COUNT + entry for entry in order]
        arrays = {"row": place[row[entries]], "column": place[column[entries]], "weight": weight[entries]}
        write_arrays(self.folder / "graph.safetensors", arrays, metadata)
        return self

    def assemble(self, labels="true", streams=None, folds=1):
        return assemble(
            split=self.folder / "split.parquet",
            participants=self.folder / "participants.parquet",
            features=[self.folder / "features.safetensors"] * folds,
            graphs=[self.folder / "graph.safetensors"] * folds,
            labels=labels,
            streams=streams or Streams(1),
        )


@pytest.fixture
def artefacts(tmp_path):
    return Artefacts(tmp_path).write()


def assert_equal(found, expected):
    """Two dataclasses hold the same values, arrays included."""
    for field in dataclasses.fields(expected):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        if dataclasses.is_dataclass(theirs):
            assert_equal(ours, theirs)
        elif isinstance(theirs, tuple) and theirs and dataclasses.is_dataclass(theirs[0]):
            for one, other in zip(ours, theirs, strict=True):
                assert_equal(one, other)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=field.name)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_in_any_artefact_does_not_matter(tmp_path, seed):
    (tmp_path / "sorted").mkdir()
    (tmp_path / "shuffled").mkdir()
    expected, expected_truth = Artefacts(tmp_path / "sorted").write().assemble()
    order = np.random.default_rng(seed).permutation(COUNT)
    found, truth = Artefacts(tmp_path / "shuffled", order).write().assemble()
    assert_equal(found, expected)
    np.testing.assert_array_equal(truth, expected_truth)


def test_values_stand_where_their_subject_stands(artefacts):
    inputs, truth = artefacts.assemble()
    assert inputs.subjects == tuple(artefacts.subjects)
    assert inputs.institutions == ("east", "west")
    np.testing.assert_array_equal(inputs.institution, (artefacts.institution == "west").astype(int))
    np.testing.assert_array_equal(inputs.fold, artefacts.fold)
    np.testing.assert_array_equal(inputs.features[0], artefacts.features)
    np.testing.assert_array_equal(truth, artefacts.diagnosis)
    np.testing.assert_array_equal(inputs.phenotypes.site, np.where(np.arange(COUNT) < 10, 1, 0))
    np.testing.assert_array_equal(inputs.phenotypes.age, artefacts.age)
    assert inputs.phenotypes.sex[5] == -1
    assert set(inputs.phenotypes.sex) == {-1, 0, 1}


def test_labels_are_hidden_exactly_where_a_subject_is_tested(artefacts):
    inputs, truth = artefacts.assemble()
    assert inputs.labels.shape == (FOLDS, COUNT)
    for fold in range(FOLDS):
        for subject in range(COUNT):
            expected = -1 if artefacts.fold[subject] == fold else artefacts.diagnosis[subject]
            assert inputs.labels[fold, subject] == expected
    assert set(truth) == {0, 1}


def held_out(artefacts, tested=6):
    """The artefacts with one test set; the last two subjects have no label."""
    artefacts.fold = np.where(np.arange(COUNT) < tested, 0, -1)
    artefacts.diagnosis = np.where(np.arange(COUNT) < COUNT - 2, artefacts.diagnosis, pd.NA)
    return artefacts.write()


def test_with_one_test_set_the_label_decides_who_trains(artefacts):
    inputs, truth = held_out(artefacts).assemble()
    known = [int(label) for label in artefacts.diagnosis[:-2]]
    assert truth.tolist() == [*known, -1, -1]
    assert inputs.labels.tolist() == [[-1] * 6 + known[6:] + [-1, -1]]
    assert inputs.folds == 1


def test_a_method_without_a_graph_is_given_the_labelled_subjects_of_one_test_set(artefacts):
    held_out(artefacts)
    inputs, truth = assemble(
        split=artefacts.folder / "split.parquet",
        participants=artefacts.folder / "participants.parquet",
        features=[artefacts.folder / "features.safetensors"],
        graphs=[],
        labels="true",
        streams=Streams(1),
    )
    assert inputs.subjects == tuple(artefacts.subjects[:-2])
    assert inputs.training(0).sum() == COUNT - 8 and (truth >= 0).all()


def test_permuted_labels_are_shuffled_inside_the_training_and_the_test_set_of_an_institution(artefacts):
    held_out(artefacts, tested=10)
    _, truth = artefacts.assemble()
    shuffled = [artefacts.assemble("permuted", Streams(seed))[1] for seed in range(20)]
    changed = np.any([found != truth for found in shuffled], axis=0)
    for found in shuffled:
        assert found[-2:].tolist() == [-1, -1]
        for institution in ("east", "west"):
            for fold in (0, -1):
                cell = (artefacts.institution == institution) & (artefacts.fold == fold)
                assert sorted(found[cell]) == sorted(truth[cell])
    assert changed[artefacts.fold == 0].any() and changed[artefacts.fold == -1].any()


def test_one_file_a_fold_becomes_one_array_a_fold(artefacts):
    inputs, _ = artefacts.assemble(folds=FOLDS)
    assert len(inputs.features) == len(inputs.graphs) == FOLDS


def counts(artefacts, labels):
    frame = pd.DataFrame({"institution": artefacts.institution, "fold": artefacts.fold, "label": labels})
    return frame.groupby(["institution", "fold"])["label"].agg(["sum", "size"])


def test_permuted_labels_keep_the_patients_of_every_institution_and_fold(artefacts):
    drawn = [artefacts.assemble("permuted", Streams(1, repeat))[1] for repeat in range(10)]
    for truth in drawn:
        pd.testing.assert_frame_equal(counts(artefacts, truth), counts(artefacts, artefacts.diagnosis))
    assert len({truth.tobytes() for truth in drawn}) > 1
    assert any((truth != artefacts.diagnosis).any() for truth in drawn)


def test_permuted_labels_are_hidden_where_tested_too(artefacts):
    inputs, truth = artefacts.assemble("permuted")
    tested = np.arange(FOLDS)[:, None] == artefacts.fold
    np.testing.assert_array_equal(inputs.labels, np.where(tested, -1, truth))


def test_permuted_labels_do_not_depend_on_the_order_of_rows(tmp_path, artefacts):
    (tmp_path / "shuffled").mkdir()
    other = Artefacts(tmp_path / "shuffled", np.random.default_rng(4).permutation(COUNT)).write()
    np.testing.assert_array_equal(other.assemble("permuted")[1], artefacts.assemble("permuted")[1])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_names_the_subject_and_the_file(tmp_path, value):
    artefacts = Artefacts(tmp_path)
    artefacts.features[7, 2] = value
    artefacts.write()
    with pytest.raises(UserError, match=r"features\.safetensors.*'s07'.*not finite"):
        artefacts.assemble()


def test_a_subject_without_features_is_named(artefacts):
    kept = np.delete(np.arange(COUNT), 11)
    metadata = {"subjects": list(artefacts.subjects[kept])}
    write_arrays(artefacts.folder / "features.safetensors", {"features": artefacts.features[kept]}, metadata)
    with pytest.raises(UserError, match=r"features\.safetensors.*'s11' is missing"):
        artefacts.assemble()


def test_features_of_somebody_outside_the_split_do_no_harm(artefacts):
    expected, _ = artefacts.assemble()
    metadata = {"subjects": ["a-stranger", *artefacts.subjects]}
    strange = np.vstack([np.full(4, np.nan, dtype=np.float32), artefacts.features])
    write_arrays(artefacts.folder / "features.safetensors", {"features": strange}, metadata)
    found, _ = artefacts.assemble()
    assert_equal(found, expected)


def test_a_graph_of_other_subjects_is_refused(artefacts):
    loops = {"row": np.arange(2), "column": np.arange(2), "weight": np.ones(2, dtype=np.float32)}
    write_arrays(artefacts.folder / "graph.safetensors", loops, {"subjects": ["s00", "s01"]})
    with pytest.raises(UserError, match=r"graph\.safetensors.*not those of the split"):
        artefacts.assemble()


def test_a_subject_of_the_split_without_phenotypes_is_named(artefacts):
    split = artefacts.folder / "split.parquet"
    table = pd.read_parquet(split)
    write_table(split, pd.concat([table, table.tail(1).assign(subject="nobody")]))
    with pytest.raises(UserError, match=r"'nobody' is not in .*participants\.parquet"):
        read_people(split, artefacts.folder / "participants.parquet")


def test_features_in_the_order_of_the_subjects_are_pages_of_their_file(artefacts):
    path = artefacts.folder / "features.safetensors"
    features = read_features(path, list(artefacts.subjects))
    np.testing.assert_array_equal(features, artefacts.features)
    assert isinstance(features.base, np.memmap) and not features.flags.writeable
    fewer = read_features(path, list(artefacts.subjects[3:9]))
    np.testing.assert_array_equal(fewer, artefacts.features[3:9])


@pytest.mark.parametrize("kind", [np.float64, np.int32])
def test_features_of_another_kind_become_float32(tmp_path, kind):
    rows = np.arange(12).reshape(4, 3).astype(kind)
    write_arrays(tmp_path / "f.safetensors", {"a": rows, "features": rows}, {"subjects": list("abcd")})
    found = read_features(tmp_path / "f.safetensors", list("abcd"))
    np.testing.assert_array_equal(found, rows.astype(np.float32))
    assert found.dtype == np.float32


def test_a_file_without_features_says_so(tmp_path):
    write_arrays(tmp_path / "f.safetensors", {"other": np.zeros(3)}, {"subjects": ["a"]})
    with pytest.raises(UserError, match="features"):
        read_features(tmp_path / "f.safetensors", ["a"])
