"""Runs of a BIDS derivative are found by their entities, in order; one sentence names missing and misplaced files."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from unicodedata import normalize

import pytest

from brainfed.cohort.settings import BidsSettings, CohortSettings, ColumnSettings, ConfoundSettings, ExtractionSettings
from brainfed.cohort.sources import list_cohort
from brainfed.configuration import validate
from brainfed.runtime import UserError
from support.files.bids_cohort import cohort, names, refused, two_subjects
from support.files.bids_dataset import Derivative


@pytest.fixture
def derivative(tmp_path):
    return two_subjects(tmp_path / "fmriprep")


def test_runs_are_ordered_by_session_and_number_and_hold_their_files(derivative):
    listing = list_cohort("c", cohort(derivative))
    assert names(listing) == {
        "sub-01": ["sub-01_task-rest_run-01_space-T1w", "sub-01_task-rest_run-02_space-T1w"],
        "sub-02": ["sub-02_ses-a_task-rest_run-1_space-T1w", "sub-02_ses-b_task-rest_run-1_space-T1w"],
    }
    func = derivative.folder / "sub-02" / "ses-a" / "func"
    run = listing.subjects[1].runs[0]
    assert run.image == str(func / "sub-02_ses-a_task-rest_run-1_space-T1w_desc-preproc_bold.nii.gz")
    assert run.confounds == str(func / "sub-02_ses-a_task-rest_run-1_desc-confounds_timeseries.tsv")
    assert run.mask == str(func / "sub-02_ses-a_task-rest_run-1_space-T1w_desc-brain_mask.nii.gz")
    assert run.sidecars == (str(func / "sub-02_ses-a_task-rest_run-1_space-T1w_desc-preproc_bold.json"),)
    assert listing.with_series == ("sub-01", "sub-02")
    assert listing.tables == (str(derivative.folder / "participants.tsv"),)


@pytest.mark.parametrize(
    ("bids", "expected"),
    [
        ({"runs": "first"}, {"sub-01": 1, "sub-02": 1}),
        ({"run_numbers": (1,)}, {"sub-01": 1, "sub-02": 2}),
        ({"sessions": ("b",)}, {"sub-01": 0, "sub-02": 1}),
        ({"sessions": ("ses-b",)}, {"sub-01": 0, "sub-02": 1}),
        ({"run_numbers": (2,)}, {"sub-01": 1, "sub-02": 0}),
    ],
)
def test_sessions_and_runs_are_filtered(derivative, bids, expected):
    listing = list_cohort("c", cohort(derivative, bids, on_invalid="drop"))
    assert {listed.subject: len(listed.runs) for listed in listing.subjects} == expected
    without = [subject for subject, runs in expected.items() if runs == 0]
    assert listing.absences == dict.fromkeys(without, "series file absent")


@pytest.mark.parametrize("table", ["NFC", "NFD"])
@pytest.mark.parametrize("disk", ["NFC", "NFD"])
def test_a_label_is_found_in_both_forms_of_unicode(derivative, table, disk):
    for path in sorted(derivative.folder.rglob("*sub-01*"), reverse=True):
        path.rename(path.with_name(path.name.replace("sub-01", normalize(disk, "sub-0\u00fc"))))
    participants = derivative.folder / "participants.tsv"
    participants.write_text(participants.read_text().replace("sub-01", normalize(table, "sub-0\u00fc")))
    listing = list_cohort("c", cohort(derivative))
    assert not listing.absences
    assert not listing.unlisted


def test_a_missing_run_leaves_its_subject_the_others(derivative):
    (image,) = derivative.folder.glob("sub-01/func/*run-02_space-T1w_desc-preproc_bold.nii.gz")
    image.unlink()
    assert names(list_cohort("c", cohort(derivative)))["sub-01"] == ["sub-01_task-rest_run-01_space-T1w"]


@pytest.mark.parametrize(
    ("bids", "words"),
    [
        ({"space": "MNI152NLin6Asym"}, "space-MNI152NLin6Asym, found space: MNI152NLin2009cAsym, T1w; fix bids.space"),
        ({"space": None}, "expected images of one space, found those of MNI152NLin2009cAsym, T1w; name one in bids.sp"),
        ({"resolution": "2"}, "expected images with res-2, found res: none (native); fix bids.resolution"),
        ({"task": "nback"}, "expected images with task-nback, found task: rest; fix bids.task"),
        ({"sessions": ("c",)}, "expected images with ses-c, found ses: a, b, none (native); fix bids.sessions"),
        ({"run_numbers": (3,)}, "expected images with run-3, found run: 1, 2; fix bids.run_numbers"),
        ({"confounds": ConfoundSettings("ica_aroma")}, "desc-smoothAROMAnonaggr_bold.nii.gz in"),
    ],
)
def test_a_missing_entity_is_named_with_the_existing_ones(derivative, bids, words):
    assert words in refused(cohort(derivative, bids))


def test_images_without_a_space_entity_are_native_and_the_only_space_needs_no_name(tmp_path):
    tree = Derivative(tmp_path / "fmriprep")
    tree.write_run("01", space="")
    tree.write_participants("01")
    alone = names(list_cohort("c", cohort(tree, {"space": None})))
    tree.write_run("01", space="T1w")
    assert names(list_cohort("c", cohort(tree, {"space": "native"}))) == alone == {"01": ["sub-01_task-rest"]}


def test_a_known_atlas_needs_images_in_mni_space(derivative, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    known = Path("resources/atlases")
    known.mkdir(parents=True)
    for name in ("cc200.nii.gz", "cc200.tsv"):
        (known / name).touch()
    by_name = {"atlas": "cc200", "parcellation": None, "labels": None}
    found = refused(cohort(derivative, {"space": "T1w"}, **by_name))
    assert "expected images in MNI space for the atlas 'cc200', found space-T1w in sub-01_task-rest_run-01" in found
    assert list_cohort("c", cohort(derivative, {"space": "MNI152NLin2009cAsym"}, **by_name)).with_series


def test_sidecars_are_inherited_the_nearest_last(derivative):
    (derivative.folder / "task-rest_bold.json").write_text("{}")
    (derivative.folder / "task-nback_bold.json").write_text("{}")
    (derivative.folder / "sub-02" / "sub-02_task-rest_bold.json").write_text("{}")
    (derivative.folder / "sub-02" / "ses-a" / "sub-02_ses-a_bold.json").write_text("{}")
    listing = list_cohort("c", cohort(derivative))
    first = [path.removeprefix(f"{derivative.folder}/") for path in listing.subjects[1].runs[0].sidecars]
    assert first == [
        "task-rest_bold.json",
        "sub-02/sub-02_task-rest_bold.json",
        "sub-02/ses-a/sub-02_ses-a_bold.json",
        "sub-02/ses-a/func/sub-02_ses-a_task-rest_run-1_space-T1w_desc-preproc_bold.json",
    ]
    assert len(listing.subjects[1].runs[1].sidecars) == 3


@pytest.mark.parametrize("ids", [("01", "02"), ("sub-01", "02")])
def test_ids_match_with_and_without_their_prefix_and_keep_their_zeros(derivative, ids):
    derivative.write_participants(*ids)
    listing = list_cohort("c", cohort(derivative))
    assert [listed.subject for listed in listing.subjects] == sorted(ids)
    assert all(len(listed.runs) == 2 for listed in listing.subjects)


def test_one_subject_in_two_rows_is_refused(derivative):
    derivative.write_participants("01", "sub-01", "02")
    assert "line 3: expected every subject once, found sub-01 also in" in refused(cohort(derivative))


def test_ids_without_their_leading_zeros_are_refused_and_named(derivative):
    derivative.write_participants("1", "2")
    found = refused(cohort(derivative))
    assert "expected images of the 2 subjects" in found
    assert "(1, 2 ...), found only those of sub-01, sub-02 ...; fix the ids (are leading zeros lost?)" in found


def test_rows_may_be_chosen_by_their_cells(derivative):
    (derivative.folder / "participants.tsv").write_text(
        "participant_id\tsite\tage\tsex\tdiagnosis\tvisit\n"
        "sub-01\ta\t20\tmale\tpatient\tfirst\nsub-02\ta\t20\tmale\tcontrol\tsecond\n"
    )
    listing = list_cohort("c", cohort(derivative, rows={"visit": ("first",)}))
    assert [listed.subject for listed in listing.subjects] == ["sub-01"]
    assert listing.unlisted == ()


def test_a_column_may_hold_the_label(derivative):
    header = "participant_id\tsite\tage\tsex\tdiagnosis\tbids"
    derivative.write_participants("x\ta\t1\tmale\tpatient\tsub-02", "y\ta\t1\tmale\tpatient\tn/a", header=header)
    listing = list_cohort("c", cohort(derivative, columns=ColumnSettings(file="bids")))
    assert names(listing)["x"][0].startswith("sub-02")
    assert listing.absences == {"y": "no series"}


def test_a_subject_of_the_table_without_files_stops_the_run_or_is_dropped(derivative):
    derivative.write_participants("sub-01", "sub-02", "sub-03")
    found = refused(cohort(derivative))
    assert "of subject sub-03 in" in found
    assert "(1 of 3 subjects lack them); run fMRIPrep for them, or set on_invalid: drop" in found
    listing = list_cohort("c", cohort(derivative, on_invalid="drop"))
    assert listing.absences == {"sub-03": "series file absent"}


def test_a_subject_with_files_and_no_row_is_a_stranger(derivative):
    derivative.write_participants("sub-02")
    listing = list_cohort("c", cohort(derivative))
    assert [listed.subject for listed in listing.subjects] == ["sub-02"]
    assert listing.unlisted == ("sub-01",)


@pytest.mark.parametrize(
    ("pattern", "absence", "way_out"),
    [
        ("*run-02*confounds_timeseries.tsv", "confounds file absent", {"confounds": ConfoundSettings("none")}),
        ("*run-02_space-T1w_desc-brain_mask.nii.gz", "brain mask absent", {"brain_mask": False}),
    ],
)
def test_a_run_without_confounds_or_mask_stops_the_run_or_drops_its_subject(derivative, pattern, absence, way_out):
    (path,) = (derivative.folder / "sub-01" / "func").glob(pattern)
    path.unlink()
    assert "of subject sub-01 in" in (found := refused(cohort(derivative)))
    assert "found none for sub-01_task-rest_run-02_space-T1w (1 of 2 subjects lack them)" in found
    assert list_cohort("c", cohort(derivative, on_invalid="drop")).absences == {"sub-01": absence}
    assert list_cohort("c", cohort(derivative, way_out)).absences == {}


def test_compcor_asks_for_the_json_beside_the_table(derivative):
    settings = cohort(derivative, {"confounds": ConfoundSettings("compcor")})
    run = list_cohort("c", settings).subjects[0].runs[1]
    assert run.components == run.confounds.replace(".tsv", ".json")
    (derivative.folder / "sub-01" / "func" / "sub-01_task-rest_run-02_desc-confounds_timeseries.json").unlink()
    found = refused(settings)
    assert "a table of confounds and its json for every run" in found
    assert "found none for sub-01_task-rest_run-02_space-T1w (1 of 2 subjects lack them)" in found
    assert list_cohort("c", replace(settings, on_invalid="drop")).absences == {"sub-01": "confounds file absent"}
    assert list_cohort("c", cohort(derivative)).absences == {}


def test_a_missing_sidecar_excludes_nobody(derivative):
    for path in derivative.folder.rglob("*_bold.json"):
        path.unlink()
    listing = list_cohort("c", cohort(derivative))
    assert listing.with_series == ("sub-01", "sub-02")
    assert listing.subjects[0].runs[0].sidecars == ()


def test_the_table_may_lie_in_the_data_set_above(derivative):
    derivative.folder.rename(derivative.folder.parent / "data_derivatives")
    raw = derivative.folder.parent
    moved = Derivative(raw / "derivatives" / "fmriprep")
    moved.folder.parent.mkdir()
    (raw / "data_derivatives").rename(moved.folder)
    (moved.folder / "participants.tsv").rename(raw / "participants.tsv")
    assert list_cohort("c", cohort(moved)).tables == (str(raw / "participants.tsv"),)
    (raw / "participants.tsv").unlink()
    assert "expected participants.tsv in" in refused(cohort(moved))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bids": BidsSettings()}, "source 'bids' needs `bids.derivatives`, found nothing"),
        ({"bids": BidsSettings(derivatives="nowhere")}, "expected fMRIPrep's output in the folder nowhere, found none"),
        ({"parcellation": None}, "source 'bids' needs `parcellation`"),
        ({"labels": "absent.tsv"}, "expected the labels file absent.tsv, found none"),
        ({"series": "{subject}"}, "finds its files itself, found a pattern `series`; remove it"),
        (
            {"extraction": ExtractionSettings(detrend=False, standardise=False, high_pass=None)},
            "expected runs that are joined to share a baseline",
        ),
    ],
)
def test_an_impossible_setting_is_named(derivative, changes, words):
    assert words in refused(replace(cohort(derivative), **changes))


def test_an_empty_derivative_is_named(tmp_path):
    tree = Derivative(tmp_path / "fmriprep")
    tree.folder.mkdir()
    tree.write_participants("sub-01")
    assert "expected images sub-*/[ses-*/]func/*_desc-preproc_bold.nii.gz in" in refused(cohort(tree))


def test_a_folder_that_is_too_high_is_named_before_its_table(derivative, tmp_path):
    high = tmp_path / "high"
    (high / "other").mkdir(parents=True)
    (derivative.folder / "participants.tsv").unlink()
    derivative.folder.rename(high / "fmriprep")
    settings = cohort(derivative, {"derivatives": str(high)})
    assert (
        f"folders sub-* of fMRIPrep's output in {high}, found none; set bids.derivatives to {high}/fmriprep"
        in refused(settings)
    )
    (high / "fmriprep").rename(tmp_path / "elsewhere")
    assert f"in {high}, found none; fix bids.derivatives" in refused(settings)


def test_an_option_that_the_strategy_does_not_use_is_refused():
    confounds = {"strategy": "simple", "fd_threshold": 0.3}
    with pytest.raises(UserError, match=r"fd_threshold: expected none with strategy simple.*or choose scrubbing"):
        validate(CohortSettings, {"source": "bids", "bids": {"confounds": confounds}}, "config")


def test_options_are_nilearns_keywords():
    settings = {"strategy": "scrubbing", "fd_threshold": 0.3, "scrub": 0, "global_signal": "basic"}
    found = validate(CohortSettings, {"source": "bids", "bids": {"confounds": settings, "run_numbers": [1]}}, "config")
    assert found.bids.confounds.options == {"fd_threshold": 0.3, "scrub": 0, "global_signal": "basic"}


def test_listing_imports_no_library_of_numbers(derivative):
    settings = cohort(derivative)
    code = (
        "import sys\n"
        "from brainfed.cohort.sources._bids_tree import find_runs\n"
        "from brainfed.cohort.settings import BidsSettings\n"
        "import brainfed.cohort.sources._bids_listing\n"
        f"find_runs({settings.bids.derivatives!r}, BidsSettings(space='T1w'), 'c')\n"
        "print(sorted({'numpy', 'pandas', 'torch', 'nilearn', 'sklearn', 'nibabel', 'scipy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_the_first_session_is_the_one_of_the_lowest_number(tmp_path):
    tree = Derivative(tmp_path / "fmriprep")
    for session in ("10", "2", "w1"):
        tree.write_run("01", ses=session)
    tree.write_participants("sub-01")
    sessions = [name.split("_")[1] for name in names(list_cohort("c", cohort(tree)))["sub-01"]]
    assert sessions == ["ses-2", "ses-10", "ses-w1"]
    assert names(list_cohort("c", cohort(tree, {"runs": "first"})))["sub-01"] == ["sub-01_ses-2_task-rest_space-T1w"]


def test_ten_runs_are_ordered_by_number_not_as_text(tmp_path):
    tree = Derivative(tmp_path / "fmriprep")
    for run in ("10", "9", "1"):
        tree.write_run("01", run=run)
    tree.write_participants("sub-01")
    found = names(list_cohort("c", cohort(tree)))["sub-01"]
    assert [name.split("_")[2] for name in found] == ["run-1", "run-9", "run-10"]


def test_echoes_are_not_runs_and_two_versions_of_one_run_are_refused(derivative):
    func = derivative.folder / "sub-01" / "func"
    image = func / "sub-01_task-rest_run-01_space-T1w_desc-preproc_bold.nii.gz"
    shutil.copy(image, func / "sub-01_task-rest_run-01_echo-1_space-T1w_desc-preproc_bold.nii.gz")
    assert len(names(list_cohort("c", cohort(derivative)))["sub-01"]) == 2
    shutil.copy(image, func / "sub-01_task-rest_run-01_space-T1w_den-1_desc-preproc_bold.nii.gz")
    assert "expected one image a run, found" in refused(cohort(derivative))


def test_two_reconstructions_of_a_run_are_refused_until_one_is_chosen(derivative):
    func = derivative.folder / "sub-01" / "func"
    for path in func.glob("sub-01_task-rest_run-01_*"):
        shutil.copy(path, func / path.name.replace("_run-01", "_rec-moco_run-01"))
    found = refused(cohort(derivative))
    assert "expected one image a run, found" in found
    assert found.endswith("choose between reconstructions (rec-LABEL) by bids.reconstruction.")
    native = names(list_cohort("c", cohort(derivative, {"reconstruction": "native"})))
    assert native["sub-01"] == ["sub-01_task-rest_run-01_space-T1w", "sub-01_task-rest_run-02_space-T1w"]
    (func / "sub-01_task-rest_run-01_desc-confounds_timeseries.tsv").unlink()
    chosen = names(list_cohort("c", cohort(derivative, {"reconstruction": "moco"}, on_invalid="drop")))
    assert chosen == {"sub-01": ["sub-01_task-rest_rec-moco_run-01_space-T1w"], "sub-02": []}


def test_cohorts_of_a_template_are_spaces_of_their_own(derivative):
    func = derivative.folder / "sub-01" / "func"
    for path in func.glob("*_space-MNI152NLin2009cAsym_*"):
        for number in (1, 2):
            shutil.copy(path, func / path.name.replace("MNI152NLin2009cAsym", f"MNIPediatricAsym_cohort-{number}"))
    found = refused(cohort(derivative, {"space": "MNIPediatricAsym"}))
    assert "found space: MNI152NLin2009cAsym, MNIPediatricAsym:cohort-1, MNIPediatricAsym:cohort-2, T1w" in found
    second = names(list_cohort("c", cohort(derivative, {"space": "MNIPediatricAsym:cohort-2"}, on_invalid="drop")))
    assert second["sub-01"][0] == "sub-01_task-rest_run-01_space-MNIPediatricAsym_cohort-2"


@pytest.mark.parametrize("away", ["sub-02/ses-b", "sub-01"])
def test_an_image_in_the_folder_of_another_subject_or_session_is_refused(derivative, away):
    stray = next((derivative.folder / "sub-02" / "ses-a" / "func").glob("*_space-T1w_desc-preproc_bold.nii.gz"))
    shutil.move(stray, derivative.folder / away / "func" / stray.name)
    found = refused(cohort(derivative))
    assert f"{away}/func, found {stray.name}; move it to its folder, or fix its name." in found


@pytest.mark.parametrize("folder", [".", "./", "../fmriprep"])
def test_a_derivative_may_be_the_working_directory(derivative, monkeypatch, folder):
    expected = names(list_cohort("c", cohort(derivative)))
    settings = cohort(derivative, {"derivatives": folder})
    monkeypatch.chdir(derivative.folder)
    assert names(list_cohort("c", settings)) == expected
