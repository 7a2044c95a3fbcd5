"""Means of regions have the bytes of nilearn's masker for any grid, labels and order of the table."""

from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from scipy.signal import detrend

from brainfed.imaging.extraction._extraction import temporal_snr
from brainfed.imaging.scans import Atlas, Scan, average_regions, read_scan
from reference.masked_means import masked_means

SHAPE = (13, 11, 9)
AFFINE = nib.affines.from_matvec(np.diag([3.0, 3, 3]), (-18, -15, -12))


def scan_of(affine=AFFINE, shape=SHAPE, volumes=7):
    random = np.random.default_rng(0)
    voxels = random.normal(1000, 30, (*shape, volumes)).astype(np.float32)
    voxels[:2] = 0
    voxels[random.random(shape) < 0.1] = 5
    return Scan("s1", "s1.nii.gz", np.asfortranarray(voxels), affine, 2.0)


def atlas_of(indices=(4, 9, 2001, 17)):
    random = np.random.default_rng(1)
    labels = random.choice(np.array([0, *indices], dtype=np.int32), SHAPE)
    return Atlas("made up", labels, AFFINE, np.array(indices), tuple(map(str, indices)))


@pytest.mark.parametrize(
    ("affine", "shape"),
    [
        (AFFINE, SHAPE),
        (nib.affines.from_matvec(np.diag([2.0, 2, 2]), (-18, -15, -12)), (19, 16, 13)),
        (nib.affines.from_matvec(np.diag([-3.0, 3, 3]), (18, -15, -12)), SHAPE),
        (nib.affines.from_matvec(np.diag([4.0, 4, 5]), (-10, -15, -12)), (6, 9, 6)),
    ],
)
def test_means_equal_those_of_nilearns_masker_to_the_byte(affine, shape):
    scan, atlas = scan_of(affine, shape), atlas_of()
    expected, present = masked_means(scan.voxels, affine, atlas.labels, atlas.affine)
    found = average_regions(scan, atlas)
    order = [int(np.flatnonzero(atlas.indices == label)[0]) for label in present]
    assert found.means.dtype == np.float32
    assert np.array_equal(found.means[:, order], expected)


@pytest.mark.parametrize("slope", [None, 0.25])
@pytest.mark.parametrize("kind", [np.int16, np.float32, np.float64])
def test_means_have_the_masker_s_precision_for_the_stored_image(tmp_path, kind, slope):
    image = nib.Nifti1Image(scan_of().voxels.astype(kind), AFFINE)
    image.header.set_slope_inter(slope, None if slope is None else 3)
    nib.save(image, tmp_path / "s1.nii.gz")
    atlas = atlas_of()
    expected, present = masked_means(
        np.asanyarray(nib.load(tmp_path / "s1.nii.gz").dataobj), AFFINE, atlas.labels, AFFINE
    )
    found = average_regions(read_scan("s1", tmp_path / "s1.nii.gz"), atlas).means
    assert found.dtype == expected.dtype
    order = [int(np.flatnonzero(atlas.indices == label)[0]) for label in present]
    assert np.allclose(found[:, order], expected, rtol=1e-7)
    if kind is np.int16 and slope is None:
        assert np.array_equal(found[:, order], expected)


def test_the_memory_order_of_the_voxels_does_not_matter():
    scan, atlas = scan_of(), atlas_of()
    other = Scan("s1", "s1.nii.gz", np.ascontiguousarray(scan.voxels), AFFINE, 2.0)
    assert np.array_equal(average_regions(scan, atlas).means, average_regions(other, atlas).means)


def test_temporal_snr_is_the_median_over_regions_of_mean_over_standard_deviation():
    # m + s, m - s, m - s, m + s have mean m, standard deviation s and no trend.
    alternating = np.tile([1.0, -1.0, -1.0, 1.0], 5)[:, None]
    means = np.array([100.0, 60.0, 900.0]) + alternating * np.array([10.0, 2.0, 10.0])
    assert temporal_snr(means) == pytest.approx(30)
    with_unseen_and_constant = np.column_stack([means, np.full(20, np.nan), np.full(20, 7.0)])
    assert temporal_snr(with_unseen_and_constant) == pytest.approx(30)
    assert np.isnan(temporal_snr(np.full((20, 1), 7.0)))


def test_temporal_snr_counts_kept_volumes_about_their_trend():
    """Residuals of +s, -s, -s, +s have no trend: mean m, standard deviation s; dummies and spikes do not count."""
    residual = np.tile([1.0, -1.0, -1.0, 1.0], 25)[:, None]
    means = np.array([200.0, 300.0]) + 2 * residual
    assert temporal_snr(means) == pytest.approx(125)
    assert temporal_snr(means + np.linspace(-30, 30, 100)[:, None]) == pytest.approx(125)
    spoilt = np.vstack([np.full((4, 2), 900.0), means])
    spoilt[[50, 51]] = 3000.0
    kept = np.setdiff1d(np.arange(4, 104), [48, 49, 50, 51])
    assert temporal_snr(spoilt, kept) == pytest.approx(125)
    assert temporal_snr(spoilt) < 5
    assert np.isnan(temporal_snr(np.linspace(1, 2, 20)[:, None]))


def test_reading_a_scan_measures_its_temporal_snr(tmp_path: Path):
    from brainfed.cohort.settings import ExtractionSettings
    from brainfed.imaging.extraction import ScanFiles, extract

    voxels = scan_of(volumes=40).voxels
    nib.save(nib.Nifti1Image(voxels, AFFINE), tmp_path / "s1.nii.gz")
    atlas = atlas_of()
    settings = ExtractionSettings(high_pass=None, low_pass=None)
    found = extract("s1", ScanFiles(str(tmp_path / "s1.nii.gz")), atlas, settings)
    raw = average_regions(Scan("s1", "", voxels, AFFINE, 2.0), atlas).means.astype(np.float64)
    spread = detrend(raw, axis=0).std(axis=0)
    assert found.tsnr == pytest.approx(np.median(raw.mean(axis=0) / spread), rel=1e-6)
