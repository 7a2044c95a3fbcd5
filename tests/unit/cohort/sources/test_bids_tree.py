"""Runs among the images, their order, versions of one run, images in wrong folders."""

import shutil

import pytest

from brainfed.cohort.sources.listing import list_cohort
from support.files.bids_cohort import cohort, names, refused, two_subjects
from support.files.bids_dataset import Derivative


@pytest.fixture
def derivative(tmp_path):
    return two_subjects(tmp_path / "fmriprep")


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
