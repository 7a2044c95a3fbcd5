"""Least squares recovers the series of a 4D atlas of maps; coverage is the seen fraction of weight."""

import nibabel as nib
import numpy as np
import pytest
from nilearn.maskers import NiftiMapsMasker

from brainfed.cohort.settings import ExtractionSettings
from brainfed.imaging.extraction import ScanFiles, extract
from brainfed.imaging.scans import ProbabilisticAtlas, load_atlas
from brainfed.reporting.figures._connectivity import region_coordinates
from brainfed.runtime import UserError

RAW = ExtractionSettings(detrend=False, standardise=False, high_pass=None, low_pass=None)
AFFINE = nib.affines.from_matvec(np.diag([3.0, 3, 3]), (-30, -24, -12))
SHAPE = (20, 16, 8)
VOLUMES = 40
CENTRES = (4, 9, 14)


def maps():
    """(x, y, z, 3) overlapping bumps along the x axis, 0 where faint."""
    x = np.arange(SHAPE[0])[:, None, None, None]
    bumps = np.exp(-(((x - np.array(CENTRES)) / 2.5) ** 2)) * np.ones((*SHAPE, 1))
    return np.where(bumps > 0.05, bumps, 0).astype(np.float32)


def series():
    return 100 + np.random.default_rng(0).normal(0, 5, (VOLUMES, 3)).astype(np.float32)


def write(folder, values=None, table="index\tname\n1\tA\n2\tB\n3\tC\n", affine=AFFINE):
    nib.save(nib.Nifti1Image(maps() if values is None else values, affine), folder / "maps.nii.gz")
    if table is None:
        return load_atlas("maps", folder / "maps.nii.gz")
    (folder / "maps.tsv").write_text(table)
    return load_atlas("maps", folder / "maps.nii.gz", folder / "maps.tsv")


def write_scan(folder, voxels, affine=AFFINE):
    nib.save(nib.Nifti1Image(voxels.astype(np.float32), affine), folder / "scan.nii.gz")
    return ScanFiles(str(folder / "scan.nii.gz"))


def test_mixed_series_of_overlapping_maps_are_recovered(tmp_path):
    atlas = write(tmp_path)
    found = extract("s1", write_scan(tmp_path, maps() @ series().T), atlas, RAW)
    assert isinstance(atlas, ProbabilisticAtlas)
    assert np.allclose(found.series, series(), rtol=1e-4)
    assert found.coverage == pytest.approx([1, 1, 1])
    assert found.tsnr == pytest.approx(20, abs=6)


def test_series_equal_those_of_nilearns_masker(tmp_path):
    voxels = maps() @ series().T + np.random.default_rng(1).normal(0, 3, (*SHAPE, VOLUMES))
    files, atlas = write_scan(tmp_path, voxels), write(tmp_path)
    expected = NiftiMapsMasker(tmp_path / "maps.nii.gz", standardize=None, reports=False).fit_transform(files.image)
    assert np.allclose(extract("s1", files, atlas, RAW).series, expected, rtol=1e-4)


def test_coverage_is_the_seen_fraction_of_weight(tmp_path):
    voxels = maps() @ series().T
    voxels[:9] = 0
    found = extract("s1", write_scan(tmp_path, voxels), write(tmp_path), RAW)
    weight = maps().sum(axis=(1, 2))
    assert found.coverage == pytest.approx([*(weight[9:, :2].sum(axis=0) / weight[:, :2].sum(axis=0)), 1], rel=1e-5)
    assert np.allclose(found.series[:, 1:], series()[:, 1:], rtol=1e-4)


def test_a_map_out_of_view_is_a_nan_column_with_coverage_zero(tmp_path):
    voxels = (maps() @ series().T)[10:]
    moved = AFFINE.copy()
    moved[0, 3] += 30
    found = extract("s1", write_scan(tmp_path, voxels, moved), write(tmp_path), RAW)
    assert np.isnan(found.series).all(axis=0).tolist() == [True, False, False]
    assert found.coverage[0] == 0
    assert np.allclose(found.series[:, 1:], series()[:, 1:], rtol=1e-4)


def test_a_map_of_zeros_is_a_region_without_voxel(tmp_path):
    bumps = maps()
    bumps[..., 1] = 0
    assert write(tmp_path, bumps).without_voxel == ("B",)


def test_maps_of_another_resolution_are_interpolated(tmp_path):
    fine = np.repeat(np.repeat(np.repeat(maps() @ series().T, 3, axis=0), 3, axis=1), 3, axis=2)
    affine = np.diag([1.0, 1, 1, 1])
    affine[:3, 3] = AFFINE[:3, 3] - 1
    found = extract("s1", write_scan(tmp_path, fine, affine), write(tmp_path), RAW)
    assert found.resampled == "from 3 mm to 1 mm"
    for column in range(3):
        assert np.corrcoef(found.series[:, column], series()[:, column])[0, 1] > 0.98


def test_the_table_may_name_maps_in_any_order_or_be_absent(tmp_path):
    files = write_scan(tmp_path, maps() @ series().T)
    turned = write(tmp_path, table="index\tname\n3\tC\n1\tA\n2\tB\n")
    assert turned.regions == ("C", "A", "B")
    assert np.allclose(extract("s1", files, turned, RAW).series, series()[:, [2, 0, 1]], rtol=1e-4)
    assert write(tmp_path, table=None).regions == ("1", "2", "3")


def test_its_regions_have_coordinates_in_the_brain(tmp_path):
    write(tmp_path)
    places = region_coordinates(tmp_path / "maps.nii.gz", tmp_path / "maps.tsv")
    assert places.shape == (3, 3)
    assert np.allclose(places[:, 0], [-30 + 3 * centre for centre in CENTRES], atol=3)


@pytest.mark.parametrize(
    ("values", "table", "message"),
    [
        (
            None,
            "index\tname\n1\tA\n2\tB\n",
            r"expected the indices 1 ... 3, one for each map of .*, found 2 from 1 to 2",
        ),
        (None, "index\tname\n0\tA\n1\tB\n2\tC\n", "expected the indices 1 ... 3, one for each map"),
        (np.ones((*SHAPE, 3)) * [1, 2, 3], None, "found 3 parcellations of the same voxels"),
        (np.zeros((*SHAPE, 3)), None, "found zeros only"),
    ],
)
def test_a_broken_atlas_of_maps_is_named(tmp_path, values, table, message):
    with pytest.raises(UserError, match=message):
        write(tmp_path, values, table)
