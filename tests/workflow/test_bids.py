"""fMRIPrep's output through the workflow: real BOLD images to connectivity, equal to what nilearn alone gives."""

import json
import os
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from nilearn.connectome import ConnectivityMeasure
from nilearn.interfaces.fmriprep import load_confounds_strategy
from nilearn.maskers import NiftiLabelsMasker
from sklearn.covariance import EmpiricalCovariance

from brainfed.runtime import read_arrays
from support.files.bids_dataset import Derivative, confounds
from workflow.project import new_project, participants_of

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.data,
    pytest.mark.skipif("BRAINFED_DATA" not in os.environ, reason="BRAINFED_DATA names no folder of real data"),
]

VOLUMES, TR = 121, 2.5
MOVED = (30, 31, 77)
"""All in first runs, fewer in second ones: of runs as long as each other, joined series have the mean correlation."""
PEOPLE = {"01": ("", ("1", "2")), "02": ("", ("1", "2")), "03": ("a", ("1",)), "04": ("", ("1", "2"))}
"""Subject -> its session and runs; each run is one of the real scans."""


def atlas_of(folder, data):
    """The parcellation of the real scans, its labels named."""
    folder.mkdir()
    labels = nib.load(data / "mask_hoc.nii.gz")
    nib.save(labels, folder / "hoc.nii.gz")
    present = np.unique(np.asarray(labels.dataobj))
    (folder / "hoc.tsv").write_text(
        "index\tname\n" + "".join(f"{label:.0f}\tregion-{label:.0f}\n" for label in present if label)
    )


def write_derivative(folder, data):
    tree = Derivative(folder)
    scans = sorted(data.glob("run*_bold_25mm.nii.gz"))
    for subject, (session, runs) in PEOPLE.items():
        for run in runs:
            number = int(subject) * 2 + int(run) - 3
            tree.write_run(
                subject,
                ses=session,
                run=run,
                tr=TR,
                image=scans[number],
                mask=data / "mask_brain.nii.gz",
                table=confounds_of(subject, run),
            )
    rows = [
        f"{subject}\t{'ab'[int(subject) % 2]}\t{20 + int(subject)}\tfemale\t{('patient', 'control')[int(subject) // 3]}"
        for subject in PEOPLE
    ]
    tree.write_participants(*rows)


def config(**bids):
    confounds_settings = {"strategy": "scrubbing", "fd_threshold": 0.5, "scrub": 3}
    cohort = {
        "source": "bids",
        "atlas": "hoc",
        "bids": {"derivatives": "data/derivatives/fmriprep", "space": "T1w", "confounds": confounds_settings} | bids,
        "parcellation": "data/atlas/hoc.nii.gz",
        "labels": "data/atlas/hoc.tsv",
        "shards": 2,
        "on_invalid": "drop",
    }
    experiment = {"variants": ["ridge-central"], "reference": "ridge-central"}
    return {"cohorts": {"lab": cohort}, "experiments": {"methods": experiment}}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A project whose cohort is a derivative made of real scans; its connectivity and BIDS files are computed."""
    folder = tmp_path_factory.mktemp("lab")
    data = Path(os.environ["BRAINFED_DATA"]) / "bold4d" / "haxby2001_25mm"
    write_derivative(folder / "data" / "derivatives" / "fmriprep", data)
    atlas_of(folder / "data" / "atlas", data)
    project = new_project(folder, subjects=0, **config(runs="average"))
    (features,) = features_of(project)
    project.snakemake("--cores", "2", features, "export_bids", "results/lab/cohort/issues.tsv")
    return project


def features_of(project):
    """The feature files that the config's tables need."""
    done = project.snakemake("-n", "--quiet=host", "tables")
    lines = {word.strip(",") for word in (done.stdout + done.stderr).split()}
    return sorted(word for word in lines if "/features/" in word and word.endswith("all.safetensors"))


def by_nilearn(project, image):
    """Correlations of one run as a user of nilearn computes them."""
    func = project.folder / "data" / "derivatives" / "fmriprep" / image
    table, kept = load_confounds_strategy(str(func), "scrubbing", fd_threshold=0.5, scrub=3)
    masker = NiftiLabelsMasker(
        project.folder / "data" / "atlas" / "hoc.nii.gz",
        mask_img=str(func).replace("preproc_bold", "brain_mask"),
        standardize="zscore_sample",
        detrend=True,
        high_pass=0.01,
        low_pass=0.1,
        t_r=TR,
    )
    series = masker.fit_transform(str(func), confounds=table, sample_mask=kept)
    return (
        ConnectivityMeasure(EmpiricalCovariance(), "correlation", standardize=False).fit_transform([series])[0],
        series,
        masker,
    )


def confounds_of(subject, run):
    return confounds(VOLUMES, int(subject) * 2 + int(run) - 3, MOVED[: 4 - int(run)], unsteady=1)


def runs_of(subject):
    session, runs = PEOPLE[subject]
    middle = f"_ses-{session}" if session else ""
    folder = f"sub-{subject}/ses-{session}" if session else f"sub-{subject}"
    return [
        f"{folder}/func/sub-{subject}{middle}_task-rest_run-{run}_space-T1w_desc-preproc_bold.nii.gz" for run in runs
    ]


@pytest.mark.parametrize("subject", PEOPLE)
def test_connectivity_of_real_scans_is_that_of_nilearn_to_a_millionth(lab, subject):
    (path,) = (lab.folder / "results" / "lab" / "features").glob("*/all.safetensors")
    features = read_arrays(path)
    assert features.subjects == tuple(PEOPLE)
    found = features.arrays["features"][features.subjects.index(subject)]
    matrices = []
    for run in runs_of(subject):
        matrix, _, masker = by_nilearn(lab, run)
        names = [f"region-{label:.0f}" for label in masker.labels_ if label != 0]
        assert names == features.metadata["regions"]
        matrices.append(matrix)
    expected = np.mean(matrices, axis=0)[np.triu_indices(len(names), 1)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_the_files_of_bids_hold_series_correlations_and_coverage(lab):
    root = lab.folder / "results" / "lab" / "bids"
    assert json.loads((root / "dataset_description.json").read_text())["DatasetType"] == "derivative"
    stem = root / "sub-03" / "ses-a" / "func" / "sub-03_ses-a_task-rest_run-1_space-T1w_atlas-hoc"
    series = pd.read_csv(f"{stem}_stat-mean_timeseries.tsv", sep="\t")
    matrix = pd.read_csv(f"{stem}_stat-pearsoncorrelation_relmat.tsv", sep="\t", index_col="Node")
    expected, values, _ = by_nilearn(lab, runs_of("03")[0])
    np.testing.assert_allclose(series.to_numpy(), values, atol=1e-4)
    np.testing.assert_allclose(matrix.to_numpy(), expected, atol=1e-6)
    assert list(matrix.columns) == list(matrix.index) == list(series.columns)
    coverage = pd.read_csv(f"{stem}_stat-coverage_bold.tsv", sep="\t")
    assert list(coverage["node"]) == list(matrix.columns)
    facts = json.loads(Path(f"{stem}_stat-mean_timeseries.json").read_text())
    assert len(series) < VOLUMES
    assert "SamplingFrequency" not in facts
    joined = {path.name for path in (root / "sub-01" / "func").glob("*.tsv")}
    assert "sub-01_task-rest_space-T1w_atlas-hoc_stat-mean_timeseries.tsv" in joined


def test_motion_is_known_and_missing_runs_are_reported(lab):
    results = lab.folder / "results" / "lab"
    people = participants_of(results / "cohort")
    for subject, (_, runs) in PEOPLE.items():
        tables = [confounds_of(subject, run)["framewise_displacement"] for run in runs]
        assert people.loc[subject, "mean_fd"] == pytest.approx(pd.concat(tables).mean())
    quality = pd.concat([pd.read_parquet(path) for path in results.glob("timeseries/hoc/*-quality.parquet")])
    kept = quality.set_index("subject")["timepoints"].to_dict()
    assert kept == {subject: sum(VOLUMES - 5 + int(run) for run in runs) for subject, (_, runs) in PEOPLE.items()}
    issues = pd.read_csv(results / "cohort" / "issues.tsv", sep="\t", dtype=str, keep_default_na=False)
    used = quality.set_index("subject")["runs"].to_dict()
    assert used == {subject: len(runs) for subject, (_, runs) in PEOPLE.items()}
    assert issues.loc[issues["kind"] == "fewer runs", "subject"].tolist() == ["03"]


def test_a_wrong_space_stops_the_run_with_the_spaces_that_there_are(lab, tmp_path):
    copied = lab.copy(tmp_path / "lab")
    copied.configure(**config(space="MNI152NLin6Asym"))
    done = copied.snakemake("-n", "tables", check=False)
    assert done.returncode
    assert "expected images with space-MNI152NLin6Asym, found space: T1w; fix bids.space" in done.stdout + done.stderr
