"""Region series of 4D images: painted signals are recovered, unseen regions are NaN, broken images are named."""

import os
from dataclasses import replace
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from nilearn.maskers import NiftiLabelsMasker
from nilearn.signal import clean

from brainfed.cohort.settings import CohortSettings, ExtractionSettings
from brainfed.imaging.extraction import ScanFiles, TooShortError, check_cleaning, extract, extract_shard
from brainfed.imaging.extraction._extraction import clean_means, extract_scan, refuse_wrong_unit
from brainfed.imaging.scans import load_atlas, read_region_table, read_scan
from brainfed.imaging.series._roi_series import constant_regions, empty_regions
from brainfed.runtime import UserError, read_arrays
from support.files.run_of_cohort import parts_of

RAW = ExtractionSettings(detrend=False, standardise=False, high_pass=None, low_pass=None)
CLEANED = ExtractionSettings()
AFFINE = np.array([[3.0, 0, 0, -18], [0, 3, 0, -24], [0, 0, 3, -12], [0, 0, 0, 1]])
SHAPE = (12, 16, 8)
VOLUMES = 80
TR = 2.0


def slabs():
    """Four regions, each a slab of the x axis: labels 7, 3, 40 and 5 from left to right."""
    labels = np.zeros(SHAPE, dtype=np.int16)
    for slab, label in enumerate((7, 3, 40, 5)):
        labels[3 * slab : 3 * slab + 3, 2:14, 1:7] = label
    return labels


def write_atlas(folder, labels=None, affine=AFFINE, table="index\tname\n3\tB\n5\tD\n7\tA\n40\tC\n"):
    nib.save(nib.Nifti1Image(slabs() if labels is None else labels, affine), folder / "atlas.nii.gz")
    (folder / "atlas.tsv").write_text(table)
    return load_atlas("slabs", folder / "atlas.nii.gz", folder / "atlas.tsv")


def painted():
    """(time, 4) known series of the regions 3, 5, 7, 40: oscillations inside the band-pass, on baselines."""
    seconds = np.arange(VOLUMES) * TR
    return np.stack([100 + 10 * np.sin(2 * np.pi * f * seconds) for f in (0.03, 0.045, 0.06, 0.075)], axis=1)


def paint(series=None):
    """(x, y, z, time) float32 voxels with `series` in the slabs and noise outside them."""
    voxels = np.random.default_rng(0).normal(100, 1, (*SHAPE, VOLUMES)).astype(np.float32)
    for label, column in zip((3, 5, 7, 40), (painted() if series is None else series).T, strict=True):
        voxels[slabs() == label] = column
    return voxels


def write_scan(folder, voxels, affine=AFFINE, tr=TR, name="scan.nii.gz", unit="sec"):
    image = nib.Nifti1Image(voxels, affine)
    image.header.set_xyzt_units("mm", unit)
    image.header["pixdim"][4] = tr
    nib.save(image, folder / name)
    return ScanFiles(str(folder / name))


def similarity(one, other):
    return [np.corrcoef(a, b)[0, 1] for a, b in zip(one.T, other.T, strict=True)]


def test_painted_series_are_recovered_in_the_order_of_the_table(tmp_path):
    found = extract("s1", write_scan(tmp_path, paint()), write_atlas(tmp_path), RAW)
    assert np.allclose(found.series, painted(), atol=1e-4)
    assert found.series.dtype == np.float32
    assert found.coverage.tolist() == [1, 1, 1, 1]
    assert found.tr == pytest.approx(TR)


@pytest.mark.parametrize("voxels", [1, 5 * 12 * 16 * 8])
def test_an_image_is_read_in_pieces_of_any_size(tmp_path, monkeypatch, voxels):
    monkeypatch.setattr("brainfed.imaging.scans._scan.AT_A_TIME", voxels)
    assert np.array_equal(read_scan("s1", write_scan(tmp_path, paint()).image).voxels, paint())


def test_the_table_may_name_regions_in_any_order(tmp_path):
    atlas = write_atlas(tmp_path, table="index\tname\n40\tC\n7\tA\n5\tD\n3\tB\n")
    found = extract("s1", write_scan(tmp_path, paint()), atlas, RAW)
    assert atlas.regions == ("C", "A", "D", "B")
    assert np.allclose(found.series, painted()[:, [3, 2, 1, 0]], atol=1e-4)


def test_cleaning_keeps_the_band_and_removes_trend_and_scale(tmp_path):
    seconds = np.arange(VOLUMES)[:, None] * TR
    disturbed = painted() + 0.5 * seconds + 10 * np.sin(2 * np.pi * 0.2 * seconds)
    found = extract("s1", write_scan(tmp_path, paint(disturbed)), write_atlas(tmp_path), CLEANED)
    inner = slice(10, -10)
    assert min(similarity(found.series[inner], painted()[inner])) > 0.97
    assert max(similarity(disturbed[inner], painted()[inner])) < 0.7
    assert np.allclose(found.series.mean(axis=0), 0, atol=1e-3)
    assert np.allclose(found.series.std(axis=0, ddof=1), 1, atol=1e-3)


def test_the_signal_to_noise_ratio_is_of_the_volumes_that_are_kept(tmp_path):
    spiked = paint()
    spiked[..., 40] *= 5
    scan, kept = read_scan("s1", write_scan(tmp_path, spiked).image), np.delete(np.arange(VOLUMES), 40)
    found = extract_scan(scan, write_atlas(tmp_path), RAW, TR, kept=kept)
    clean_ratio = extract("s1", write_scan(tmp_path, paint()), write_atlas(tmp_path), RAW).tsnr
    assert found.tsnr == pytest.approx(clean_ratio, rel=0.05)
    assert extract_scan(scan, write_atlas(tmp_path), RAW, TR).tsnr < clean_ratio / 2


def regions_of(kind):
    """(time, 4) series: three real oscillations, and one of the `kind` in region 5."""
    volume = np.arange(VOLUMES)
    series = painted()
    series[:, 1] = {
        "ramp": 1000.1 + 0.37 * volume,
        "falling ramp": 7000.3 - 1.7 * volume,
        "constant but for rounding": np.nextafter(np.float32(1000.1), np.float32(1e9 * (-1.0) ** volume)),
    }[kind]
    return series


@pytest.mark.parametrize("kind", ["ramp", "falling ramp", "constant but for rounding"])
@pytest.mark.parametrize("settings", [CLEANED, replace(CLEANED, high_pass=None, low_pass=None)])
def test_cleaning_turns_a_region_without_signal_into_zeros(tmp_path, kind, settings):
    found = extract("s1", write_scan(tmp_path, paint(regions_of(kind))), write_atlas(tmp_path), settings)
    assert constant_regions(found.series).tolist() == [False, True, False, False]
    assert (found.series[:, 1] == 0).all()
    assert found.coverage.tolist() == [1, 1, 1, 1]


def test_a_region_of_constant_voxels_is_unseen(tmp_path):
    constant = painted()
    constant[:, 1] = 1000.1
    found = extract("s1", write_scan(tmp_path, paint(constant)), write_atlas(tmp_path), CLEANED)
    assert empty_regions(found.series).tolist() == [False, True, False, False]
    assert found.coverage.tolist() == [1, 0, 1, 1]


@pytest.mark.parametrize("amplitude", [0.05, 1.0, 50.0])
def test_real_noise_on_a_large_baseline_is_kept_and_standardised(tmp_path, amplitude):
    noisy = painted()
    noisy[:, 1] = 1000.1 + 0.37 * np.arange(VOLUMES) + amplitude * np.random.default_rng(3).standard_normal(VOLUMES)
    found = extract("s1", write_scan(tmp_path, paint(noisy)), write_atlas(tmp_path), CLEANED)
    assert not constant_regions(found.series).any()
    assert np.allclose(found.series.std(axis=0, ddof=1), 1, atol=1e-3)


def test_a_region_equal_to_a_confound_is_constant():
    motion = np.random.default_rng(1).standard_normal((VOLUMES, 1))
    means = 1000 + np.hstack([30 * motion, 30 * motion + np.random.default_rng(2).standard_normal((VOLUMES, 1))])
    cleaned = clean_means(means, replace(CLEANED, high_pass=None, low_pass=None), TR, motion)
    assert cleaned.std(axis=0, ddof=1) == pytest.approx([0, 1])


def test_scrubbed_volumes_count_for_the_degrees_of_freedom():
    """45 regressors leave half of 90 volumes' degrees of freedom, and none of those of 40 kept ones."""
    random = np.random.default_rng(0)
    means, motion = random.standard_normal((90, 3)), random.standard_normal((90, 45))
    unfiltered = replace(CLEANED, high_pass=None, low_pass=None)
    check_cleaning("Subject s1", 90, TR, unfiltered, motion)
    assert np.ptp(clean_means(means, unfiltered, TR, motion), axis=0).min() > 0
    for settings, kept in ((unfiltered, np.arange(40)), (CLEANED, None), (CLEANED, np.arange(80))):
        with pytest.raises(TooShortError, match=r"expected more degrees of freedom than the (40|39|45) regressors"):
            check_cleaning("Subject s1", 90, TR, settings, motion, kept)


def test_cleaning_equals_that_of_nilearns_masker(tmp_path):
    files, atlas = write_scan(tmp_path, paint(painted() + np.arange(VOLUMES)[:, None])), write_atlas(tmp_path)
    masker = NiftiLabelsMasker(
        tmp_path / "atlas.nii.gz", standardize="zscore_sample", detrend=True, low_pass=0.1, high_pass=0.01, t_r=TR
    )
    expected = masker.fit_transform(files.image)
    assert np.allclose(extract("s1", files, atlas, CLEANED).series, expected, atol=1e-4)


@pytest.mark.parametrize("scrubbed", [(), (3, 4, 40)])
@pytest.mark.parametrize("band", [{}, {"low_pass": None}, {"high_pass": None}])
def test_cleaning_all_regions_at_once_gives_the_bytes_of_one_after_the_other(band, scrubbed):
    random = np.random.default_rng(0)
    means, motion = 1000 + random.standard_normal((VOLUMES, 7)), random.standard_normal((VOLUMES, 3))
    settings = replace(CLEANED, standardise=False, **band)
    kept = np.setdiff1d(np.arange(VOLUMES), scrubbed)
    expected = clean(
        means, detrend=True, standardize=None, confounds=motion, sample_mask=kept,
        low_pass=settings.low_pass, high_pass=settings.high_pass, t_r=TR,
    )  # fmt: skip
    assert np.array_equal(clean_means(means, settings, TR, motion, kept), expected) and expected.any(axis=0).all()


def test_an_atlas_of_another_resolution_is_resampled_to_the_scan(tmp_path):
    fine = np.kron(slabs(), np.ones((3, 3, 3), dtype=np.int16))
    affine = np.diag([1.0, 1, 1, 1])
    affine[:3, 3] = AFFINE[:3, 3] - 1
    found = extract("s1", write_scan(tmp_path, paint()), write_atlas(tmp_path, fine, affine), RAW)
    assert min(similarity(found.series, painted())) > 0.999
    assert found.coverage.tolist() == [1, 1, 1, 1]


def test_a_region_out_of_view_is_a_nan_column_with_coverage_zero(tmp_path):
    # The image ends after two slabs and one of the three planes of the third.
    found = extract("s1", write_scan(tmp_path, paint()[:7]), write_atlas(tmp_path), RAW)
    assert found.coverage == pytest.approx([1, 0, 1, 1 / 3])
    assert np.isnan(found.series[:, 1]).all()
    assert np.allclose(found.series[:, [0, 2, 3]], painted()[:, [0, 2, 3]], atol=1e-4)


def test_voxels_without_signal_do_not_count(tmp_path):
    voxels = paint()
    voxels[:3] = 0
    voxels[3:6, :8] = 0
    found = extract("s1", write_scan(tmp_path, voxels), write_atlas(tmp_path), RAW)
    # Of slab 3 the rows 2 ... 13 are in the atlas, rows 8 ... 13 are left: half.
    assert found.coverage == pytest.approx([0.5, 1, 0, 1])
    assert np.isnan(found.series[:, 2]).all()
    assert np.allclose(found.series[:, 0], painted()[:, 0], atol=1e-4)


def test_a_region_of_the_table_without_a_voxel_stays(tmp_path):
    atlas = write_atlas(tmp_path, table="index\tname\n3\tB\n4\tnowhere\n5\tD\n7\tA\n40\tC\n")
    found = extract("s1", write_scan(tmp_path, paint()), atlas, CLEANED)
    assert found.series.shape == (VOLUMES, 5)
    assert np.isnan(found.series).all(axis=0).tolist() == [False, True, False, False, False]
    assert found.coverage.tolist() == [1, 0, 1, 1, 1]


def test_confounds_are_regressed_out(tmp_path):
    motion = np.random.default_rng(1).standard_normal(VOLUMES)
    disturbed = painted() + 30 * motion[:, None]
    table = pd.DataFrame({"trans_x": motion, "derivative": np.diff(motion, prepend=np.nan), "label": "text"})
    table.to_csv(tmp_path / "confounds.tsv", sep="\t", index=False, na_rep="n/a")
    files = replace(write_scan(tmp_path, paint(disturbed)), confounds=str(tmp_path / "confounds.tsv"))
    found = extract("s1", files, write_atlas(tmp_path), replace(RAW, detrend=True), ("trans_x", "derivative"))
    # Residuals of the disturbed series by least squares; the derivative's first row takes the second's value.
    derivative = np.concatenate([[motion[1] - motion[0]], np.diff(motion)])
    model = np.stack([np.ones(VOLUMES), np.arange(VOLUMES), motion, derivative], axis=1)
    expected = disturbed - model @ np.linalg.lstsq(model, disturbed, rcond=None)[0]
    assert np.allclose(found.series, expected, atol=1e-3)


def test_a_background_of_nan_has_no_signal(tmp_path):
    atlas, empty = write_atlas(tmp_path), slabs() == 5
    empty[:, :8] |= slabs()[:, :8] == 40
    voxels = paint()
    voxels[empty | (slabs() == 0)] = np.nan
    found = extract("s1", write_scan(tmp_path, voxels), atlas, RAW)
    assert found.coverage.tolist() == [1, 0, 1, 0.5]
    assert np.isnan(found.series).all(axis=0).tolist() == [False, True, False, False]
    np.testing.assert_allclose(found.series[:, [0, 2, 3]], painted()[:, [0, 2, 3]], atol=1e-4)


def test_a_band_pass_needs_a_repetition_time(tmp_path):
    files, atlas = write_scan(tmp_path, paint(), tr=0), write_atlas(tmp_path)
    with pytest.raises(UserError, match=r"Subject s1.*expected a repetition time for the band-pass, found none"):
        extract("s1", files, atlas, CLEANED)
    assert np.isnan(extract("s1", files, atlas, RAW).tr)
    assert extract("s1", replace(files, tr=TR), atlas, CLEANED).tr == TR


@pytest.mark.parametrize(
    ("labels", "table", "message"),
    [
        (slabs(), "index\tname\n3\tB\n5\tD\n7\tA\n", r"found 1 more \(40\)"),
        (slabs() + 0.5, "index\tname\n3\tB\n", "expected whole numbers, found fractions"),
        (np.stack([slabs(), slabs()], axis=-1), "index\tname\n3\tB\n", "found 2 parcellations of the"),
        (np.zeros((*SHAPE, 2, 2), dtype=np.int16), "index\tname\n3\tB\n", "expected a 3D image of labels or a 4D"),
        (np.zeros(SHAPE, dtype=np.int16), "index\tname\n3\tB\n", "expected labels above 0, found none"),
        (-slabs(), "index\tname\n3\tB\n", "expected labels above 0, found -40"),
        (slabs(), "index\tlabel\n3\tB\n", "found index, label; add name"),
        (slabs(), "index\tname\n3\tB\n3\tC\n", "expected every index once, found '3' again"),
        (slabs(), "index\tname\n3\tB\n4\tB\n", "expected every name once, found 'B' again"),
        (slabs(), "index\tname\n3\tB\n03\tC\n", "expected every index once, found '3' again"),
        (
            slabs(),
            "index\tname\n3\tB\n\u00b2\tC\n",
            "line 3: expected a positive whole number as index",
        ),
        (slabs(), "index\tname\n3\tB\n5\t \n", "line 3: expected a name for region '5', found none"),
        (slabs(), "index\tname\n", "expected one row a region, found none"),
        (slabs(), "index\tname\n0\tbackground\n", "expected one row a region, found none"),
        (slabs(), "index\tname\n3\tB\n5\tD\tx\n", "line 3: expected 2 cells as in the header, found 3"),
        (slabs(), "index\tname\n-3\tB\n", "line 2: expected a positive whole number as index, found '-3'"),
        (slabs() + 3e9, "index\tname\n3\tB\n", "expected labels up to 2147483647, found 3e"),
        (slabs() * 1j, "index\tname\n3\tB\n", "expected real numbers, found complex numbers; save their magnitude"),
    ],
)
def test_a_broken_atlas_is_named(tmp_path, labels, table, message):
    with pytest.raises(UserError, match=message):
        write_atlas(tmp_path, labels, table=table)


def test_regions_without_a_table_are_named_by_their_label_in_ascending_order(tmp_path):
    nib.save(nib.Nifti1Image(slabs(), AFFINE), tmp_path / "atlas.nii.gz")
    atlas = load_atlas("slabs", tmp_path / "atlas.nii.gz")
    assert atlas.regions == ("3", "5", "7", "40")
    assert np.allclose(extract("s1", write_scan(tmp_path, paint()), atlas, RAW).series, painted(), atol=1e-4)


def test_a_region_table_may_start_with_a_byte_order_mark(tmp_path):
    (tmp_path / "atlas.tsv").write_text("\ufeffindex\tname\n2\tNA\n")
    indices, names = read_region_table(tmp_path / "atlas.tsv")
    assert (indices.tolist(), names) == ([2], ("NA",))


def shard(folder, settings, **scans):
    out = parts_of(folder)
    extract_shard(scans, write_atlas(folder), settings, out)
    return read_arrays(out.series), pd.read_parquet(out.quality).set_index("subject"), pd.read_parquet(out.coverage)


def test_a_shard_holds_series_quality_and_coverage(tmp_path):
    settings = CohortSettings(source="nifti", extraction=RAW)
    constant = paint()
    constant[slabs() == 5] = np.float32(4)
    scans = {
        "s2": write_scan(tmp_path, paint(), name="2.nii.gz"),
        "s1": write_scan(tmp_path, constant, name="1.nii.gz"),
    }
    series, quality, coverage = shard(tmp_path, settings, **scans)
    assert list(series.arrays) == ["s1", "s2"]
    assert series.metadata == {"atlas": "slabs", "regions": ["B", "D", "A", "C"]}
    assert quality.loc[["s1", "s2"], "timepoints"].tolist() == [VOLUMES, VOLUMES]
    assert quality["empty_regions"].tolist() == [1, 0]
    assert quality["constant_regions"].tolist() == [0, 0]
    assert quality["checksum"].str.len().tolist() == [64, 64]
    assert quality["problem"].tolist() == ["", ""]
    assert coverage.loc[coverage["coverage"] == 0, ["subject", "region"]].to_numpy().tolist() == [["s1", "D"]]


def test_a_bad_scan_stops_the_shard_or_drops_its_subject(tmp_path):
    good = write_scan(tmp_path, paint(), name="good.nii.gz")
    short = write_scan(tmp_path, paint()[..., :40], name="short.nii.gz")
    stops = CohortSettings(source="nifti", extraction=RAW)
    with pytest.raises(UserError, match="Subject s1: expected at least 50 time points, found 40"):
        shard(tmp_path, stops, s1=short, s2=good)
    series, quality, coverage = shard(tmp_path, replace(stops, on_invalid="drop"), s1=short, s2=good)
    assert list(series.arrays) == ["s2"]
    assert quality.loc["s1", "problem"].startswith("Subject s1: expected at least 50 time points")
    assert quality.loc["s2", "problem"] == ""
    assert set(coverage["subject"]) == {"s2"}


def test_a_shard_without_usable_subjects_is_written(tmp_path):
    short = write_scan(tmp_path, paint()[..., :40])
    series, quality, coverage = shard(
        tmp_path, CohortSettings(source="nifti", extraction=RAW, on_invalid="drop"), s1=short
    )
    assert (series.arrays, len(quality), len(coverage)) == ({}, 1, 0)


def test_a_shard_has_the_same_bytes_when_written_again(tmp_path):
    settings, scan = CohortSettings(source="nifti"), write_scan(tmp_path, paint())
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder in ("a", "b"):
        shard(tmp_path / folder, settings, s1=scan)
    for name in ("part.safetensors", "part-quality.parquet", "part-coverage.parquet"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.data
def test_real_scans_yield_the_means_of_their_regions(tmp_path):
    folder = Path(os.environ["BRAINFED_DATA"]) / "bold4d" / "haxby2001_25mm"
    labels = np.asarray(nib.load(folder / "mask_hoc.nii.gz").dataobj)
    present = np.unique(labels[labels > 0])
    (tmp_path / "hoc.tsv").write_text("index\tname\n" + "".join(f"{i}\tregion {i}\n" for i in present))
    atlas = load_atlas("hoc", folder / "mask_hoc.nii.gz", tmp_path / "hoc.tsv")
    found = extract("run001", ScanFiles(str(folder / "run001_bold_25mm.nii.gz")), atlas, RAW)
    voxels = nib.load(folder / "run001_bold_25mm.nii.gz").get_fdata()
    varying = np.ptp(voxels, axis=3) > 0
    for column, label in enumerate(present):
        inside = (labels == label) & varying
        assert np.allclose(found.series[:, column], voxels[inside].mean(axis=0), rtol=1e-5, equal_nan=True)
    assert found.tr == pytest.approx(2.5)
    assert found.series.shape == (121, len(present))


@pytest.mark.parametrize(
    ("tr", "asked"),
    [
        (2000.0, "is it in ms? Fix it there"),
        (2e6, "is it in µs? Fix it there"),
        (0.002, "does its unit say ms for a number in s? Fix it there"),
        (2e-6, "does its unit say µs for a number in s? Fix it there"),
        (1.2573e299, "found 1.2573e+299 s; fix it there"),
        (1e-300, "found 1e-300 s; fix it there"),
        (-2.0, "found -2 s; fix it there"),
    ],
)
def test_a_unit_is_asked_for_where_it_explains_a_repetition_time(tr, asked):
    with pytest.raises(UserError) as refused:
        refuse_wrong_unit("here", tr)
    assert asked in str(refused.value)
