"""Views stand side by side in one file: joined by id, zeros where a subject lacks one, described in the metadata."""

import numpy as np
import pytest

from brainfed.imaging import ViewSettings, join_views
from brainfed.runtime import UserError, write_arrays
from brainfed.samples import read_features
from brainfed.samples._inputs import read_views

REFERENCE = {"stage": "features", "name": "tangent-reference", "direction": "upload", "bytes": 8}
VIEWS = {
    "connectome": ViewSettings(connectivity="tangent", reference="training"),
    "thickness": ViewSettings(kind="morphometry", weight=0.15, centre="site", standardise=True, clip=4.0),
}


def feature_file(path, subjects, columns, crossings=(), **metadata):
    """Features of some subjects: the number of a subject times 10, plus that of the column."""
    numbers = np.array([int(subject[1:]) for subject in subjects])
    features = (10 * numbers[:, None] + np.arange(columns)).astype(np.float32)
    held = {"subjects": subjects, "regions": [f"r{column}" for column in range(columns)], "crossings": list(crossings)}
    write_arrays(path, {"features": features}, {**held, "settings": {"kind": "connectivity"}, **metadata})
    return path


@pytest.fixture
def files(tmp_path):
    """Three subjects with a connectome; the second has no thickness, and a fourth has thickness alone."""
    thick = {"kind": "morphometry"}
    return [
        feature_file(tmp_path / "tangent.safetensors", ["s1", "s2", "s3"], 3, [REFERENCE]),
        feature_file(tmp_path / "thickness.safetensors", ["s0", "s1", "s3"], 2, settings=thick),
    ]


def test_rows_are_those_of_the_first_view_and_a_missing_view_is_zero(files):
    joined = join_views(files, VIEWS)
    assert joined.metadata["subjects"] == ["s1", "s2", "s3"]
    expected = [[10, 11, 12, 10, 11], [20, 21, 22, 0, 0], [30, 31, 32, 30, 31]]
    np.testing.assert_array_equal(joined.features, expected)
    assert joined.features.dtype == np.float32


def test_the_metadata_describe_every_block(files):
    connectome, thickness = join_views(files, VIEWS).metadata["views"]
    assert (connectome["start"], connectome["stop"], connectome["lacking"]) == (0, 3, [])
    assert (connectome["weight"], connectome["centre"], connectome["clip"]) == (1.0, "all", None)
    assert thickness == {
        "name": "thickness",
        "start": 3,
        "stop": 5,
        "weight": 0.15,
        "centre": "site",
        "unseen_site": "own",
        "standardise": True,
        "clip": 4.0,
        "lacking": ["s2"],
        "regions": ["r0", "r1"],
        "settings": {"kind": "morphometry"},
    }


def test_crossings_of_all_views_are_kept_and_equal_names_carry_their_view(files, tmp_path):
    assert join_views(files, VIEWS).metadata["crossings"] == [REFERENCE]
    other = feature_file(tmp_path / "other.safetensors", ["s1", "s2", "s3"], 3, [REFERENCE])
    found = join_views([files[0], other], {"rest": VIEWS["connectome"], "task": VIEWS["connectome"]})
    assert [row["name"] for row in found.metadata["crossings"]] == [
        "tangent-reference (rest)",
        "tangent-reference (task)",
    ]


def test_a_view_of_nobody_is_refused(files, tmp_path):
    strangers = feature_file(tmp_path / "strangers.safetensors", ["x8", "x9"], 2)
    with pytest.raises(UserError, match=r"the view 'thickness' of a subject that has 'connectome' too.*freesurfer.id"):
        join_views([files[0], strangers], VIEWS)


def written(files, path):
    joined = join_views(files, VIEWS)
    write_arrays(path, {"features": joined.features}, joined.metadata)
    return path


def test_samples_read_the_views_with_a_mask_in_the_order_of_their_subjects(files, tmp_path):
    path = written(files, tmp_path / "joined.safetensors")
    connectome, thickness = read_views([path], ["s3", "s2"])
    assert connectome.columns == slice(0, 3)
    assert thickness.columns == slice(3, 5)
    np.testing.assert_array_equal(connectome.present, [True, True])
    np.testing.assert_array_equal(thickness.present, [True, False])
    assert (thickness.weight, thickness.centre, thickness.standardise, thickness.clip) == (0.15, "site", True, 4.0)
    np.testing.assert_array_equal(read_features(path, ["s3", "s2"])[:, 3:], [[30, 31], [0, 0]])


def test_features_of_one_view_have_no_views(files):
    assert read_views(files[:1], ["s1"]) == ()
    assert read_views([], ["s1"]) == ()


def test_folds_with_other_views_are_refused(files, tmp_path):
    first = written(files, tmp_path / "fold-0.safetensors")
    second = written([files[0], feature_file(tmp_path / "t.safetensors", ["s1"], 2)], tmp_path / "fold-1.safetensors")
    with pytest.raises(UserError, match=r"fold-1\.safetensors: expected the views of .*fold-0\.safetensors"):
        read_views([first, second], ["s1"])


@pytest.mark.parametrize("joined", [False, True])
def test_measures_that_a_subject_of_the_split_lacks_are_refused_as_first_view(files, tmp_path, joined):
    path = files[1]
    if joined:
        path = tmp_path / "joined.safetensors"
        found = join_views(files[::-1], {"thickness": VIEWS["thickness"], "connectome": VIEWS["connectome"]})
        write_arrays(path, {"features": found.features}, found.metadata)
    with pytest.raises(UserError, match=r"FreeSurfer measures of every subject, found none of 's2' \(1 of 2 subjects"):
        read_features(path, ["s1", "s2"])
