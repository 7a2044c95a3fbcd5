"""FreeSurfer's tables are read, joined and normalised; broken ones are refused with one sentence."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.cohort.settings import CohortSettings, ColumnSettings, FreeSurferSettings
from brainfed.imaging.morphometry import measure_of, write_measures
from brainfed.imaging.morphometry._features import read_morphometry
from brainfed.imaging.morphometry._tables import is_feature, read_freesurfer_table
from brainfed.runtime import UserError, read_arrays
from support.files.freesurfer_project import write_table, write_tables
from support.files.run_of_cohort import parts_of

NAMED = FreeSurferSettings()
THREE = {"a": "001", "b": "002", "c": "003"}


def small(folder, name="aseg.tsv", first="Measure:volume", columns=("Left-Caudate", "eTIV"), **rows):
    return write_table(folder / name, first, columns, rows or {"001": (10, 1e6), "002": (20, 2e6), "003": (30, 3e6)})


def joined(*paths, settings=NAMED, identities=THREE, missing=()):
    return read_morphometry([read_freesurfer_table(path, settings) for path in paths], identities, settings, missing)


def test_tables_are_joined_by_id_and_not_by_row(tmp_path):
    thickness = write_table(
        tmp_path / "lh.tsv",
        "lh.aparc.thickness",
        ["lh_cuneus_thickness"],
        {"003": [3], "001": [1], "002/": [2], "9": [9]},
    )
    found = joined(small(tmp_path), thickness)
    assert found.problems == {}
    assert found.values.to_dict("list") == {
        "Left-Caudate": [10, 20, 30],
        "eTIV": [1e6, 2e6, 3e6],
        "lh_cuneus_thickness": [1, 2, 3],
    }
    assert list(found.values.index) == ["a", "b", "c"]


def test_a_column_of_several_tables_is_read_once(tmp_path):
    again = {"001": (2.5, "1e6"), "002": (2.4, "2000000.0"), "003": (2.3, 3000000)}
    thickness = write_table(tmp_path / "lh.tsv", "lh.aparc.thickness", ["lh_cuneus_thickness", "eTIV"], again)
    assert list(joined(small(tmp_path), thickness).values) == ["Left-Caudate", "eTIV", "lh_cuneus_thickness"]
    other = write_table(
        tmp_path / "rh.tsv", "rh.aparc.thickness", ["rh_cuneus_thickness", "eTIV"], again | {"002": (2, 5)}
    )
    with pytest.raises(UserError, match=r"rh\.tsv: expected in column 'eTIV' what .*aseg\.tsv has .* found 5 for 002"):
        joined(small(tmp_path), other)


def test_ratio_scales_volumes_to_one_head_size(tmp_path):
    thickness = write_table(
        tmp_path / "lh.tsv", "lh.aparc.thickness", ["lh_cuneus_thickness"], {key: [2] for key in THREE.values()}
    )
    settings = FreeSurferSettings(normalise="ratio")
    found = joined(small(tmp_path), thickness, settings=settings).values
    np.testing.assert_allclose(found["Left-Caudate"], [10 * 1.5, 20 * 0.75, 30 * 0.5])
    assert found["eTIV"].tolist() == [1e6, 2e6, 3e6]
    assert found["lh_cuneus_thickness"].tolist() == [2, 2, 2]
    without = joined(small(tmp_path), settings=replace(settings, whole_brain=False)).values
    np.testing.assert_allclose(without["Left-Caudate"], [15, 15, 15])
    assert list(without) == ["Left-Caudate"]


@settings(deadline=None)
@given(head=st.floats(1e5, 1e7), factor=st.floats(0.1, 10))
def test_a_head_of_another_size_has_the_same_ratio(tmp_path_factory, head, factor):
    folder = tmp_path_factory.mktemp("head")
    path = small(folder, a=(0.002 * head, head), b=(0.002 * head * factor, head * factor))
    found = joined(path, settings=FreeSurferSettings(normalise="ratio"), identities={"a": "a", "b": "b"}).values
    np.testing.assert_allclose(found["Left-Caudate"], 3000, rtol=1e-9)


def test_ratio_needs_the_intracranial_volume(tmp_path):
    path = small(tmp_path, columns=("Left-Caudate",), a=(1,))
    with pytest.raises(UserError, match="expected the estimated intracranial volume among the columns"):
        joined(path, settings=FreeSurferSettings(normalise="ratio"), identities={"a": "a"})
    path = small(tmp_path, a=(1, 0), b=(1, 10))
    found = joined(path, settings=FreeSurferSettings(normalise="ratio"), identities={"a": "a", "b": "b"})
    assert list(found.values.index) == ["b"]
    assert "an intracranial volume of 0 mm³ in column 'eTIV'" in found.problems["a"]


@pytest.mark.parametrize(
    ("column", "measure"),
    [
        ("Left-Hippocampus", "volume"),
        ("lhCortexVol", "volume"),
        ("lh_bankssts_thickness", "thickness"),
        ("lh_MeanThickness_thickness", "thickness"),
        ("rh_G_and_S_frontomargin_area", "area"),
        ("lh_bankssts_meancurv", "other"),
        ("lh_bankssts_thicknessstd", "other"),
        ("BrainSegVol-to-eTIV", "other"),
        ("lhSurfaceHoles", "other"),
        ("WM-hypointensities", "volume"),
        ("CC_Mid_Posterior", "volume"),
        ("Group", "unknown"),
        ("MMSE", "unknown"),
        ("Left-Handed", "unknown"),
        ("lh_bankssts_score", "unknown"),
        ("L_bankssts_thickavg", "thickness"),
        ("R_bankssts_surfavg", "area"),
        ("LThickness", "thickness"),
        ("RSurfArea", "area"),
        ("Lhippo", "volume"),
        ("ST44TA", "thickness"),
        ("ST44TS", "other"),
        ("ST29SV", "volume"),
    ],
)
def test_a_column_name_determines_the_measure(column, measure):
    assert measure_of(column) == measure


def test_a_wildcard_drops_no_column_of_an_unknown_kind_in_silence(tmp_path):
    (tmp_path / "merged.csv").write_text("id,lh_a_thickness,Group,AgeYears,MMSE\n1,2.5,1,70,29\n2,2.6,0,60,30\n")
    chosen = FreeSurferSettings(columns=("*",))
    path, people = tmp_path / "merged.csv", {"a": "1", "b": "2"}
    with pytest.raises(UserError, match=r"merged.csv: .*found 'Group' \(3 such columns\), whose name does not tell"):
        joined(path, settings=chosen, identities=people)
    left = replace(chosen, leave_out=("Group", "AgeYears", "MMSE"))
    assert list(joined(path, settings=left, identities=people).values) == ["lh_a_thickness"]
    named = replace(chosen, columns=("lh_*", "MMSE"))
    assert list(joined(path, settings=named, identities=people).values) == ["lh_a_thickness", "MMSE"]


def test_columns_are_chosen_by_name_kind_and_extent():
    assert not is_feature("lh_cuneus_meancurv", NAMED)
    assert not is_feature("lh_cuneus_area", FreeSurferSettings(measures=("thickness",)))
    assert not is_feature("Left-vessel", FreeSurferSettings(leave_out=("*-vessel",)))
    regional = FreeSurferSettings(whole_brain=False)
    assert not any(is_feature(name, regional) for name in ("IntraCranialVol", "rh_WhiteSurfArea_area", "TotalGrayVol"))
    assert is_feature("rh_cuneus_area", regional)


def test_intensities_of_another_asegstats_table_are_not_volumes(tmp_path):
    means = small(tmp_path, "means.tsv", "Measure:mean", ("Left-Caudate",), **dict.fromkeys(THREE.values(), (80,)))
    assert list(joined(small(tmp_path), means).values) == ["Left-Caudate", "eTIV"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("12,5", "found '12,5' in .*aseg.tsv, line 3, column 'Left-Caudate'; it has a decimal comma, write a point"),
        ("x", "found 'x' in .*line 3, column 'Left-Caudate'; fix it or list it in `missing`"),
        ("inf", "found 'inf' in .*line 3"),
        ("-4000", "found '-4000' in .*line 3, column 'Left-Caudate'; fix it"),
        ("1e39", "found '1e39' in .*line 3"),
        ("NaN", "found an empty cell in .*line 3, column 'Left-Caudate'; fill it in"),
        ("-9", "found an empty cell in .*line 3"),
    ],
)
def test_an_invalid_cell_affects_its_subject_only(tmp_path, cell, words):
    path = small(tmp_path, **{"001": (1, 2), "002": (cell, 2), "003": (3, 4)})
    found = joined(path, missing=("-9",))
    assert list(found.values.index) == ["a", "c"]
    assert list(found.problems) == ["b"]
    with pytest.raises(UserError, match=f"^Subject b: expected whole FreeSurfer measures, {words}"):
        raise UserError(found.problems["b"])


def test_a_column_that_is_empty_for_all_subjects_is_left_out(tmp_path):
    path = small(tmp_path, **{"001": (1, ""), "002": (2, "NA"), "003": (3, ""), "other": (4, 7)})
    assert list(joined(path).values) == ["Left-Caudate"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Measure:volume\tx\n1\t2\n1\t3\n", "found '1' in line 2 and line 3; remove one of them"),
        ("Measure:volume\tx\n1\t2\t3\n", "line 2: expected 2 cells as in the header, found 3"),
        ("Measure:volume\tx\tx\n1\t2\t3\n", "expected every column once, found 'x' twice"),
        ("id\tx\n1\t2\n", "expected a table of asegstats2table or aparcstats2table.*found 'id'"),
        ("", "expected a header and one row a subject, found an empty file"),
        (b"PK\x03\x04 a workbook", "found an Excel workbook; save the sheet as `CSV UTF-8`"),
        ('Measure:volume\tx\n1\t"' + "2" * 200_000 + "\n", "expected cells of a table.*fix its quotation marks"),
        (b"Measure:volume\t\xff\n", "expected UTF-8 text"),
    ],
)
def test_a_broken_table_is_named(tmp_path, text, words):
    path = tmp_path / "aseg.tsv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UserError, match=f"aseg.tsv.*{words}"):
        read_freesurfer_table(path, NAMED)


@pytest.mark.parametrize(
    "text", ["\ufeffMeasure:volume,x\r\n007,2\r\n", "Measure:volume\tx\t\n007\t2\t\n", "Measure:volume x\n007 2\n"]
)
def test_separators_byte_order_marks_and_leading_zeros_are_handled(tmp_path, text):
    (tmp_path / "t").write_text(text, encoding="utf-8")
    table = read_freesurfer_table(tmp_path / "t", NAMED)
    assert (table.columns, table.rows) == (("x",), {"007": ("2",)})


def test_tables_of_other_subjects_are_refused(tmp_path):
    with pytest.raises(
        UserError, match=r"\('sub-1' \.\.\.\), found none among 3 \('001' \.\.\.\); fix `freesurfer.id`"
    ):
        joined(small(tmp_path), identities={"a": "sub-1"})
    with pytest.raises(UserError, match="found '001' for a and b"):
        joined(small(tmp_path), identities={"a": "001", "b": "001"})


MERGED = "RID,VISCODE,DX,ST44TA,ST29SV\n0012,bl,AD,2.5,3000\n0012,m12,AD,2.4,2900\n0013,bl,CN,2.7,3500\n"


def test_a_merged_table_is_filtered_and_its_measures_are_named(tmp_path):
    (tmp_path / "merged.csv").write_text(MERGED)
    settings = FreeSurferSettings(subject="RID", rows={"VISCODE": ("bl",)}, columns=("ST*",))
    table = read_freesurfer_table(tmp_path / "merged.csv", settings)
    found = read_morphometry([table], {"0012": "0012", "0013": "0013"}, settings).values
    assert found.to_dict("list") == {"ST44TA": [2.5, 2.7], "ST29SV": [3000, 3500]}
    with pytest.raises(UserError, match=r"'0012' in line 2 and line 3; .* choose among visits with `freesurfer.rows`"):
        read_freesurfer_table(tmp_path / "merged.csv", replace(settings, rows={}))
    with pytest.raises(UserError, match=r"measures under `freesurfer.columns`, found none; .* may hold diagnoses too"):
        read_freesurfer_table(tmp_path / "merged.csv", replace(settings, columns=()))
    with pytest.raises(UserError, match="expected a column 'VISIT', found none"):
        read_freesurfer_table(tmp_path / "merged.csv", replace(settings, rows={"VISIT": ("bl",)}))


def written(folder, settings, identities):
    out = parts_of(folder)
    write_measures(identities, settings, out)
    return read_arrays(out.series), pd.read_parquet(out.quality).set_index("subject"), pd.read_parquet(out.coverage)


def test_artefacts_have_the_shape_of_region_series_and_duplicates_one_checksum(tmp_path):
    path = small(tmp_path, **{"001": (1, 2), "002": ("x", 2), "003": (1.0, 2.0), "004": (1, 3)})
    settings = CohortSettings(source="freesurfer", freesurfer=FreeSurferSettings((path,)), on_invalid="drop")
    file, quality, coverage = written(tmp_path, settings, {"d": "004", "c": "003", "b": "002", "a": "001", "e": "005"})
    assert file.subjects == ("a", "c", "d")
    assert file.metadata["regions"] == ["Left-Caudate", "eTIV"]
    assert file.arrays["measures"].tolist() == [[1, 2], [1, 2], [1, 3]]
    assert file.arrays["measures"].dtype == np.float32
    assert quality.loc["a", "checksum"] == quality.loc["c", "checksum"] != quality.loc["d", "checksum"]
    assert list(quality.index[quality["problem"] != ""]) == ["b", "e"]
    assert quality.loc["e", "problem"].endswith("a subject with scans stays without these measures).")
    assert coverage.empty
    assert quality[["timepoints", "volumes", "tr", "mean_fd", "tsnr"]].isna().all(axis=None)
    with pytest.raises(UserError, match=r"^Subject b: expected whole FreeSurfer measures, found 'x'"):
        written(tmp_path, replace(settings, on_invalid="error"), {"a": "001", "b": "002"})
    with pytest.raises(UserError, match=r"found none .first: Subject b"):
        written(tmp_path, settings, {"b": "002"})


def test_a_diagnosis_among_the_measures_is_refused(tmp_path):
    (tmp_path / "merged.csv").write_text("id,DX_GROUP,Left-Caudate\n1,2,3000\n")
    freesurfer = FreeSurferSettings((str(tmp_path / "merged.csv"),), columns=("DX_GROUP", "Left-*"))
    columns = ColumnSettings(diagnosis="DX_GROUP")
    settings = CohortSettings(source="freesurfer", columns=columns, freesurfer=freesurfer)
    with pytest.raises(UserError, match="found 'DX_GROUP', which is a phenotype under `columns`"):
        written(tmp_path, settings, {"1": "1"})


@pytest.mark.data
def test_abides_tables_hold_1035_subjects_and_the_cells_of_the_merged_table():
    folder = Path(os.environ["BRAINFED_DATA"]) / "abide-freesurfer"
    merged = pd.read_csv(folder / "abide_fs6_merged.csv.gz", dtype={"FILE_ID": str}).set_index("FILE_ID").sort_index()
    names = ["aseg_table"] + [
        f"{side}.aparc_table_{kind}" for side in ("lh", "rh") for kind in ("thickness", "area", "volume")
    ]
    found = joined(
        *(folder / "stats" / f"{name}.tsv" for name in names), identities={name: name for name in merged.index}
    )
    assert found.problems == {}
    with (folder / "stats" / "aseg_table.tsv").open() as aseg:
        assert {measure_of(name) for name in aseg.readline().split()[1:]} == {"volume"}
    assert found.values.shape == (1035, 55 + 2 * (35 + 35 + 34))
    assert list(found.values.index) == list(merged.index)
    pd.testing.assert_frame_equal(found.values, merged[list(found.values)], check_names=False, check_dtype=False)
    cells = found.values.loc["Caltech_0051456"]
    assert cells["Left-Hippocampus"] == 4239
    assert cells["lh_bankssts_thickness"] == 2.296
    assert cells["rh_insula_volume"] == 8714
    assert cells["IntraCranialVol"] == 1697598.984182


def test_an_invented_cohort_has_its_tables(tmp_path):
    assert joined(*write_tables(tmp_path, ["001", "002", "003"])).values.shape == (3, 10)


def test_blanks_in_the_names_of_a_comma_separated_table_are_no_separators(tmp_path):
    names = ["total intracranial", "left cerebral white matter", "right hippocampus"]
    table = tmp_path / "synthseg.csv"
    table.write_text(f"subject,{','.join(names)}\ns01,1500000,250000,4000\n")
    read = read_freesurfer_table(table, replace(NAMED, columns=("left cerebral white matter", "right hippocampus")))
    assert (read.columns, read.rows) == (tuple(names), {"s01": ("1500000", "250000", "4000")})
