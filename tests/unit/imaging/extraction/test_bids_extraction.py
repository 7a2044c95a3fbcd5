"""One subject's series equals that of nilearn's masker, run after run; broken files are named."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from nilearn.connectome import ConnectivityMeasure
from nilearn.interfaces.fmriprep import load_confounds_strategy
from nilearn.maskers import NiftiLabelsMasker
from sklearn.covariance import EmpiricalCovariance

from brainfed.cohort.settings import BidsSettings, CohortSettings, ConfoundSettings, ExtractionSettings
from brainfed.cohort.sources import list_cohort
from brainfed.imaging import FeatureSettings, connectivity, covariances
from brainfed.imaging.extraction import SubjectRuns, extract_bids_shard, extract_subject
from brainfed.imaging.extraction._bids_extraction import load_regressors
from brainfed.imaging.extraction._extraction import join_runs
from brainfed.imaging.scans import load_atlas
from brainfed.imaging.series import RegionSeries, load_runs, load_series
from brainfed.runtime import UserError, read_table
from support.files.bids_dataset import AFFINE, SHAPE, TR, VOLUMES, Derivative, confounds, write_atlas
from support.files.run_of_cohort import parts_of

MOVED = (20, 21, 40)


@pytest.fixture
def derivative(tmp_path):
    """One subject, two runs; the second has motion and two non-steady-state volumes."""
    tree = Derivative(tmp_path / "fmriprep")
    tree.write_run("01", run="1", seed=1)
    tree.write_run("01", run="2", seed=2, table=confounds(VOLUMES, 2, MOVED, unsteady=2))
    tree.write_participants("01")
    return tree


def cohort(derivative, strategy="scrubbing", bids=None, **changes):
    options = changes.pop("options", {"scrub": 0} if strategy == "scrubbing" else {})
    chosen = BidsSettings(
        derivatives=str(derivative.folder), confounds=ConfoundSettings(strategy, **options), **(bids or {})
    )
    atlas = write_atlas(derivative.folder.parent / "atlas")
    return CohortSettings(source="bids", bids=chosen, **({"min_timepoints": 20} | atlas | changes))


def extracted(settings, tr=None):
    (listed,) = list_cohort("c", settings).subjects
    atlas = load_atlas("three", settings.parcellation, settings.labels)
    return extract_subject(listed.subject, SubjectRuns(listed.runs, tr), atlas, settings)


def refused(settings, tr=None):
    with pytest.raises(UserError) as caught:
        extracted(settings, tr)
    return str(caught.value)


def by_nilearn(derivative, settings, run, **options):
    """Series of one run, computed with nilearn's own functions."""
    func = derivative.folder / "sub-01" / "func"
    image = str(func / f"sub-01_task-rest_run-{run}_space-T1w_desc-preproc_bold.nii.gz")
    table, kept = load_confounds_strategy(image, settings.bids.confounds.strategy, **options)
    masker = NiftiLabelsMasker(
        settings.parcellation,
        mask_img=image.replace("preproc_bold", "brain_mask"),
        standardize="zscore_sample",
        detrend=True,
        low_pass=0.1,
        high_pass=0.01,
        t_r=TR,
    )
    return masker.fit_transform(image, confounds=table, sample_mask=kept)


@pytest.mark.parametrize(
    ("strategy", "options"),
    [
        ("simple", {"motion": "basic", "wm_csf": "power2", "global_signal": "basic"}),
        ("scrubbing", {"scrub": 3, "fd_threshold": 0.19, "wm_csf": "basic", "motion": "basic"}),
        ("compcor", {"n_compcor": 3}),
    ],
)
def test_series_are_those_of_nilearns_masker_run_after_run(derivative, strategy, options):
    settings = cohort(derivative, strategy, options=options)
    found = extracted(settings)
    expected = [by_nilearn(derivative, settings, run, **options) for run in (1, 2)]
    np.testing.assert_allclose(found.series, np.concatenate(expected), atol=1e-4)
    assert found.runs == tuple(len(run) for run in expected)
    assert found.volumes == 2 * VOLUMES


def test_the_length_after_scrubbing_is_recorded(derivative):
    found = extracted(cohort(derivative))
    assert found.runs == (VOLUMES, VOLUMES - len(MOVED) - 2)
    assert (len(found.series), found.volumes) == (sum(found.runs), 2 * VOLUMES)


def test_kept_volumes_count_for_the_shortest_series(derivative, tmp_path):
    settings = cohort(derivative, min_timepoints=2 * VOLUMES - 4)
    (listed,) = list_cohort("c", settings).subjects
    atlas = load_atlas("three", settings.parcellation, settings.labels)
    out = parts_of(tmp_path)
    with pytest.raises(UserError, match=f"expected at least {2 * VOLUMES - 4} time points, found {2 * VOLUMES - 5}"):
        extract_bids_shard({"01": SubjectRuns(listed.runs)}, atlas, settings, out)


def test_motion_is_the_mean_displacement_of_all_acquired_volumes(derivative):
    tables = [confounds(VOLUMES, 1), confounds(VOLUMES, 2, MOVED, unsteady=2)]
    means = [table["framewise_displacement"].mean() for table in tables]
    assert extracted(cohort(derivative)).mean_fd == pytest.approx(np.mean(means))


def test_connectivity_is_averaged_over_runs_and_so_is_its_transform(derivative, tmp_path):
    settings = cohort(derivative, bids={"runs": "average"})
    (listed,) = list_cohort("c", settings).subjects
    atlas = load_atlas("three", settings.parcellation, settings.labels)
    out = parts_of(tmp_path)
    extract_bids_shard({"01": SubjectRuns(listed.runs)}, atlas, settings, out)
    series, _ = load_series([out.series], ["01"])
    runs = load_runs([out.series])
    assert runs == {"01": (VOLUMES, VOLUMES - 5)}
    measure = ConnectivityMeasure(EmpiricalCovariance(), "correlation", standardize=False)
    matrices = measure.fit_transform([by_nilearn(derivative, settings, run, scrub=0) for run in (1, 2)])
    upper = np.triu_indices(3, 1)
    correlations = np.array([matrix[upper] for matrix in matrices])
    found = connectivity(series, FeatureSettings(), runs)
    np.testing.assert_allclose(found[0], correlations.mean(axis=0), atol=1e-6)
    found = connectivity(series, FeatureSettings(fisher_z=True), runs)
    np.testing.assert_allclose(found[0], np.arctanh(correlations).mean(axis=0), atol=1e-6)
    assert read_table(out.quality)["runs"].tolist() == [2]


def test_a_run_too_short_for_a_correlation_of_its_own_is_left_out_of_the_average(derivative):
    found = extracted(cohort(derivative, bids={"runs": "average"}, min_timepoints=VOLUMES - 4))
    assert (len(found.series), found.runs) == (VOLUMES, ())
    message = refused(cohort(derivative, bids={"runs": "average"}, min_timepoints=VOLUMES + 1))
    assert f"expected a run with at least {VOLUMES + 1} time points, found 150, 145" in message


@pytest.mark.parametrize(
    ("moved", "volumes", "words"),
    [
        (range(VOLUMES), VOLUMES, "found all 150 scrubbed"),
        (range(120), VOLUMES, "expected more degrees of freedom than the"),
        ((), 33, "expected at least 34 volumes for the band-pass, found 33"),
    ],
)
def test_an_unusable_run_is_left_out_of_an_average_only(derivative, moved, volumes, words, caplog):
    table = confounds(volumes, 2, tuple(moved))
    derivative.write_run("01", run="2", seed=2, table=table, volumes=volumes)
    found = extracted(cohort(derivative, bids={"runs": "average"}))
    assert (len(found.series), found.runs) == (VOLUMES, ())
    assert words in caplog.text
    assert words in refused(cohort(derivative))
    derivative.write_run("01", run="1", seed=2, table=table, volumes=volumes)
    assert words in refused(cohort(derivative, bids={"runs": "average"}))


def test_voxels_outside_the_brain_have_no_signal(derivative, tmp_path):
    mask = np.ones(SHAPE, dtype=np.uint8)
    mask[:2] = 0
    mask[2, :2] = 0
    for path in derivative.folder.rglob("*desc-brain_mask.nii.gz"):
        nib.save(nib.Nifti1Image(mask, AFFINE), path)
    found = extracted(cohort(derivative))
    assert found.coverage.tolist() == [0, 0.75, 1]
    assert np.isnan(found.series[:, 0]).all()
    assert extracted(cohort(derivative, bids={"brain_mask": False})).coverage.tolist() == [1, 1, 1]


def test_nan_and_infinity_outside_the_brain_are_ignored(derivative):
    """The mask holds the third region; NaN and infinity are in the first."""
    mask = np.repeat(np.array([0, 1, 1, 1, 1, 1], dtype=np.uint8), 16).reshape(SHAPE)
    for path in derivative.folder.rglob("*desc-brain_mask.nii.gz"):
        nib.save(nib.Nifti1Image(mask, AFFINE), path)
    expected = extracted(cohort(derivative))
    (path,) = derivative.folder.rglob("*run-2*bold.nii.gz")
    image = nib.load(path)
    voxels = image.get_fdata(dtype=np.float32)
    voxels[0, 1, 2, 5], voxels[0, 0, 0, 7:] = np.nan, np.inf
    nib.save(nib.Nifti1Image(voxels, AFFINE, image.header), path)
    assert np.array_equal(extracted(cohort(derivative)).series, expected.series)
    assert "found 144 NaN or infinite ones" in refused(cohort(derivative, bids={"brain_mask": False}))


def test_a_region_unseen_in_one_run_is_unseen_in_the_joined_series():
    seen, half = np.ones((4, 2), dtype=np.float32), np.ones((2, 2), dtype=np.float32)
    half[:, 1] = np.nan
    one = RegionSeries(seen, np.array([1.0, 1.0]), 2.0, volumes=6, mean_fd=0.1, tsnr=50.0)
    other = RegionSeries(half, np.array([0.5, 0.0]), 2.0, volumes=2, mean_fd=0.5)
    joined = join_runs([one, other])
    assert np.isnan(joined.series).all(axis=0).tolist() == [False, True]
    assert joined.coverage.tolist() == [0.5, 0]
    assert (joined.volumes, joined.runs, joined.tsnr) == (8, (4, 2), 50.0)
    assert joined.mean_fd == pytest.approx(0.2)


def test_a_region_seen_in_one_run_has_the_connections_of_that_run_in_an_average():
    random = np.random.default_rng(0)
    runs = random.standard_normal((2, 30, 3)).astype(np.float32)
    runs[1, :, 2] = np.nan
    joined = join_runs([RegionSeries(run, ~np.isnan(run[0]) * 0.5, 2.0) for run in runs], apart=True)
    assert joined.coverage.tolist() == [0.5, 0.5, 0]
    found = connectivity({"s": joined.series}, FeatureSettings(), {"s": joined.runs})[0]
    first, second = (np.corrcoef(run.T)[np.triu_indices(3, 1)] for run in runs)
    np.testing.assert_allclose(found, [(first[0] + second[0]) / 2, first[1], first[2]], atol=1e-6)
    assert connectivity({"s": joined.series}, FeatureSettings())[0, 1:].tolist() == [0, 0]
    names = [str(region) for region in range(joined.series.shape[1])]
    assert np.isfinite(covariances({"s": joined.series}, names, 0.0, {}).logarithm).all()


def write_header_trs(derivative, tr):
    derivative.write_run("01", run="1", seed=1, header_tr=tr)
    derivative.write_run("01", run="2", seed=2, header_tr=tr)


def test_the_sidecar_overrules_the_header_and_a_setting_overrules_both(derivative):
    agreeing = extracted(cohort(derivative, "none"))
    assert (agreeing.tr, np.isnan(agreeing.header_tr)) == (TR, True)
    write_header_trs(derivative, 1.0)
    disagreeing = extracted(cohort(derivative, "none"))
    assert (disagreeing.tr, disagreeing.header_tr) == (TR, 1.0)
    assert np.array_equal(disagreeing.series, agreeing.series)
    given = extracted(cohort(derivative, "none"), tr=2.2)
    assert (given.tr, np.isnan(given.header_tr)) == (2.2, True)


def test_without_a_sidecar_the_header_counts_and_the_nearest_sidecar_wins(derivative):
    write_header_trs(derivative, 2.5)
    for path in derivative.folder.rglob("*_bold.json"):
        path.unlink()
    assert extracted(cohort(derivative, "none")).tr == pytest.approx(2.5)
    (derivative.folder / "task-rest_bold.json").write_text('{"RepetitionTime": 2.0}')
    assert extracted(cohort(derivative, "none")).tr == 2.0
    (derivative.folder / "sub-01" / "sub-01_task-rest_bold.json").write_text('{"RepetitionTime": 2.2}')
    assert extracted(cohort(derivative, "none")).tr == 2.2


def rewritten(derivative, change):
    table = change(confounds(VOLUMES, 2, MOVED))
    derivative.write_run("01", run="2", seed=2, table=table)


def test_more_regressors_than_degrees_of_freedom_are_refused(derivative):
    rewritten(derivative, lambda table: table.assign(framewise_displacement=np.where(table.index % 3, 9.0, 0.1)))
    message = refused(cohort(derivative))
    words = "than the 34 regressors, found about 18 (50 of 150 volumes kept, 36 % of their band passed)"
    assert f"expected more degrees of freedom {words}" in message
    wide = ExtractionSettings(high_pass=None, low_pass=None)
    assert extracted(cohort(derivative, extraction=wide)).runs == (VOLUMES, 50)


def test_without_filter_and_strategy_the_series_are_the_means(derivative):
    raw = ExtractionSettings(detrend=False, standardise=False, high_pass=None, low_pass=None)
    settings = cohort(derivative, "none", {"runs": "first"}, extraction=raw)
    found = extracted(settings)
    voxels = np.random.default_rng(1).normal(1000, 10, (*SHAPE, VOLUMES)).astype(np.float32)
    expected = voxels.reshape(3, 2, 4, 4, VOLUMES).mean(axis=(1, 2, 3)).T
    np.testing.assert_allclose(found.series, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("components", "found a file that does not open ("), ("confounds", "table of confounds, found an unreadable one")],
)
def test_a_file_that_goes_after_the_listing_is_named(derivative, kind, words):
    run = list_cohort("c", cohort(derivative, "compcor")).subjects[0].runs[0]
    Path(getattr(run, kind)).unlink()
    with pytest.raises(UserError) as caught:
        load_regressors("01", run, VOLUMES, ConfoundSettings("compcor"))
    assert str(caught.value).startswith(f"Subject 01, confounds of {run.image}")
    assert words in str(caught.value)
