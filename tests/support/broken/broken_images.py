"""Broken images, confound tables and parcellations."""

from pathlib import Path

import nibabel as nib
import numpy as np

from support.broken.broken_inputs import (
    AFFINE,
    VOLUMES,
    Broken,
    Cohort,
    labels,
    numbers,
    voxels,
    write_confounds,
    write_image,
)


def image(change=lambda values: values, **header):
    """The image of s03 with its voxels or its header changed."""

    def make(cohort: Cohort) -> None:
        write_image(cohort.series("s03"), change(voxels("s03")), **header)

    return make


def cut(cohort: Cohort) -> None:
    path = cohort.series("s03")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def cut_uncompressed(cohort: Cohort) -> None:
    """All images without gzip, s03's half as long."""
    for path in sorted(cohort.series("s03").parent.glob("*.nii.gz")):
        nib.save(nib.load(path), path.with_suffix(""))
        path.unlink()
    cohort.settings["series"] = cohort.settings["series"].removesuffix(".gz")
    cut(cohort)


def short(cohort: Cohort) -> None:
    """Too short for the band-pass alone."""
    cohort.settings["min_timepoints"] = 30
    write_image(cohort.series("s03"), voxels("s03", 33))
    write_confounds(cohort.confounds("s03"), {"motion": numbers("s03", 33)[:, 0].tolist()})


def content(value):
    return lambda cohort: cohort.series("s03").write_bytes(value)


def one_voxel(value):
    def change(values: np.ndarray) -> np.ndarray:
        values[1, 2, 3, 4] = value
        return values

    return image(change)


def rotated() -> np.ndarray:
    """A quarter turn about z, at a corner of the world: x = -y - 100 mm."""
    turn = np.array([[0.0, -1, 0, -100], [1, 0, 0, 100], [0, 0, 1, 0], [0, 0, 0, 1]])
    return turn @ AFFINE


def flat() -> np.ndarray:
    affine = AFFINE.copy()
    affine[2] = 0
    return affine


def singular(cohort: Cohort) -> None:
    written = nib.Nifti1Image(voxels("s03"), None)
    written.header.set_sform(flat(), code=1)
    written.header["pixdim"][4] = 2
    written.header["xyzt_units"] = 10
    nib.save(written, cohort.series("s03"))


def confounds(**columns):
    return lambda cohort: write_confounds(cohort.confounds("s03"), columns)


def gap(cohort: Cohort) -> None:
    write_confounds(cohort.confounds("s03"), {"motion": [0.1, 0.2, 0.3, "n/a", *[0.5] * (VOLUMES - 4)]})


def no_confounds(cohort: Cohort) -> None:
    cohort.confounds("s03").unlink()


def parcellation(values):
    def make(cohort: Cohort) -> None:
        nib.save(nib.Nifti1Image(values, AFFINE), cohort.settings["parcellation"])

    return make


def region_table(text):
    return lambda cohort: Path(cohort.settings["labels"]).write_bytes(text)


def no_parcellation(cohort: Cohort) -> None:
    Path(cohort.settings["parcellation"]).write_bytes(b"not an image")


IMAGE = r"Subject s03, .*s03_bold\.nii"
TABLE = r"Subject s03, .*s03_confounds\.tsv"
LABELS = r"atlas\.tsv"

IMAGES = [
    Broken("truncated gzip", cut, *[IMAGE + ".*expected a whole NIfTI image.*fetch it again"] * 2, "s03"),
    Broken("truncated NIfTI", cut_uncompressed, *[IMAGE + ".*expected a whole NIfTI image.*fetch it"] * 2, "s03"),
    Broken("no NIfTI", content(b"not an image" * 100), *[IMAGE + ".*expected a whole NIfTI image"] * 2, "s03"),
    Broken("image of no bytes", content(b""), *[IMAGE + ".*expected a whole NIfTI image"] * 2, "s03"),
    Broken("3D image", image(lambda v: v[..., 0]), *[IMAGE + r".*expected a 4D .*found shape \(8, 6, 4\)"] * 2, "s03"),
    Broken("rotated affine", image(affine=rotated()), *[IMAGE + ".*shares no voxel.*fix its affine"] * 2, "s03"),
    Broken("singular affine", singular, *[IMAGE + ".*expected an invertible affine"] * 2, "s03"),
    Broken("no repetition time", image(tr=0), *[IMAGE + ".*expected a repetition time .*set `tr`"] * 2, "s03"),
    Broken("low-pass over Nyquist", image(tr=6), *[IMAGE + ".*low_pass below 0.08333 Hz.*lower it"] * 2, "s03"),
    Broken("short image", short, *[IMAGE + ".*at least 34 volumes.*found 33; leave the scan out"] * 2, "s03"),
    Broken("NaN voxel", one_voxel(np.nan), "", IMAGE + ".*found 1 NaN or infinite .*repair the image", "s03"),
    Broken("infinite voxel", one_voxel(np.inf), "", IMAGE + ".*found 1 NaN or infinite .*repair the image", "s03"),
    Broken("image without signal", image(np.ones_like), "", IMAGE + ".*found no voxel that varies in time", "s03"),
    Broken(
        "no confounds", no_confounds, *[r"confounds file .*s03_confounds.tsv of subject s03, found none"] * 2, "s03"
    ),
    Broken("few confounds", confounds(motion=[0.1] * 50), *[TABLE + ".*expected 60 rows.*found 50"] * 2, "s03"),
    Broken("text in confounds", confounds(motion=["x"] * 60), *[TABLE + ".*numbers in column 'motion'"] * 2, "s03"),
    Broken(
        "another confound",
        confounds(fd=[0.1] * 60),
        *[TABLE + ".*confounds motion, found none of that name among fd; name"] * 2,
        "s03",
    ),
    Broken("gap in confounds", gap, *[TABLE + ", line 5: expected a finite value in column 'motion'"] * 2, "s03"),
    Broken("atlas with fractions", parcellation(labels() / 2), *[r"atlas.nii.gz: expected whole numbers"] * 2),
    Broken("label without a name", region_table(b"index\tname\n1\tA\n2\tB\n3\tC\n"), *[r"found 1 more \(4\); add"] * 2),
    Broken("damaged atlas", no_parcellation, *[r"atlas.nii.gz: expected a NIfTI parcellation"] * 2),
    Broken("no index", region_table(b"label\tname\n1\tA\n"), *[LABELS + ".*found label, name; add index"] * 2),
    Broken("empty region table", region_table(b""), *[LABELS + ": expected a tab-separated text table"] * 2),
    Broken("binary region table", region_table(b"PK\xff\xfe\x00"), *[LABELS + ": expected a tab-separated"] * 2),
]
