"""Known answer: real CC200 series are recovered from a painted 4D image; real atlases fit template space."""

import os
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from nibabel.affines import apply_affine, from_matvec
from nilearn.datasets import load_mni152_brain_mask
from scipy.signal import detrend

from brainfed.cohort.settings import ExtractionSettings
from brainfed.imaging.extraction import ScanFiles, extract
from brainfed.imaging.scans import Scan, average_regions, load_atlas
from brainfed.imaging.series import varying_regions

pytestmark = pytest.mark.data

DATA = Path(os.environ.get("BRAINFED_DATA", "."))
ATLASES = ("CC200", "CC400", "aal_mask_pad", "ez_mask_pad", "ho_mask_pad", "rois_3mm", "tt_mask_pad")
SCALED = ExtractionSettings(detrend=False, standardise=True, high_pass=None, low_pass=None)
VOLUMES = 20
BASELINE = 1000
CUT = 20
MNI3 = (from_matvec(np.diag([3.0, 3, 3]), (-90, -126, -72)), (61, 73, 61))
MNI2 = (from_matvec(np.diag([2.0, 2, 2]), (-90, -126, -72)), (91, 109, 91))
SUBJECTS = ("CMU_a_0050642", "UM_2_0050419")


@pytest.fixture(scope="module")
def atlas():
    return load_atlas("cc200", DATA / "atlases" / "CC200.nii.gz")


@pytest.fixture(scope="module")
def series():
    with np.load(DATA / "abide" / "timeseries.npz") as source:
        found = {subject: source[subject][:VOLUMES] for subject in SUBJECTS}
    assert all(varying_regions(values).all() for values in found.values())
    return found


def painted(atlas, series, affine, shape):
    """(x, y, z, time) voxels, each with the series of its nearest label."""
    places = apply_affine(affine, np.argwhere(np.ones(shape, dtype=bool)))
    nearest = np.rint(apply_affine(np.linalg.inv(atlas.affine), places)).astype(int)
    inside = ((nearest >= 0) & (nearest < atlas.labels.shape)).all(axis=1)
    labels = np.zeros(len(places), dtype=int)
    labels[inside] = atlas.labels[tuple(nearest[inside].T)]
    rows = np.vstack([np.zeros(len(series), dtype=np.float32), BASELINE + series.T])
    return rows[labels].reshape(*shape, len(series))


def extracted(folder, atlas, voxels, affine):
    nib.save(nib.Nifti1Image(voxels, affine), folder / "scan.nii")
    return extract("s1", ScanFiles(str(folder / "scan.nii")), atlas, SCALED)


def similarity(one, other):
    return np.array([np.corrcoef(a, b)[0, 1] for a, b in zip(one.T, other.T, strict=True)])


@pytest.mark.parametrize("subject", SUBJECTS)
def test_series_in_a_3_mm_image_are_recovered(tmp_path, atlas, series, subject):
    found = extracted(tmp_path, atlas, painted(atlas, series[subject], *MNI3), MNI3[0])
    assert similarity(found.series, series[subject]).min() > 0.999
    assert (found.coverage == 1).all()
    assert found.resampled == "from 3 mm to 3 mm on another grid"
    assert found.suspicion == ""
    spread = detrend(series[subject], axis=0).std(axis=0)
    expected = np.median((BASELINE + series[subject].mean(axis=0)) / spread)
    assert found.tsnr == pytest.approx(expected, rel=1e-3)


def test_series_in_a_2_mm_image_are_recovered(tmp_path, atlas, series):
    found = extracted(tmp_path, atlas, painted(atlas, series[SUBJECTS[0]], *MNI2), MNI2[0])
    assert similarity(found.series, series[SUBJECTS[0]]).min() > 0.999
    assert (found.coverage > 0.99).all()
    assert found.resampled == "from 3 mm to 2 mm"
    assert found.suspicion == ""


def test_regions_below_the_field_of_view_are_nan_and_the_others_recovered(tmp_path, atlas, series):
    affine, shape = MNI3
    voxels = painted(atlas, series[SUBJECTS[0]], affine, shape)[:, :, CUT:]
    lowest = -72 + 3 * CUT
    found = extracted(tmp_path, atlas, voxels, affine @ from_matvec(np.eye(3), (0, 0, CUT)))
    position = np.argwhere(atlas.labels > 0)
    in_view = apply_affine(atlas.affine, position)[:, 2] >= lowest
    label = atlas.labels[tuple(position.T)]
    expected = np.array([in_view[label == index].mean() for index in atlas.indices])
    assert found.coverage == pytest.approx(expected)
    unseen, partial = expected == 0, (expected > 0) & (expected < 1)
    assert min(unseen.sum(), partial.sum(), (expected == 1).sum()) > 5
    assert np.array_equal(np.isnan(found.series).all(axis=0), unseen)
    assert similarity(found.series[:, ~unseen], series[SUBJECTS[0]][:, ~unseen]).min() > 0.999
    assert found.suspicion == ""


@pytest.mark.parametrize("name", ATLASES)
def test_real_atlases_fit_a_brain_in_template_space_and_not_one_with_swapped_axes(name):
    mask = load_mni152_brain_mask(resolution=3)
    brain = np.asarray(mask.dataobj)[..., None] * np.float32([900, 1100])
    atlas = load_atlas(name, DATA / "atlases" / f"{name}.nii.gz")
    assert average_regions(Scan("s1", "", brain, mask.affine, 2.0), atlas).suspicion == ""
    swapped = np.eye(4)[[0, 2, 1, 3]] @ mask.affine
    found = average_regions(Scan("s1", "", brain, swapped, 2.0), atlas).suspicion
    assert "with the image's axes swapped or reversed" in found
