"""A raw SUBJECTS_DIR is listed at parse time by its folders and read by its stats files."""

from dataclasses import replace

import pytest

from brainfed.cohort.settings import CohortSettings, ColumnSettings, FreeSurferSettings
from brainfed.cohort.sources import list_cohort, measure_files
from brainfed.imaging.morphometry._features import read_morphometry, read_subjects_dir
from brainfed.imaging.morphometry._tables import read_stats
from brainfed.runtime import UserError
from support.files.freesurfer_project import write_subject

NAMES = ("aseg.stats", "lh.aparc.stats", "rh.aparc.stats")


def cohort(folder, **changes):
    (folder / "people.csv").write_text(
        "participant_id,site,age,sex,diagnosis\n001,a,20,male,patient\n002,b,21,female,control\n"
    )
    freesurfer = FreeSurferSettings(subjects_dir=str(folder / "subjects"), id="sub-{subject}")
    settings = CohortSettings(source="freesurfer", phenotype=str(folder / "people.csv"), freesurfer=freesurfer)
    return replace(settings, **changes)


def test_stats_files_have_the_names_of_freesurfers_tables(tmp_path):
    found = read_stats("s", write_subject(tmp_path, "s"), NAMES)
    assert found["Left-Hippocampus"] == "4000"
    assert found["lhCortexVol"] == "240000"
    assert found["EstimatedTotalIntraCranialVol"] == "1500000"
    assert found["lh_bankssts_thickness"] == "2.296"
    assert found["rh_cuneus_area"] == "1531"
    assert found["lh_cuneus_volume"] == "3059"
    assert found["lh_MeanThickness_thickness"] == "2.50298"
    assert found["rh_WhiteSurfArea_area"] == "90011.3"


def test_two_parcellations_with_one_region_keep_both(tmp_path):
    folder = write_subject(tmp_path, "s")
    for hemisphere in ("lh", "rh"):
        (folder / f"{hemisphere}.aparc.DKTatlas.stats").write_text((folder / "lh.aparc.stats").read_text())
    found = read_stats("s", folder, ("lh.aparc.stats", "lh.aparc.DKTatlas.stats"))
    assert {"lh_cuneus_area", "lh_aparc.DKTatlas_cuneus_area"} <= set(found)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("lh.aparc.stats", lambda text: None, "found no .*lh.aparc.stats; run recon-all to its end"),
        ("lh.aparc.stats", lambda text: text[:-20], r"found 8 cells for 10 columns in .*lh.aparc.stats, line 8"),
        ("aseg.stats", lambda text: text.splitlines()[0], "found no column StructName in .*aseg.stats"),
        ("aseg.stats", lambda text: text.rsplit("\n", 2)[0], "found no row in .*aseg.stats"),
    ],
)
def test_a_broken_subject_is_named(tmp_path, name, change, words):
    folder = write_subject(tmp_path, "s")
    text = change((folder / name).read_text())
    (folder / name).unlink() if text is None else (folder / name).write_text(text)
    with pytest.raises(UserError, match=f"^Subject s: expected whole FreeSurfer measures, {words}"):
        read_stats("s", folder, NAMES)


def test_subjects_are_read_as_one_table(tmp_path):
    settings = FreeSurferSettings(subjects_dir=str(tmp_path), normalise="ratio")
    write_subject(tmp_path, "sub-1", hippocampus=4000, head=2_000_000)
    write_subject(tmp_path, "sub-2", hippocampus=3000)
    (write_subject(tmp_path, "sub-3") / "aseg.stats").unlink()
    identities = {"1": "sub-1", "2": "sub-2", "3": "sub-3"}
    table, problems = read_subjects_dir(identities, settings)
    assert list(problems) == ["3"]
    values = read_morphometry([table], {"1": "sub-1", "2": "sub-2"}, settings).values
    assert values["Left-Hippocampus"].tolist() == [3000, 3000]
    assert not {"BrainSegVol-to-eTIV", "lhSurfaceHoles"} & set(values)
    assert values["lh_cuneus_volume"].tolist() == [3059 * 0.75, 3059]


def test_a_missing_structure_affects_its_subject_only(tmp_path):
    write_subject(tmp_path, "1")
    folder = write_subject(tmp_path, "2")
    (folder / "lh.aparc.stats").write_text((folder / "lh.aparc.stats").read_text().rsplit("\n", 2)[0] + "\n")
    settings = FreeSurferSettings(subjects_dir=str(tmp_path))
    found = read_morphometry([read_subjects_dir({"1": "1", "2": "2"}, settings)[0]], {"1": "1", "2": "2"}, settings)
    assert list(found.values.index) == ["1"]
    assert "found no 'lh_cuneus_thickness' in" in found.problems["2"]
    assert "2/stats, which other subjects have; another version of FreeSurfer" in found.problems["2"]


def test_a_listing_checks_the_folders(tmp_path):
    write_subject(tmp_path / "subjects", "sub-001")
    with pytest.raises(
        UserError, match=r"folder .*sub-002.stats of subject 002, found none \(1 of 2 are absent\).*drop"
    ):
        list_cohort("c", cohort(tmp_path))
    settings = cohort(tmp_path, on_invalid="drop")
    listing = list_cohort("c", settings)
    assert listing.absences == {"002": "stats folder absent"}
    assert [listed.series for listed in listing.subjects] == ["sub-001", "sub-002"]
    files = measure_files(settings.freesurfer, ["sub-001", "sub-002"])
    assert [path.rsplit("/", 1)[1] for path in files] == list(NAMES)
    assert [path.rsplit("/", 3)[1] for path in files] == ["sub-001"] * 3


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"freesurfer": FreeSurferSettings()}, "needs `freesurfer.tables` or `freesurfer.subjects_dir`, found neither"),
        ({"freesurfer": FreeSurferSettings(("no.tsv",))}, "expected the FreeSurfer table no.tsv, found none"),
        (
            {"freesurfer": FreeSurferSettings(subjects_dir="nowhere")},
            "expected the SUBJECTS_DIR nowhere, found no folder",
        ),
        ({"phenotype": None}, "expected the phenotype file .not set., found none"),
        ({}, "expected the SUBJECTS_DIR"),
    ],
)
def test_a_cohort_without_files_is_refused(tmp_path, changes, words):
    with pytest.raises(UserError, match=f"Cohort 'c': .*{words}"):
        list_cohort("c", cohort(tmp_path, **changes))


def test_a_row_without_a_file_has_no_id(tmp_path):
    write_subject(tmp_path / "subjects", "sub-001")
    settings = cohort(tmp_path)
    rows = ("none,1,a,1,male,patient", "sub-001,2,a,1,male,patient")
    (tmp_path / "people.csv").write_text("\n".join(("FILE,id,site,age,sex,diagnosis", *rows)))
    freesurfer = replace(settings.freesurfer, id="{file}")
    columns = ColumnSettings(subject="id", file="FILE")
    listing = list_cohort("c", replace(settings, freesurfer=freesurfer, columns=columns, missing=("none",)))
    assert listing.absences == {"1": "no FreeSurfer id"}
    assert listing.with_series == ("2",)
