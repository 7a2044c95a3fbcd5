"""Existing region series: accepted and refused files."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.settings import CohortSettings
from brainfed.imaging.series import load_series, read_roi_series, read_shard, varying_regions
from brainfed.imaging.series._roi_series import constant_regions, empty_regions
from brainfed.runtime import UserError
from support.files.run_of_cohort import parts_of

SETTINGS = CohortSettings(source="timeseries", regions=2, min_timepoints=3, atlas="two")
VALUES = np.array([[1, -2.5], [3, 4e-3], [5, 6]], dtype=np.float32)


def write(folder, text, name="s1.1D"):
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("#1\t#2\n1\t-2.5\n3\t4e-3\n5\t6\n", ("1", "2")),
        ("# 1\t# 2\n1\t-2.5\n3\t4e-3\n5\t6", ("1", "2")),
        ("1 -2.5\n3 4e-3\n5 6\n", ("1", "2")),
        ("  1   -2.5\n  3  0.004\n  5  6\n", ("1", "2")),
        ("V1,M1\n1,-2.5\n3,4e-3\n5,6\n", ("V1", "M1")),
        ('\ufeff"V1";"M1"\r\n1;-2.5\r\n3;4e-3\r\n5;6\r\n', ("V1", "M1")),
        ("File\tSub-brick\tMean_1\tMean_7  \ns.nii.gz\t0[?]\t1\t-2.5\ns.nii.gz\t1\t3\t4e-3\nx\t2\t5\t6\n", ("1", "7")),
    ],
)
def test_any_usual_text_file_is_read(tmp_path, text, names):
    named = read_roi_series("s1", write(tmp_path, text), 2)
    assert np.array_equal(named.series, VALUES)
    assert named.series.dtype == np.float32
    assert named.regions == names


@pytest.mark.parametrize("first", ["1.0,2.5,3.0", "-1,2,3", "4,4,5", "0,0,0"])
def test_a_first_line_of_impossible_labels_is_a_volume(tmp_path, first):
    assert len(read_roi_series("s1", write(tmp_path, f"{first}\n1.5,2,3\n"), 3).series) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1.5\tn/a\n1\t2\n", "line 1: expected a name or a finite number in every column, found 'n/a' in column 2"),
        ("1.5,\n1,2\n", "line 1: expected a name or a finite number in every column, found '' in column 2"),
        (",0,1\n0,1,2\n1,3,4\n", "line 1: .* found '' in column 1; .* remove the column if it counts the rows"),
        (",A,B\n0,1,2\n1,3,4\n", "line 1: .* found '' in column 1"),
        ("A,A\n1,2\n3,4\n", "line 1: expected every region once, found 'A' again; rename one"),
        ("#1\t#2\t#3\n1\t2\t3\n", "expected 2 regions, found 3 columns"),
        ("#1\t#2\n1\t2\t3\n", "expected 2 regions, found 3 columns under 2 names"),
        ("#1\t#2\n1\t2\nnan\t4\n", "line 3: expected a finite number in column 1, found 'nan'"),
        ("#1\t#2\n1\t2\n3\t-inf\n", "line 3: expected a finite number in column 2, found '-inf'"),
        ("#1\t#2\n1\t2\n3\t\n5\t\n", r"line 3: expected a finite number in column 2, found '' \(2 such cells\)"),
        ("File\tSub-brick\tMean_1\tMean_2\nx\t0\t1\t2\nx\t1\t3\tnan\n", "line 3: .* in column 4, found 'nan'"),
        ("File\tSub-brick\tMean_1\nx\t0\t1\nx\t1\t3\n", "expected 2 regions, found 1 columns"),
        ("#1\t#2\n1\t2\n3\tx\n", "line 3: expected a finite number in column 2, found 'x'"),
        ("#1\t#2\nTrue\t2.5\nTrue\t1\n", r"line 2: .* finite number in column 1, found 'True' \(2 such cells\)"),
        ("#1\t#2\nTrue\t2.5\n1\t1\n", r"line 2: .* finite number in column 1, found 'True' \(1 such cells\)"),
        ("#1\t#2\n1\tfalse\n2\tfalse\n", "line 2: expected a finite number in column 2, found 'false'"),
        ("1 2\n3 4 5\n", "expected rows of equal length"),
        ("#1\t#2\n", "expected rows of numbers, found lines that begin with # alone"),
        ("V1\tM1\n", "expected rows of equal length, found a broken table"),
        ("", "expected rows"),
    ],
)
def test_a_broken_file_is_named(tmp_path, text, message):
    with pytest.raises(UserError, match=f"Subject s1, .*s1.1D.*{message}"):
        read_roi_series("s1", write(tmp_path, text), 2)


@pytest.mark.parametrize(("header", "named"), [("time,V1\n", r" \('time'\)"), ("#1,#2\n", r" \('1'\)"), ("", "")])
@pytest.mark.parametrize("start", [0, 1])
def test_a_first_column_that_counts_the_volumes_is_a_region_only_if_their_number_is_set(tmp_path, header, named, start):
    rows = "".join(f"{start + volume},{np.sin(volume):.4f}\n" for volume in range(8))
    path = write(tmp_path, header + rows)
    with pytest.raises(
        UserError, match=rf"found column 1{named} that counts the rows from {start} to {start + 7}; remove"
    ):
        read_roi_series("s1", path, None)
    assert read_roi_series("s1", path, 2).series.shape == (8, 2)


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"Subject s1, .*absent.1D: expected a text file"):
        read_roi_series("s1", tmp_path / "absent.1D", 2)


def test_regions_without_signal_are_found():
    series = np.array([[0, 1000, 1000, np.nan, 0], [0, 1000, 1000.5, np.nan, 1e-9]], dtype=np.float32)
    assert constant_regions(series).tolist() == [True, True, False, False, False]
    assert empty_regions(series).tolist() == [False, False, False, True, False]
    assert varying_regions(series).tolist() == [False, False, True, False, True]


def shard(folder, settings, name="shard", tr=None, **texts):
    files = {subject: write(folder, text, f"{subject}.1D") for subject, text in texts.items()}
    out = parts_of(folder, name)
    read_shard(files, settings, out, tr)
    return out


def test_a_shard_counts_constant_regions_and_finds_equal_series_by_checksum(tmp_path):
    out = shard(
        tmp_path, SETTINGS, tr={"s1": 2.0}, s2="1 7\n2 7\n3 7\n", s1="1.0 7.00\n2 7\n3 7\n", s3="1 7\n2 8\n3 7\n"
    )
    quality = pd.read_parquet(out.quality).set_index("subject")
    assert quality["constant_regions"].to_dict() == {"s1": 1, "s2": 1, "s3": 0}
    assert quality.loc["s1", "checksum"] == quality.loc["s2", "checksum"] != quality.loc["s3", "checksum"]
    assert quality["tr"].isna().to_dict() == {"s1": False, "s2": True, "s3": True}
    coverage = pd.read_parquet(out.coverage)
    assert coverage.loc[coverage["coverage"] == 0, ["subject", "region"]].to_numpy().tolist() == [
        ["s1", "2"],
        ["s2", "2"],
    ]


def test_a_short_series_stops_the_shard_or_drops_its_subject(tmp_path):
    with pytest.raises(
        UserError, match=r"Subject s1, .*/s1\.1D: expected at least 3 time points, found 2; .* \(on_invalid: drop\)\."
    ):
        shard(tmp_path, SETTINGS, s1="1 2\n3 4\n", s2="1 2\n3 4\n5 5\n")
    out = shard(tmp_path, replace(SETTINGS, on_invalid="drop"), s1="1 2\n3 4\n", s2="1 2\n3 4\n5 5\n")
    problems = pd.read_parquet(out.quality).set_index("subject")["problem"]
    assert "s1.1D: expected at least 3" in problems["s1"]
    assert problems["s2"] == ""
    assert load_series([out.series], ["s2"])[1] == ("1", "2")


def test_a_series_without_any_signal_is_refused(tmp_path):
    with pytest.raises(
        UserError, match=r"Subject s1, .*/s1\.1D: expected a signal, found all 2 regions constant or empty"
    ):
        shard(tmp_path, SETTINGS, s1="1 2\n1 2\n1 2\n")


def test_files_with_different_headers_are_refused(tmp_path):
    rows = "1,2\n3,4\n5,5\n"
    with pytest.raises(UserError, match=r"Subject s2, .*s2.1D: expected the regions of .*s1.1D"):
        shard(tmp_path, SETTINGS, s1=f"V1,M1\n{rows}", s2=f"M1,V1\n{rows}")


def test_an_unusable_first_file_does_not_name_the_regions_of_the_others(tmp_path):
    rows = "1,2\n3,4\n5,5\n"
    settings = replace(SETTINGS, on_invalid="drop")
    out = shard(tmp_path, settings, s1="A,B\n1,2\n3,4\n", s2=f"V1,M1\n{rows}", s3=f"V1,M1\n{rows}", s4=f"M1,V1\n{rows}")
    problems = pd.read_parquet(out.quality).set_index("subject")["problem"]
    assert "s1.1D: expected at least 3 time points" in problems["s1"]
    assert problems[["s2", "s3"]].tolist() == ["", ""]
    assert "expected the regions of" in problems["s4"] and "s2.1D" in problems["s4"]
    assert load_series([out.series], ["s2", "s3"])[1] == ("V1", "M1")


def test_a_region_table_names_the_regions(tmp_path):
    (tmp_path / "labels.tsv").write_text("index\tname\n1\tV1\n2\tM1\n")
    out = shard(tmp_path, replace(SETTINGS, labels=str(tmp_path / "labels.tsv")), s1="1 2\n3 4\n5 5\n")
    assert load_series([out.series], ["s1"])[1] == ("V1", "M1")


def test_shards_are_read_together_in_ascending_order(tmp_path):
    rows = "1 2\n3 4\n5 5\n"
    one = shard(tmp_path, SETTINGS, "one", s3=rows, s1=rows)
    two = shard(tmp_path, SETTINGS, "two", s2=rows)
    series, regions = load_series([two.series, one.series], ["s3", "s2"])
    assert list(series) == ["s2", "s3"]
    assert regions == ("1", "2")
    with pytest.raises(UserError, match="Subject s9: expected its series in one of 2 parts"):
        load_series([two.series, one.series], ["s1", "s9"])


def test_shards_with_other_regions_do_not_mix(tmp_path):
    rows = "1,2\n3,4\n5,5\n"
    one = shard(tmp_path, SETTINGS, "one", s1=f"V1,M1\n{rows}")
    two = shard(tmp_path, SETTINGS, "two", s2=f"M1,V1\n{rows}")
    with pytest.raises(UserError, match="found other names or another order"):
        load_series([one.series, two.series], ["s1", "s2"])


@pytest.mark.data
def test_abide_files_hold_the_series_they_were_written_from(tmp_path):
    data = Path(os.environ["BRAINFED_DATA"])
    subprocess.run([sys.executable, data / "lay-out-abide", tmp_path, "--subjects", "20"], check=True)
    files = sorted((tmp_path / "ABIDE_pcp" / "cpac" / "filt_global").glob("*_rois_cc200.1D"))
    assert len(files) == 20
    with np.load(data / "abide" / "timeseries.npz") as source:
        for file in files:
            subject = file.name.removesuffix("_rois_cc200.1D")
            named = read_roi_series(subject, file, 200)
            assert np.allclose(named.series, source[subject], atol=1e-6, rtol=1e-6)
            assert named.regions == tuple(str(index) for index in range(1, 201))
            assert constant_regions(named.series).sum() == (source[subject].std(axis=0) == 0).sum()
