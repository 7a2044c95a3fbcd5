"""The first line of a text file of region series names the regions, is the first volume, or is refused."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.checking._project import SeriesCheck
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import ListedSubject
from brainfed.imaging.series import load_series, read_roi_series, read_shard
from brainfed.runtime import UserError
from support.files.run_of_cohort import parts_of

COLUMNS, VOLUMES = 6, 12
SETTINGS = CohortSettings(source="timeseries", regions=COLUMNS, min_timepoints=3, atlas="six")
REALS = np.random.default_rng(1).normal(0, 1, (VOLUMES, COLUMNS)).round(4).astype(np.float32)
INTEGERS = np.random.default_rng(2).integers(900, 1100, (VOLUMES, COLUMNS)).astype(np.float32)
AAL = ("2001", "2002", "2101", "2102", "2111", "2112")


def write(folder, header, values, separator=",", name="s1.csv"):
    rows = [separator.join(f"{value:.8g}" for value in row) for row in values]
    path = folder / name
    path.write_text("\n".join([*([separator.join(header)] if header else []), *rows]) + "\n")
    return path


def read(path, header=None, indices=None, columns=COLUMNS):
    return read_roi_series("s1", path, columns, header, indices)


def complaint(path, **settings):
    with pytest.raises(UserError) as caught:
        read(path, **settings)
    return str(caught.value)


@pytest.mark.parametrize(
    "header", [AAL, ("1001", "1002", "1003", "1005", "1006", "1007"), ("10", "11", "12", "13", "17", "18")]
)
@pytest.mark.parametrize("separator", [",", "\t", ";", " "])
def test_ascending_integer_labels_above_reals_are_a_header(tmp_path, header, separator):
    named = read(write(tmp_path, header, REALS, separator))
    assert np.array_equal(named.series, REALS)
    assert named.regions == header


@pytest.mark.parametrize("values", [REALS, INTEGERS])
def test_the_indices_of_the_region_table_are_a_header_above_any_numbers(tmp_path, values):
    named = read(write(tmp_path, AAL, values), indices=[int(label) for label in AAL])
    assert np.array_equal(named.series, values)
    assert named.regions == AAL


@pytest.mark.parametrize("header", [("0", "1", "2", "3", "4", "5"), ("1", "2", "3", "4", "5", "6")])
@pytest.mark.parametrize("values", [REALS, INTEGERS])
def test_a_line_that_counts_the_columns_is_a_header(tmp_path, header, values):
    named = read(write(tmp_path, header, values))
    assert np.array_equal(named.series, values)
    assert named.regions == ("1", "2", "3", "4", "5", "6")


@pytest.mark.parametrize(
    ("header", "values"),
    [
        (AAL, INTEGERS),
        (AAL[::-1], REALS),
        (AAL[::-1], INTEGERS),
        (("1", "2", "3", "4", "5", "6"), np.arange(7, 43).reshape(6, 6)),
    ],
    ids=["ascending above integers", "descending above reals", "descending above integers", "a ramp"],
)
def test_integers_that_may_be_either_are_refused_until_the_config_decides(tmp_path, header, values):
    path = write(tmp_path, header, values)
    said = complaint(path)
    assert "line 1: expected region names or a volume, found integers that may be either" in said
    assert "set `header: true`" in said and "`header: false`" in said
    assert np.array_equal(read(path, header=True).series, values)
    assert len(read(path, header=False).series) == len(values) + 1


@pytest.mark.parametrize(
    "header",
    [
        [f"{label}.0" for label in AAL],
        [f"{int(label) / 1000}e3" for label in AAL],
        [f"{int(label):.18e}" for label in AAL],
        ["1.0", "2.0", "3.0", "4.0", "5.0", "6.0"],
    ],
    ids=["a point", "a short exponent", "savetxt", "counted"],
)
def test_ascending_labels_in_any_notation_are_a_header_above_reals(tmp_path, header):
    named = read(write(tmp_path, header, REALS))
    assert np.array_equal(named.series, REALS)
    assert named.regions == (AAL if header[0] != "1.0" else ("1", "2", "3", "4", "5", "6"))


def test_labels_of_an_array_saved_with_its_series_are_names(tmp_path):
    np.savetxt(tmp_path / "s1.csv", np.vstack([np.array(AAL, dtype=float), REALS]), delimiter=",")
    named = read(tmp_path / "s1.csv")
    assert np.array_equal(named.series, REALS)
    assert named.regions == AAL


@pytest.mark.parametrize(
    "header",
    [
        ("+2001", "+2002", "+2101", "+2102", "+2111", "+2112"),
        ("-1", "2", "3", "4", "5", "6"),
        ("-1.0", "2.0", "3.0", "4.0", "5.0", "6.0"),
        ("2001", "2002", "2101", "2102", "2111", "2111"),
        ("2001.0", "2002.0", "2101.0", "2102.0", "2111.0", "2111.0"),
        ("0", "0", "1", "0", "0", "0"),
    ],
)
def test_integers_with_a_sign_or_twice_above_reals_are_refused_until_the_config_decides(tmp_path, header):
    path = write(tmp_path, header, REALS)
    said = complaint(path)
    assert "line 1: expected region names or a volume, found integers that may be either" in said
    assert "set `header: true`" in said and "`header: false`" in said
    assert np.array_equal(read(path, header=False).series[0], np.array(header, dtype=np.float32))
    if len(set(header)) == COLUMNS:
        assert np.array_equal(read(path, header=True).series, REALS)
    else:
        assert "expected every region once" in complaint(path, header=True)


@pytest.mark.parametrize("first", ["-1,2,3,4,5,6", "7,7,8,9,10,11", "-1.0,2.0,3.0,4.0,5.0,6.0"])
def test_integers_below_zero_or_twice_above_integers_are_a_volume(tmp_path, first):
    values = np.vstack([np.array(first.split(","), dtype=np.float32), INTEGERS])
    path = write(tmp_path, first.split(","), INTEGERS)
    assert np.array_equal(read(path).series, values)


def test_integers_with_a_point_are_read_as_other_integers(tmp_path):
    path = tmp_path / "s1.csv"
    np.savetxt(path, INTEGERS, fmt="%.1f", delimiter=",")
    assert np.array_equal(read(path).series, INTEGERS)
    np.savetxt(path, np.vstack([np.array(AAL, dtype=float), INTEGERS]), fmt="%.1f", delimiter=",")
    assert "may be either" in complaint(path)
    assert read(path, header=True).regions == AAL


def test_few_ascending_integers_above_reals_are_refused(tmp_path):
    assert "may be either" in complaint(write(tmp_path, ("3", "7", "9"), REALS[:, :3]), columns=3)


@pytest.mark.parametrize("seed", range(20))
def test_a_table_of_integers_keeps_its_first_volume_or_is_refused(tmp_path, seed):
    values = np.random.default_rng(seed).integers(0, 2000, (40, 20))
    assert np.array_equal(read(write(tmp_path, (), values), columns=20).series, values)


def test_a_first_volume_of_zeros_above_reals_is_a_volume(tmp_path):
    values = np.vstack([np.zeros((1, COLUMNS), dtype=np.float32), REALS])
    assert np.array_equal(read(write(tmp_path, (), values)).series, values)


@pytest.mark.parametrize("first", [("V1", "0.5", "M1", "2", "3", "4"), ("12", "x", "14", "15", "16", "17")])
def test_a_line_of_words_and_numbers_is_refused_above_integers(tmp_path, first):
    said = complaint(write(tmp_path, first, INTEGERS))
    assert "line 1: expected region names or numbers, found both" in said
    assert read(write(tmp_path, first, INTEGERS), header=True).regions == first


@pytest.mark.parametrize("values", [REALS, REALS / 1e6, -REALS, np.round(REALS)])
def test_a_volume_under_header_true_is_no_line_of_names(tmp_path, values):
    said = complaint(write(tmp_path, (), values), header=True)
    assert "set `header: false`" in said and "line 1" in said
    assert "rename one" not in said or "else rename one" in said


def test_integers_under_header_true_that_differ_between_files_may_be_volumes(tmp_path):
    files = {one: write(tmp_path, (), np.roll(INTEGERS, place, axis=0), name=one) for place, one in enumerate("ab")}
    with pytest.raises(
        UserError, match="another order in the header; set `header: false` if the first line is a volume"
    ):
        job(tmp_path, replace(SETTINGS, header=True), files)


def test_parts_with_other_names_are_named_by_files_that_exist(tmp_path):
    check, refused = SeriesCheck("c", SETTINGS), []
    paths = [write(tmp_path, header, REALS, name=f"{header[0]}.csv") for header in ("ABCDEF", "FEDCBA")]
    for path in paths:
        check.look(ListedSubject(path.stem, "a", str(path), None, "", f"shard-{path.stem}"), refused.append)
    (finding,) = check.remarks({})
    assert refused == []
    assert finding.sentence.startswith(f"{paths[1]}: expected the 6 regions of {paths[0]}, found other names")


@pytest.mark.parametrize(
    ("regions", "header", "remedy"),
    [
        (4, (), "set `regions: 6` if all files are so"),
        (4, tuple("ABCDEF"), "set `regions: 6` if all files are so"),
        (None, tuple("ABCDE"), "repair the first line"),
    ],
)
def test_another_number_of_regions_is_refused_with_the_setting_to_change(tmp_path, regions, header, remedy):
    assert remedy in complaint(write(tmp_path, header, REALS), columns=regions)


def test_another_number_of_regions_than_the_table_names_the_table(tmp_path):
    said = complaint(write(tmp_path, (), REALS), columns=4, indices=[1, 2, 3, 4])
    assert "expected 4 regions, found 6 columns; name the table of this atlas under `labels`" in said


def test_words_under_header_false_are_refused(tmp_path):
    assert "line 1: expected a finite number in column 1, found 'A'" in complaint(
        write(tmp_path, tuple("ABCDEF"), REALS), header=False
    )


def test_a_header_of_numpy_is_read(tmp_path):
    np.savetxt(tmp_path / "s1.txt", INTEGERS, header="1 2 3 4 5 7", fmt="%d")
    named = read(tmp_path / "s1.txt")
    assert np.array_equal(named.series, INTEGERS)
    assert named.regions == ("1", "2", "3", "4", "5", "7")


@pytest.mark.parametrize("separator", [",", "\t", ";", " "])
def test_quoted_names_may_hold_separators(tmp_path, separator):
    names = ("Inferior Frontal Gyrus, pars triangularis", "Heschl's Gyrus", "a;b", "c\td", "Pole", "Brain-Stem")
    named = read(write(tmp_path, tuple(f'"{name}"' for name in names), REALS, separator))
    assert np.array_equal(named.series, REALS)
    assert [" ".join(name.split()) for name in named.regions] == [" ".join(name.split()) for name in names]


def test_unquoted_commas_in_names_between_tabs_are_not_separators(tmp_path):
    names = ("Frontal, left", "Frontal, right", "A, x, y", "B", "C", "D")
    assert read(write(tmp_path, names, REALS, "\t")).regions == names


def labelled(folder, rows):
    table = folder / "labels.tsv"
    table.write_text("index\tname\n" + "".join(f"{index}\t{name}\n" for index, name in rows))
    return replace(SETTINGS, labels=str(table), regions=None)


def job(folder, settings, files):
    out = parts_of(folder)
    read_shard(files, settings, out)
    return load_series([out.series], sorted(files))


def test_a_header_in_another_order_than_the_region_table_is_refused(tmp_path):
    settings = labelled(tmp_path, zip(AAL, "ABCDEF", strict=True))
    for header in (AAL[::-1], tuple(f"{label}.0" for label in AAL[::-1]), tuple("FEDCBA")):
        with pytest.raises(
            UserError, match=r"expected the regions of .*labels\.tsv, found other names or another order"
        ):
            job(tmp_path, settings, {"s1": write(tmp_path, header, REALS)})
    assert job(tmp_path, settings, {"s1": write(tmp_path, AAL, REALS)})[1] == tuple("ABCDEF")


def test_a_counting_header_in_one_file_only_is_the_same_atlas(tmp_path):
    counted = write(tmp_path, ("1", "2", "3", "4", "5", "6"), REALS, name="s1.csv")
    bare = write(tmp_path, (), REALS, name="s2.csv")
    series, regions = job(tmp_path, SETTINGS, {"s1": counted, "s2": bare})
    assert np.array_equal(series["s1"], series["s2"])
    assert regions == ("1", "2", "3", "4", "5", "6")
    check, refused = SeriesCheck("c", SETTINGS), []
    for subject, path in (("s1", counted), ("s2", bare)):
        check.look(ListedSubject(subject, "a", str(path), None, "", "shard-00"), refused.append)
    assert refused == [] == list(check.remarks({}))


def test_the_line_of_a_bad_cell_counts_blank_lines(tmp_path):
    path = tmp_path / "s1.csv"
    path.write_text("A,B\n\n1,2\n\n3,x\n")
    assert "line 5: expected a finite number in column 2, found 'x'" in complaint(path, columns=2)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1,5;2,5\n3,5;4,5\n", "line 1: expected numbers with decimal points, found decimal commas, '1,5;2,5'"),
        (b"A;B\n1,5;2,5\n", "line 2: expected numbers with decimal points, found decimal commas"),
        (b"A;B\n1;2\n1,5;2\n", "line 3: expected a finite number in column 1, found '1,5' .*write points for decimal"),
        (b"# made by me\n# in a hurry\n", "found lines that begin with # alone"),
        (b"1 2\n# half time\n3 4\n", "line 2: expected .*, found"),
        (
            b"sep=;\n1;2\n3;4\n",
            "line 1: expected region names or numbers, found Excel's line 'sep=;'; remove this line",
        ),
        ("1,2\n3,4\n".encode("utf-16-le"), "found UTF-16 text without a byte order mark; save it as UTF-8"),
        (b"1,2\n3,\x00\x00\x00\x00\n", "found a binary file"),
        (b"\x1f\x8b\x08\x00\x00", "found a gzip file; unpack it"),
        (b"PK\x03\x04\x00\x00", "found an Excel workbook or a zip archive"),
        ("V\u00e91,B\n1,2\n".encode("latin-1"), "expected a text file of region series, found an unreadable one"),
    ],
)
def test_other_contents_than_a_table_of_numbers_are_named(tmp_path, content, words):
    path = tmp_path / "s1.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"Subject s1, .*s1\.csv.*{words}"):
        read(path, columns=2)


def test_a_signal_beyond_single_precision_is_refused(tmp_path):
    path = tmp_path / "s1.csv"
    np.savetxt(path, REALS.astype(np.float64) + 1e9, fmt="%.6f", delimiter=",")
    said = complaint(path)
    assert "expected a signal that single precision can hold, found values in column 1 that range over" in said
    assert "(6 such columns); subtract its mean from each column" in said
    np.savetxt(path, REALS.astype(np.float64) * 100 + 1e4, fmt="%.6f", delimiter=",")
    assert len(read(path).series) == VOLUMES


def test_constant_columns_and_rounding_noise_of_single_precision_are_accepted(tmp_path):
    values = REALS.copy()
    values[:, 1] = 1e9
    values[:, 2] = np.float32(1000) + np.random.default_rng(0).integers(0, 2, VOLUMES) * np.spacing(np.float32(1000))
    path = tmp_path / "s1.csv"
    pd.DataFrame(values).to_csv(path, index=False, header=False, float_format="%.12g")
    assert np.array_equal(read(path).series, values)


def test_parts_without_a_series_do_not_name_the_regions(tmp_path):
    outs = []
    for name, header in (("one", ()), ("two", tuple("ABCDEF"))):
        out = parts_of(tmp_path, name)
        values = REALS if header else REALS[:1]
        path = write(tmp_path, header, values, name=f"{name}.csv")
        read_shard({name: path}, replace(SETTINGS, on_invalid="drop"), out)
        outs.append(out.series)
    assert load_series(outs, ["two"])[1] == tuple("ABCDEF")
