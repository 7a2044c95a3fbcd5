"""An image in an unexpected space is accepted with a warning; a resampling of its atlas is logged."""

import logging
from functools import cache
from itertools import permutations

import nibabel as nib
import numpy as np
import pytest
from nibabel.affines import apply_affine, from_matvec
from scipy.spatial.transform import Rotation

from brainfed.cohort.settings import CohortSettings, ExtractionSettings
from brainfed.imaging.extraction import ScanFiles, extract_shard
from brainfed.imaging.scans import Atlas, Scan, average_regions, read_scan, voxels_in_view
from brainfed.runtime import UserError, read_table
from support.files.run_of_cohort import parts_of

MNI3 = from_matvec(np.diag([3.0, 3, 3]), (-90, -126, -72))
SHAPE3 = (61, 73, 61)
MNI2 = from_matvec(np.diag([2.0, 2, 2]), (-90, -126, -72))
SHAPE2 = (91, 109, 91)


def inside_brain(places):
    """An ellipsoid of a brain's size in MNI space with a cerebellum at its back: no turn maps it onto itself."""
    cerebrum = (((places - (0, -18, 12)) / (70, 88, 62)) ** 2).sum(axis=-1) <= 1
    cerebellum = (((places - (0, -62, -38)) / (50, 34, 30)) ** 2).sum(axis=-1) <= 1
    return cerebrum | cerebellum


def grid(shape, affine):
    return apply_affine(affine, np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1))


@cache
def octants():
    """Octants of the brain about (0, -18, 12) mm, numbered 1 ... 8."""
    places = grid(SHAPE3, MNI3)
    octant = 1 + ((places > (0, -18, 12)) * (1, 2, 4)).sum(axis=-1)
    labels = np.where(inside_brain(places), octant, 0).astype(np.int32)
    return Atlas("octants", labels, MNI3, np.arange(1, 9), tuple("12345678"))


def voxels_on(affine, shape, noise):
    """(x, y, z, 4) voxels of a brain."""
    brain = inside_brain(grid(shape, affine))[..., None]
    drawn = np.random.default_rng(0).standard_normal((*shape, 4), dtype=np.float32)
    return drawn * np.where(brain, np.float32(10), np.float32(noise)) + brain * np.float32(1000)


@cache
def usual_voxels(noise):
    return voxels_on(MNI3, SHAPE3, noise)


def scan_of(affine=MNI3, shape=SHAPE3, claimed=None, noise=0.0):
    """A brain on a grid; the header claims another affine."""
    voxels = usual_voxels(noise).copy() if affine is MNI3 else voxels_on(affine, shape, noise)
    return Scan("s1", "s1.nii.gz", voxels, affine if claimed is None else claimed, 2.0)


def suspicion_of(scan):
    return average_regions(scan, octants()).suspicion


@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_an_image_in_the_atlas_space_is_not_suspicious(noise):
    assert suspicion_of(scan_of(noise=noise)) == ""
    assert average_regions(scan_of(), octants()).resampled == ""


@pytest.mark.parametrize(
    ("affine", "shape", "how"),
    [
        (MNI2, SHAPE2, "from 3 mm to 2 mm"),
        (from_matvec(np.diag([-2.0, 2, 2]), (90, -126, -72)), SHAPE2, "from 3 mm to 2 mm"),
        (from_matvec(np.diag([3.0, 3, 4]), (-90, -126, -72)), (61, 73, 46), "from 3 mm to 3 x 3 x 4 mm"),
        (from_matvec(np.diag([3.0, 3, 3]), (-93, -129, -75)), (63, 75, 63), "from 3 mm to 3 mm on another grid"),
    ],
)
def test_another_grid_is_followed_and_recorded(affine, shape, how):
    found = average_regions(scan_of(affine, shape), octants())
    assert (found.resampled, found.suspicion) == (how, "")
    assert (found.coverage > 0.98).all()


def test_an_image_stored_from_right_to_left_keeps_its_sides():
    scan = scan_of(from_matvec(np.diag([-3.0, 3, 3]), (90, -126, -72)))
    voxels = scan.voxels + 100 * (grid(SHAPE3, scan.affine)[..., :1] > 0)
    found = average_regions(Scan("s1", "", voxels, scan.affine, 2.0), octants())
    assert found.suspicion == ""
    right = np.arange(1, 9) % 2 == 0
    assert (found.means[:, right] > 1095).all()
    assert (found.means[:, ~right] < 1005).all()


@pytest.mark.parametrize("order", [order for order in permutations(range(3)) if order != (0, 1, 2)])
@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_swapped_axes_are_detected(order, noise):
    turned = np.eye(4)
    turned[:3, :3] = np.eye(3)[list(order)]
    assert "with the image's axes swapped or reversed" in suspicion_of(scan_of(claimed=turned @ MNI3, noise=noise))


@pytest.mark.parametrize("signs", [(1, -1, 1), (1, 1, -1), (1, -1, -1)])
def test_an_image_turned_back_to_front_or_upside_down_is_detected(signs):
    claimed = np.diag([*signs, 1.0]) @ MNI3
    assert "with the image's axes swapped or reversed" in suspicion_of(scan_of(claimed=claimed))


def test_a_mirrored_affine_is_not_detected():
    assert suspicion_of(scan_of(claimed=np.diag([-1.0, 1, 1, 1]) @ MNI3)) == ""


@pytest.mark.parametrize("degrees", [2, 10, 30])
def test_turned_axes_are_detected(degrees):
    turned = np.eye(4)
    turned[:3, :3] = Rotation.from_euler("x", degrees, degrees=True).as_matrix()
    assert f"axes are turned by {degrees} degrees" in suspicion_of(scan_of(claimed=turned @ MNI3))


@pytest.mark.parametrize("unseen", [slice(0, 20), slice(45, 73)])
def test_a_field_of_view_without_a_slab_is_not_suspicious(unseen):
    scan = scan_of()
    scan.voxels[:, unseen] = 0
    assert suspicion_of(scan) == ""


def test_an_image_with_little_of_the_atlas_is_suspicious():
    far = MNI3.copy()
    far[1, 3] += 110
    assert "% of the atlas have a signal" in suspicion_of(scan_of(claimed=far))


def test_two_different_affines_of_one_header_are_suspicious(tmp_path):
    scan = scan_of()
    image = nib.Nifti1Image(scan.voxels, MNI3)
    image.set_sform(MNI3, code="mni")
    image.set_qform(MNI3, code="mni")
    nib.save(image, tmp_path / "agree.nii.gz")
    shifted = MNI3.copy()
    shifted[2, 3] += 18
    image.set_qform(shifted, code="scanner")
    nib.save(image, tmp_path / "differ.nii.gz")
    assert read_scan("s1", tmp_path / "agree.nii.gz").affines_apart < 1e-3
    differ = read_scan("s1", tmp_path / "differ.nii.gz")
    assert suspicion_of(differ) == "the header's two affines (sform, qform) lie 18 mm apart"


def test_a_shard_logs_a_resampling_of_the_atlas_once_and_records_it(tmp_path, caplog):
    scans = {}
    for subject in ("s1", "s2"):
        image = nib.Nifti1Image(scan_of(MNI2, SHAPE2).voxels, MNI2)
        nib.save(image, tmp_path / f"{subject}.nii.gz")
        scans[subject] = ScanFiles(str(tmp_path / f"{subject}.nii.gz"))
    out = parts_of(tmp_path)
    extraction = ExtractionSettings(detrend=False, high_pass=None, low_pass=None)
    settings = CohortSettings(source="nifti", extraction=extraction, min_timepoints=2)
    with caplog.at_level(logging.INFO):
        extract_shard(scans, octants(), settings, out)
    said = [record.message for record in caplog.records if "resampled" in record.message]
    assert said == ["Atlas octants resampled from 3 mm to 2 mm (first for s1)"]
    quality = read_table(out.quality)
    assert quality["resampled"].tolist() == ["from 3 mm to 2 mm"] * 2
    assert quality["suspicion"].tolist() == ["", ""]


def test_a_place_beyond_all_whole_numbers_is_said_shortly():
    affine = np.diag([3.0, 3.0, 3.0, 1.0])
    far = affine.copy()
    far[0, 3] = 1e30
    with pytest.raises(UserError, match=r"shares no voxel with it \(x 1e\+30 \.\.\. 1e\+30 mm, y 0 \.\.\. 6 mm"):
        voxels_in_view("s", "a.nii", (3, 3, 3), far, "atlas", affine, np.argwhere(np.ones((2, 2, 2))))
