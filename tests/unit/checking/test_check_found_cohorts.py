"""`brainfed check` on images, fMRIPrep's output and FreeSurfer's tables: all mistakes of headers and tables at once."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from brainfed.checking import check_project
from brainfed.checking._project import check_cohort
from brainfed.cohort.settings import CohortSettings
from brainfed.configuration import validate
from support.broken.broken_inputs import AFFINE as OF_IMAGES
from support.broken.broken_inputs import image_cohort, voxels, write_image
from support.files.bids_dataset import AFFINE, SHAPE, VOLUMES, Derivative, confounds, write_atlas
from support.files.freesurfer_project import write_tables

ROWS = [
    f"sub-{number:02d}\t{'ab'[number % 2]}\t20\tmale\t{('patient', 'control')[number // 2 % 2]}"
    for number in range(1, 9)
]
SUBJECTS = [row.partition("\t")[0] for row in ROWS]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """Four subjects with sound files."""
    made = Derivative(tmp_path_factory.mktemp("sound") / "fmriprep")
    for number in range(1, 5):
        made.write_run(f"{number:02d}", seed=number)
    made.write_participants(*ROWS[:4])
    return made


@pytest.fixture
def tree(sound, tmp_path):
    """The same, to be changed."""
    shutil.copytree(sound.folder, tmp_path / "fmriprep")
    return Derivative(tmp_path / "fmriprep")


def settings_of(tree, **changes):
    cohort = {"source": "bids", "bids": {"derivatives": str(tree.folder)}, "extraction": {"high_pass": None}}
    cohort |= write_atlas(tree.folder.parent / "atlas")
    return validate(CohortSettings, cohort | changes, "c")


def sentences_of(checked, severity):
    return [found.sentence for found in checked.findings if found.severity == severity]


def func(tree, sub):
    return tree.folder / f"sub-{sub}" / "func"


def test_a_sound_derivative_has_no_findings(tree):
    checked = check_cohort("c", settings_of(tree))
    assert checked.findings == ()
    assert [person.subject for person in checked.people] == [f"sub-{number:02d}" for number in range(1, 5)]
    assert {person.timepoints for person in checked.people} == {VOLUMES}
    assert (checked.sites, checked.regions) == (("a", "b"), 3)


def break_everything(tree):
    """One mistake in each of six subjects of eight."""
    for number in range(5, 9):
        tree.write_run(f"{number:02d}", seed=number)
    tree.write_participants(*ROWS)
    image = next(func(tree, "01").glob("*_bold.nii.gz"))
    nib.save(nib.Nifti1Image(np.zeros(SHAPE, dtype=np.float32), AFFINE), image)
    tree.write_run("02", volumes=20, table=confounds(20))
    mask = next(func(tree, "03").glob("*_mask.nii.gz"))
    nib.save(nib.Nifti1Image(np.ones(SHAPE, dtype=np.uint8), 2 * AFFINE), mask)
    tree.write_run("04", table=confounds(VOLUMES - 1))
    next(func(tree, "05").glob("*_bold.json")).write_text(json.dumps({"RepetitionTime": "2 s"}))
    cut_off = next(func(tree, "06").glob("*_bold.nii.gz"))
    whole = gzip.decompress(cut_off.read_bytes())
    cut_off.write_bytes(gzip.compress(whole[: len(whole) // 2]))


MISTAKES = (
    "Subject sub-01, {folder}/sub-01/func/sub-01_task-rest_space-T1w_desc-preproc_bold.nii.gz: expected a 4D image",
    "Subject sub-02, {folder}/sub-02/func/sub-02_task-rest_space-T1w_desc-preproc_bold.nii.gz: expected at least 34",
    "Subject sub-03, {folder}/sub-03/func/sub-03_task-rest_space-T1w_desc-brain_mask.nii.gz: expected the grid of",
    "Subject sub-04, confounds of {folder}/sub-04/func/sub-04_task-rest_space-T1w_desc-preproc_bold.nii.gz: expected",
    "Subject sub-05, {folder}/sub-05/func/sub-05_task-rest_space-T1w_desc-preproc_bold.json: expected RepetitionTime",
    "Subject sub-06, {folder}/sub-06/func/sub-06_task-rest_space-T1w_desc-preproc_bold.nii.gz: expected a whole NIfTI",
)


@pytest.mark.parametrize(("on_invalid", "severity", "usable"), [("error", "stops", 8), ("drop", "drops", 2)])
def test_every_subjects_mistake_is_listed_at_once(tree, on_invalid, severity, usable):
    break_everything(tree)
    checked = check_cohort("c", settings_of(tree, on_invalid=on_invalid))
    found = sentences_of(checked, severity)
    assert len(found) == len(MISTAKES)
    for sentence, expected in zip(found, MISTAKES, strict=True):
        assert sentence.startswith(expected.format(folder=tree.folder)), sentence
    assert len(checked.people) == usable


def test_absent_files_and_rows_are_listed_together(tree):
    tree.write_participants(*ROWS[:3], "sub-90", "sub-91")
    next(func(tree, "01").glob("*_timeseries.tsv")).unlink()
    next(func(tree, "02").glob("*_mask.nii.gz")).unlink()
    checked = check_cohort("c", settings_of(tree))
    remedy = "bring the files, or leave them out with on_invalid: drop."
    assert sentences_of(checked, "stops") == [
        f"1 of 5 subjects: brain mask absent, *_desc-brain_mask.nii.gz in {tree.folder} (sub-02); {remedy}",
        f"1 of 5 subjects: confounds file absent, *_desc-confounds_timeseries.tsv in {tree.folder} (sub-01); {remedy}",
        f"2 of 5 subjects: series file absent, *_bold.nii.gz in {tree.folder} (sub-90, sub-91); {remedy}",
    ]
    (unlisted,) = sentences_of(checked, "notes")
    assert unlisted.startswith("1 subject with files has no row in the table, the first is sub-04")
    dropped = check_cohort("c", settings_of(tree, on_invalid="drop"))
    assert len(sentences_of(dropped, "drops")) == 3 and len(dropped.people) == 1


def test_runs_of_different_protocols_are_refused(tree):
    for run, tr in (("1", 2.0), ("2", 3.0)):
        tree.write_run("01", run=run, tr=tr, seed=int(run))
    for unnumbered in [*func(tree, "01").glob("*rest_space*"), *func(tree, "01").glob("*rest_desc*")]:
        unnumbered.unlink()
    (sentence,) = sentences_of(check_cohort("c", settings_of(tree)), "stops")
    assert "expected the repetition time of" in sentence and "2 s, found 3 s" in sentence


def test_a_short_run_is_left_out_of_an_average_only(tree):
    tree.write_run("09", run="1", seed=91)
    tree.write_run("09", run="2", seed=92, volumes=20, table=confounds(20))
    tree.write_participants(*ROWS[:4], "sub-09")
    bids = {"derivatives": str(tree.folder)}
    assert check_cohort("c", settings_of(tree, bids=bids | {"runs": "average"})).findings == ()
    (sentence,) = sentences_of(check_cohort("c", settings_of(tree, bids=bids | {"runs": "concatenate"})), "stops")
    assert "run-2" in sentence and "expected at least 34 volumes" in sentence


def test_a_derivative_without_an_atlas_is_found(tree):
    settings = {"source": "bids", "bids": {"derivatives": str(tree.folder)}}
    (stopped,) = check_cohort("c", validate(CohortSettings, settings, "c")).findings
    assert "source 'bids' needs `parcellation`, or an `atlas` among basc122" in stopped.sentence


def test_copied_scans_are_noted(tree):
    copied, original = (next(func(tree, sub).glob("*_bold.nii.gz")) for sub in ("02", "01"))
    copied.write_bytes(original.read_bytes())
    (note,) = sentences_of(check_cohort("c", settings_of(tree)), "notes")
    assert note.startswith("Subjects sub-01, sub-02: expected data of their own, found the same in all")


def of_tables(folder, with_measures, rows=ROWS, header="participant_id\tsite\tage\tsex\tdiagnosis", **changes):
    """The check of a cohort of these rows, of whom some are in FreeSurfer's tables."""
    (folder / "participants.tsv").write_text("\n".join([header, *rows]) + "\n")
    freesurfer = {"tables": write_tables(folder, with_measures)}
    cohort = {"source": "freesurfer", "phenotype": str(folder / "participants.tsv"), "freesurfer": freesurfer}
    return check_cohort("c", validate(CohortSettings, cohort | changes, "c"))


@pytest.mark.parametrize(("on_invalid", "severity", "usable"), [("error", "stops", 8), ("drop", "drops", 7)])
def test_measures_are_read_whole(tmp_path, on_invalid, severity, usable):
    checked = of_tables(tmp_path, SUBJECTS[1:], on_invalid=on_invalid)
    (sentence,) = sentences_of(checked, severity)
    assert sentence.startswith("Subject sub-01: ") and "no row 'sub-01' in" in sentence
    assert len(checked.people) == usable


def test_limits_on_scans_judge_no_tables(tmp_path):
    limits = {"mean_fd": 0.5, "min_tsnr": 3, "min_volumes": 100}
    notes = sentences_of(of_tables(tmp_path, SUBJECTS, exclude=limits), "notes")
    said = [name for name in limits if any(one.startswith(f"`exclude.{name}` has nothing") for one in notes)]
    assert said == [*limits]


@pytest.mark.parametrize(("known", "asked"), [("Pitt_005", "PITT_005"), ("sub-5", "sub-0005"), ("A_0_7", "a_0_7")])
def test_an_id_that_differs_in_spelling_alone_is_named(tmp_path, known, asked):
    rows = [row.replace("sub-01", asked) for row in ROWS]
    (sentence,) = sentences_of(of_tables(tmp_path, [known, *SUBJECTS[1:]], rows), "stops")
    assert f"no row {asked!r} in" in sentence and f"; did you mean {known!r}? Change `freesurfer.id`" in sentence


def test_a_row_without_a_freesurfer_id_does_not_stop_the_run(tmp_path):
    rows = [f"{row}\t{subject}" for row, subject in zip(ROWS, ["n/a", *SUBJECTS[1:]], strict=True)]
    header = "participant_id\tsite\tage\tsex\tdiagnosis\tfs"
    checked = of_tables(tmp_path, SUBJECTS[1:], rows, header, columns={"file": "fs"})
    assert sentences_of(checked, "stops") == []
    assert sentences_of(checked, "notes") == ["1 of 8 rows are left out (no FreeSurfer id): sub-01."]
    assert [one.subject for one in checked.people] == SUBJECTS[1:]


def test_subjects_that_the_rules_leave_out_are_listed_before_the_run(tree):
    tree.write_run("03", table=confounds(VOLUMES, 3).assign(framewise_displacement=0.9))
    rules = {"mean_fd": 0.5, "min_volumes": 100, "min_tsnr": 1}
    checked = check_cohort("c", settings_of(tree, exclude=rules))
    assert sentences_of(checked, "drops") == [
        "1 of 4 subjects are left out by `exclude`, the first is sub-03: mean FD above 0.5 mm (0.9)."
    ]
    assert [one.subject for one in checked.people if one.subject == "sub-03"] == []
    (stopped,) = sentences_of(check_cohort("c", settings_of(tree, exclude={"min_volumes": VOLUMES + 1})), "stops")
    assert "expected a subject that the rules under `exclude` keep, found none among 4" in stopped


def test_a_high_pass_beside_the_cosines_is_noted(tree):
    (sentence,) = sentences_of(check_cohort("c", settings_of(tree, extraction={"low_pass": None})), "notes")
    assert sentence.startswith(
        "4 of 4 subjects have two high-passes: cosines are among the confounds, and extraction.hi"
    )
    without = {"derivatives": str(tree.folder), "confounds": {"strategy": "none"}}
    assert check_cohort("c", settings_of(tree, bids=without, extraction={})).findings == ()


def test_a_sidecar_that_the_header_contradicts_is_noted(tree):
    tree.write_run("01", seed=1, header_tr=1.0)
    (sentence,) = sentences_of(check_cohort("c", settings_of(tree)), "notes")
    assert sentence.startswith(
        "1 of 4 subjects have a repetition time in their sidecar that the image header contradic"
    )
    assert "the first is sub-01: 2 s, which is used, against 1 s in the header" in sentence
    assert check_cohort("c", settings_of(tree, tr={"a": 2.0, "b": 2.0})).findings == ()


def test_regions_without_a_voxel_are_noted(tree):
    settings = settings_of(tree)
    with Path(settings.labels).open("a") as table:
        table.write("7\tV1\n9\tV2\n")
    absent, silent = sentences_of(check_cohort("c", settings), "notes")
    assert absent.startswith("2 of 5 regions of the region table have no voxel in the parcellation and are empty in ev")
    assert "V1, V2" in absent
    assert silent.startswith("4 subjects have regions without a signal, constant or missing throughout, up to 2 of 5")
    (stopped, *_) = sentences_of(check_cohort("c", replace(settings, constant_regions="error")), "stops")
    assert "expected a signal in every region, found 2 constant or empty ones" in stopped


def test_settings_that_drop_everybody_stop_the_run(tree):
    checked = check_cohort("c", settings_of(tree, on_invalid="drop", min_timepoints=VOLUMES + 1))
    assert checked.people == () and sentences_of(checked, "drops")
    (stops,) = sentences_of(checked, "stops")
    assert stops.startswith("Cohort 'c': expected a usable subject, found that `on_invalid: drop` leaves out all 4; ")


def test_subjects_without_a_diagnosis_leave_or_stay_as_the_settings_say(tree):
    tree.write_participants(*ROWS[:2], "sub-03\tb\t20\tmale\tn/a", ROWS[3])
    (drops,) = sentences_of(check_cohort("c", settings_of(tree)), "drops")
    assert drops == "1 of 4 subjects have no diagnosis and are left out (`unlabelled: drop`): sub-03."
    kept = check_cohort("c", settings_of(tree, unlabelled="keep"))
    assert not sentences_of(kept, "drops")
    assert "1 of 4 subjects have no diagnosis: sub-03." in sentences_of(kept, "notes")


def test_an_image_in_several_gzip_members_is_whole(tmp_path):
    cohort = image_cohort(tmp_path)
    path = cohort.series("s03")
    raw = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(raw[:5000]) + gzip.compress(raw[5000:]))
    assert check_project(cohort.configure()) == []


def test_other_repetition_times_and_grids_are_noted(tmp_path):
    cohort = image_cohort(tmp_path)
    cohort.settings |= {"tr": {"b": 2.2, "nowhere": 2.0}}
    write_image(cohort.series("s03"), voxels("s03"), tr=2.5)
    shifted = OF_IMAGES.copy()
    shifted[0, 3] += 60
    write_image(cohort.series("s01"), voxels("s01"), affine=shifted)
    found = check_project(cohort.configure())
    assert {one.severity for one in found} == {"notes"}
    listed = "\n".join(one.sentence for one in found)
    assert "the cohort has no site nowhere" in listed
    assert "site a: expected one repetition time, found 2, 2.5 s in the headers" in listed
    assert "site b: tr is 2.2 s in the config, which overrules 2 s in the headers" in listed
    assert "1 of 8 images have another grid than the parcellation" in listed
    assert "1 of 8 images show less than 50 % of the parcellation (the least 25 %): s01" in listed


def test_images_without_a_signal_are_found_where_their_voxels_are_read(tmp_path, monkeypatch):
    cohort = image_cohort(tmp_path)
    write_image(cohort.series("s03"), np.full((8, 6, 4, 60), np.nan, dtype=np.float32))
    (silent,) = check_project(cohort.configure())
    assert (silent.severity, silent.subjects) == ("stops", ("s03",))
    assert "found no voxel that varies in time" in silent.sentence
    monkeypatch.setattr("brainfed.checking._images.MOST_VOXELS", 0)
    (unread,) = check_project(cohort.configure())
    assert unread.sentence.startswith("the voxels of 8 of 8 subjects were not read")
    assert check_project(cohort.configure(), every_scan=True) == [silent]


def test_a_derivative_of_subjects_without_a_diagnosis_stops_the_run(tree):
    tree.write_participants(*(row.rpartition("\t")[0] + "\tn/a" for row in ROWS[:4]))
    checked = check_cohort("c", settings_of(tree))
    (said,) = sentences_of(checked, "stops")
    assert said.startswith("Cohort 'c': expected a subject whose diagnosis is known, found none among 4; fix columns.")


def test_who_a_rule_leaves_out_leaves_for_that_rule_and_for_no_note(tree, monkeypatch):
    monkeypatch.setattr("brainfed.checking._images.MOST_VOXELS", 0)
    tree.write_run("01", volumes=VOLUMES - 5, table=confounds(VOLUMES - 5))
    checked = check_cohort("c", settings_of(tree, exclude={"min_volumes": VOLUMES}))
    assert any("voxels of 4 of 4 subjects were not read" in said for said in sentences_of(checked, "notes"))
    (leaver,) = checked.leavers
    assert (leaver.subject, leaver.reason[:12]) == ("sub-01", "kept volumes")
