"""The series of all subjects in one file: z-scored, in order of id, from parts; bad ones are named."""

import numpy as np
import pytest

from brainfed.imaging import SeriesSettings
from brainfed.imaging.series import write_series
from brainfed.imaging.series._shards import scaled
from brainfed.runtime import UserError, read_arrays, write_arrays

LENGTHS = {"c": 9, "a": 6, "d": 12, "b": 5}
NAMES = ("left", "middle", "right")


def series_of(subject, regions=3):
    drawn = np.random.default_rng(LENGTHS[subject]).standard_normal((LENGTHS[subject], regions))
    return (7 + 3 * drawn).astype(np.float32)


def write_part(path, held, regions=NAMES, runs=None):
    write_arrays(path, held, {"atlas": "x", "regions": list(regions)} | ({"runs": runs} if runs else {}))
    return path


def parts(folder, runs=None, **changed):
    """Two parts with two subjects each, and one without."""
    held = {subject: series_of(subject) for subject in LENGTHS} | changed
    return [
        write_part(folder / "shard-0.safetensors", {subject: held[subject] for subject in "ca"}, runs=runs),
        write_part(folder / "shard-1.safetensors", {}, ()),
        write_part(folder / "shard-2.safetensors", {subject: held[subject] for subject in "db"}),
    ]


def joined(folder, files, subjects="dcba", **settings):
    write_series(folder / "all.safetensors", files, list(subjects), SeriesSettings(**settings), {"crossings": []})
    return read_arrays(folder / "all.safetensors")


def plain(series):
    """z-scores, one region after the other."""
    columns = [(column - column.mean()) / column.std() for column in series.astype(np.float64).T]
    return np.stack(columns, axis=1)


def test_subjects_follow_each_other_in_order_of_id_as_z_scores(tmp_path):
    found = joined(tmp_path, parts(tmp_path))
    assert found.subjects == ("a", "b", "c", "d")
    assert found.metadata["regions"] == list(NAMES) and found.metadata["crossings"] == []
    start, series = found.arrays["start"], found.arrays["series"]
    assert start.dtype == np.int64 and start.tolist() == [0, 6, 11, 20, 32]
    assert series.dtype == np.float32
    for position, subject in enumerate(found.subjects):
        own = series[start[position] : start[position + 1]]
        np.testing.assert_allclose(own, plain(series_of(subject)), atol=1e-5)


def test_only_these_subjects_are_joined_and_the_parts_make_no_difference(tmp_path):
    several = joined(tmp_path, parts(tmp_path), "bd")
    whole = write_part(tmp_path / "one.safetensors", {subject: series_of(subject) for subject in LENGTHS})
    single = joined(tmp_path, [whole], "db")
    assert several.subjects == single.subjects == ("b", "d")
    np.testing.assert_array_equal(several.arrays["series"], single.arrays["series"])


def test_runs_are_scaled_one_by_one_where_the_config_asks(tmp_path):
    files = parts(tmp_path, runs={"c": [4, 5]})
    whole, by_run = joined(tmp_path, files, "c"), joined(tmp_path, files, "c", scale="zscore_runs")
    np.testing.assert_allclose(whole.arrays["series"], plain(series_of("c")), atol=1e-5)
    runs = np.split(series_of("c"), [4])
    np.testing.assert_allclose(by_run.arrays["series"], np.concatenate([plain(run) for run in runs]), atol=1e-5)


@pytest.mark.parametrize("value", [0.1, np.nan])
def test_a_region_without_signal_is_0(value):
    series = series_of("a")
    series[:, 1] = value
    found = scaled("a", series)
    assert (found[:, 1] == 0).all()
    np.testing.assert_allclose(found[:, [0, 2]], plain(series_of("a"))[:, [0, 2]], atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_named(tmp_path, value):
    series = series_of("b")
    series[3, 2] = value
    with pytest.raises(UserError, match=rf"Subject b: .* found {value} at time point 3 of region 2 .*; mend the file"):
        joined(tmp_path, parts(tmp_path, b=series))


def test_a_subject_without_a_series_or_with_one_time_point_is_named(tmp_path):
    with pytest.raises(UserError, match=r"Subject z: expected its series in a part .* found none; delete the folder"):
        joined(tmp_path, parts(tmp_path), "az")
    with pytest.raises(UserError, match="Subject a: expected a series of at least 2 time points, found 1; set"):
        joined(tmp_path, parts(tmp_path, a=series_of("a")[:1]))
    assert not (tmp_path / "all.safetensors").exists()


def test_parts_with_other_regions_are_refused(tmp_path):
    files = parts(tmp_path, a=series_of("a", regions=2))
    with pytest.raises(UserError, match=r"shard-0.*expected a series of 3 regions of subject a, found an array \(6, 2"):
        joined(tmp_path, files)
    other = write_part(tmp_path / "other.safetensors", {"b": series_of("b")}, NAMES[::-1])
    with pytest.raises(UserError, match="found other names or another order"):
        joined(tmp_path, [files[0], other], "ab")
