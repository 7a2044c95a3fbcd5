"""fMRIPrep derivatives with unusual names, links, sidecars, masks and tables, and damaged ones.

A mutation says what must happen: `read` gives the series of the tree before it, `one run` those of the first run alone,
`refused` is found by check and job.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np

from support.files.bids_dataset import AFFINE, SHAPE, TR, VOLUMES, Derivative, confounds

SPACE = "space-T1w"


@dataclass(frozen=True)
class Mutation:
    """One way in which a tree differs from the usual one.

    `settings` are those of `bids` that it needs; `words` match the sentence of the job, where they are known.
    """

    name: str
    verdict: str
    make: Callable[[Path], None]
    settings: tuple[tuple[str, object], ...] = ()
    words: str | None = None


def sound(folder: Path) -> None:
    """Two subjects, the first with two runs."""
    tree = Derivative(folder)
    for sub, run in (("01", "1"), ("01", "2"), ("02", "1")):
        tree.write_run(sub, run=run, seed=int(sub) * 10 + int(run))
    tree.write_participants("01", "02\ta\t20\tmale\tcontrol")


def each(pattern: str, change: Callable[[Path], object]):
    """Change every file of the first subject's folder that matches."""

    def make(func: Path) -> None:
        matching = sorted(func.glob(pattern))
        assert matching, pattern
        for path in matching:
            change(path)

    return make


def renamed(old: str, new: str, pattern: str = "*"):
    return each(pattern, lambda path: path.rename(path.with_name(path.name.replace(old, new))))


def copied(old: str, new: str, pattern: str):
    return each(pattern, lambda path: shutil.copyfile(path, path.with_name(path.name.replace(old, new))))


def beside(name: str, content: bytes = b""):
    return lambda func: (func / name).write_bytes(content)


def sidecar(text: str | bytes):
    return each("*run-1*_bold.json", lambda path: path.write_bytes(text if isinstance(text, bytes) else text.encode()))


def dangling(pattern: str):
    def change(path: Path) -> None:
        path.unlink()
        path.symlink_to("../../../.git/annex/objects/xx/MD5E")

    return each(pattern, change)


def linked(path: Path) -> None:
    held = path.parent.parent / f"annex-{path.name}"
    path.rename(held)
    path.symlink_to(f"../{held.name}")


def gone(pattern: str):
    return each(pattern, Path.unlink)


def uncompressed(pattern: str):
    def change(path: Path) -> None:
        nib.save(nib.load(path), path.with_suffix(""))
        path.unlink()

    return each(pattern, change)


def mask_of(values: np.ndarray, affine: np.ndarray = AFFINE):
    return each("*run-1*_mask.nii.gz", lambda path: nib.save(nib.Nifti1Image(values, affine), path))


def image(change: Callable[[nib.Nifti1Image], nib.Nifti1Image]):
    def changed(path: Path) -> None:
        made = change(nib.Nifti1Image(np.asarray((held := nib.load(path)).dataobj), held.affine, held.header))
        nib.save(made, path)

    return each("*run-1*_bold.nii.gz", changed)


def timed(tr: float, unit: str = "sec"):
    def change(held: nib.Nifti1Image) -> nib.Nifti1Image:
        held.header.set_xyzt_units("mm", unit)
        held.header["pixdim"][4] = tr
        return held

    return image(change)


def table(change: Callable):
    def rewrite(path: Path) -> None:
        change(confounds(VOLUMES, 11)).to_csv(path, sep="\t", index=False, na_rep="n/a")

    return each("*run-1*_timeseries.tsv", rewrite)


def text(change: Callable[[str], str], encoding: str = "utf-8"):
    return each("*_timeseries.tsv", lambda path: path.write_bytes(change(path.read_text()).encode(encoding)))


def in_json(content: str):
    return each("*run-1*_timeseries.json", lambda path: path.write_text(content))


def moved_below(func: Path) -> None:
    """The subject's folder is a link."""
    subject = func.parent
    held = subject.parent.parent / "elsewhere"
    subject.rename(held)
    subject.symlink_to(held)


def into_session(func: Path) -> None:
    session = func.parent / "ses-1" / "func"
    session.mkdir(parents=True)
    for path in sorted(func.iterdir()):
        path.rename(session / path.name.replace("sub-01_", "sub-01_ses-1_"))
    func.rmdir()


def inherited(func: Path) -> None:
    for path in sorted(func.glob("*_bold.json")):
        path.unlink()
    (func.parent.parent / "task-rest_bold.json").write_text(json.dumps({"RepetitionTime": TR}))


def same_scan(func: Path) -> None:
    shutil.copyfile(next(func.glob("*run-1*_bold.nii.gz")), next(func.glob("*run-2*_bold.nii.gz")))


def circle(name: str):
    """A link to the folder that it lies in."""
    return lambda func: (func.parent / name).symlink_to(func.parent)


def phase_beside_magnitude(func: Path) -> None:
    PARTS(func)
    copied("part-mag", "part-phase", "*bold.nii.gz")(func)


def twice_compressed(func: Path) -> None:
    path = next(func.glob("*run-1*bold.nii.gz"))
    nib.save(nib.load(path), path.with_suffix(""))


def to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def turn(path: Path, place: int) -> None:
    """A byte of the voxels or of the check sum after them."""
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


PARTS = renamed("run-", "part-mag_run-")
COMPCOR = (("confounds", {"strategy": "compcor", "n_compcor": 2, "motion": "basic"}),)
SCRUB = (("confounds", {"strategy": "scrubbing", "motion": "basic", "wm_csf": "basic", "scrub": 0}),)
NO_MASK = (("brain_mask", False),)
NOTHING = (("confounds", {"strategy": "none"}),)

TABLE = r"Subject 01, confounds of .*run-1.*_bold\.nii\.gz.*"
SIDECAR, MASK = r"Subject 01, .*run-1.*bold\.json: ", r"Subject 01, .*run-1.*brain_mask\.nii\.gz: "
SENTENCES = {
    **dict.fromkeys(("as it is", "compcor", "scrubbing", "CRLF", "UTF-16", "blank lines", "header in ms"), ""),
    "sidecar in ms": SIDECAR + r"expected a repetition time of at most 30 s, found 2000 s; is it in ms\?",
    "text in the sidecar": SIDECAR + "expected RepetitionTime as a number of seconds above 0, found '2.0'",
    "no time in the sidecar": SIDECAR + "expected RepetitionTime as a number of seconds above 0, found 0",
    "list in the sidecar": SIDECAR + "expected a JSON object, found list",
    "empty sidecar": SIDECAR + "expected a JSON sidecar, found none",
    "other time of a run": r"expected the repetition time of .*2.5 s, found 2 s; choose the runs of one protocol",
    "mask on another grid": MASK + r"expected the grid of.*found \(3, 4, 4\) or another affine",
    "damaged mask": MASK + "expected a brain mask",
    "check sum of a mask": MASK + "expected a brain mask",
    "longer rows": TABLE + "cells as in line 1, found",
    "no header": TABLE + "the header of fMRIPrep's table, found numbers",
    "a row less": TABLE + "expected 150 rows, one a volume, found 149",
    "column less": TABLE + "expected the columns of strategy 'simple'",
    "other columns": TABLE + r"columns of strategy 'simple', found a table or a json without them \(",
    "no motion": TABLE + r"\['motion'\]",
    "no displacement": TABLE + "expected the columns of strategy 'scrubbing'",
    "gap": TABLE + "column 'csf', line 9, found a missing",
    "word": TABLE + r"columns of strategy 'simple', found text in place of a number \(",
    "Latin-1": TABLE + "table of confounds, found an unreadable one",
    "empty table": TABLE + "one row a volume, found an empty table",
    "all scrubbed": TABLE + "found all 150 scrubbed; raise bids.confounds.fd",
    "damaged json": TABLE + r"found a damaged json beside the table \(",
    "json of an empty list": TABLE + r"found a table or a json without them \(",
    "other components": TABLE + r"found a table or a json without them \(",
}
"""Name of a mutation that the first tier always draws -> words of the sentence that a user reads; empty: it is read."""
MUTATIONS = tuple(
    Mutation(name, verdict, make, settings, SENTENCES.get(name))
    for verdict, name, make, settings in (
        ("read", "as it is", lambda func: None, ()),
        ("read", "compcor", lambda func: None, COMPCOR),
        ("read", "scrubbing", lambda func: None, SCRUB),
        ("read", "no confounds", lambda func: None, NOTHING),
        ("read", "numbers with zeros", renamed("run-", "run-0"), ()),
        ("read", "numbers of images with zeros", renamed("run-", "run-0", "*_bold.nii.gz"), ()),
        ("read", "numbers of tables with zeros", renamed("run-", "run-00", "*_desc-confounds*"), ()),
        ("read", "numbers of masks with zeros", renamed("run-", "run-0", "*_mask.nii.gz"), ()),
        ("read", "magnitude", renamed("_space", "_part-mag_space", "*_space*"), ()),
        ("read", "magnitude in all names", PARTS, ()),
        ("read", "phase beside magnitude", phase_beside_magnitude, ()),
        ("refused", "phase alone", renamed("run-", "part-phase_run-"), ()),
        ("refused", "magnitude beside the image", copied("_space", "_part-mag_space", "*run-1*bold.nii.gz"), ()),
        ("refused", "run-1 and run-01", copied("run-1", "run-01", "*run-1*"), ()),
        ("refused", "two tables of a run", copied("run-1", "run-01", "*run-1*_timeseries.tsv"), ()),
        ("refused", "a run copied as another", same_scan, ()),
        ("read", "further entities", renamed("_run", "_acq-x_dir-ap_run"), ()),
        ("read", "single echoes", copied("_space", "_echo-1_space", "*bold.nii.gz"), ()),
        ("read", "surfaces", copied("_space-T1w", "_space-fsLR_den-91k", "*bold.json"), ()),
        ("refused", "another space", copied("_space-T1w", "_space-MNI152NLin2009cAsym", "*bold.nii.gz"), ()),
        ("refused", "another task", copied("task-rest", "task-nback", "*bold.nii.gz"), ()),
        ("read", "a task of two", copied("task-rest", "task-nback", "*bold.nii.gz"), (("task", "rest"),)),
        ("read", "session", into_session, ()),
        ("read", "uncompressed", uncompressed("*_bold.nii.gz"), ()),
        ("read", "uncompressed masks", uncompressed("*_mask.nii.gz"), ()),
        ("refused", "both", twice_compressed, ()),
        ("read", "older tables", renamed("_timeseries", "_regressors", "*_timeseries*"), ()),
        ("read", "AppleDouble", beside("._sub-01_task-rest_run-1_space-T1w_desc-preproc_bold.nii.gz"), ()),
        ("read", "backup", beside("sub-01_task-rest_run-3_space-T1w_desc-preproc_bold.nii.gz~"), ()),
        ("read", "no BIDS name", beside("bold.nii.gz"), ()),
        ("read", "odd names", beside("sub-01__task_-_bold.nii.gz"), ()),
        ("refused", "another subject's image", beside("sub-02_task-rest_run-1_space-T1w_desc-preproc_bold.nii.gz"), ()),
        ("read", "link of a folder", moved_below, ()),
        ("read", "links with content", each("*", linked), ()),
        ("read", "func in func", lambda func: (func / "func").symlink_to(func), ()),
        ("refused", "session in a circle", circle("ses-1"), ()),
        ("read", "another folder in a circle", circle("anat"), ()),
        ("refused", "link to itself", each("*run-1*bold.nii.gz", to_itself), ()),
        ("refused", "image without content", dangling("*run-1*_bold.nii.gz"), ()),
        ("refused", "second image without content", dangling("*run-2*_bold.nii.gz"), ()),
        ("refused", "mask without content", dangling("*run-1*_mask.nii.gz"), ()),
        ("read", "unused mask without content", dangling("*run-1*_mask.nii.gz"), NO_MASK),
        ("refused", "sidecar without content", dangling("*run-1*_bold.json"), ()),
        ("refused", "table without content", dangling("*run-1*_timeseries.tsv"), ()),
        ("read", "unused table without content", dangling("*run-1*_timeseries.tsv"), NOTHING),
        ("refused", "json without content", dangling("*run-1*_timeseries.json"), COMPCOR),
        ("read", "unused json without content", dangling("*run-1*_timeseries.json"), ()),
        ("refused", "no image", gone("*_bold.nii.gz"), ()),
        ("one run", "one image", gone("*run-2*_bold.nii.gz"), ()),
        ("refused", "no mask", gone("*run-1*_mask.nii.gz"), ()),
        ("refused", "no table", gone("*run-1*_timeseries.tsv"), ()),
        ("refused", "no json", gone("*run-1*_timeseries.json"), COMPCOR),
        ("read", "no sidecar", gone("*_bold.json"), ()),
        ("read", "inherited sidecar", inherited, ()),
        ("read", "sidecar with BOM", sidecar(b'\xef\xbb\xbf{"RepetitionTime": 2.0}'), ()),
        ("read", "whole seconds", sidecar('{"RepetitionTime": 2}'), ()),
        ("read", "sidecar without a time", sidecar("{}"), ()),
        ("read", "sidecar of a magnitude", sidecar('{"RepetitionTime": 2.0, "SliceTiming": [0, NaN]}'), ()),
        ("refused", "sidecar in ms", sidecar('{"RepetitionTime": 2000}'), ()),
        ("refused", "sidecar in ks", sidecar('{"RepetitionTime": 0.002}'), ()),
        ("refused", "text in the sidecar", sidecar('{"RepetitionTime": "2.0"}'), ()),
        ("refused", "no time in the sidecar", sidecar('{"RepetitionTime": 0}'), ()),
        ("refused", "NaN in the sidecar", sidecar('{"RepetitionTime": NaN}'), ()),
        ("refused", "infinity in the sidecar", sidecar('{"RepetitionTime": Infinity}'), ()),
        ("refused", "huge number in the sidecar", sidecar('{"RepetitionTime": 1' + "0" * 400 + "}"), ()),
        ("refused", "null in the sidecar", sidecar('{"RepetitionTime": null}'), ()),
        ("refused", "list in the sidecar", sidecar("[2.0]"), ()),
        ("refused", "deep sidecar", sidecar("[" * 100000), ()),
        ("refused", "empty sidecar", sidecar(""), ()),
        ("refused", "binary sidecar", sidecar(b"\xff\xfe\x00\x01\x02"), ()),
        ("refused", "other time of a run", sidecar('{"RepetitionTime": 2.5}'), ()),
        ("read", "header in ms", timed(2000, "msec"), ()),
        ("read", "impossible header", timed(2, "msec"), ()),
        ("read", "header without a time", timed(0), ()),
        ("refused", "no time at all", lambda func: (timed(0)(func), gone("*_bold.json")(func)), (("band", True),)),
        ("refused", "impossible header alone", lambda func: (timed(2, "msec")(func), gone("*_bold.json")(func)), ()),
        ("refused", "3D image", image(lambda held: nib.Nifti1Image(np.asarray(held.dataobj)[..., 0], AFFINE)), ()),
        ("refused", "short run", image(lambda held: nib.Nifti1Image(np.asarray(held.dataobj)[..., :30], AFFINE)), ()),
        ("refused", "mask on another grid", mask_of(np.ones((3, 4, 4), np.uint8)), ()),
        ("refused", "mask elsewhere", mask_of(np.ones(SHAPE, np.uint8), 2 * AFFINE), ()),
        ("refused", "empty mask", mask_of(np.zeros(SHAPE, np.uint8)), ()),
        ("refused", "complex mask", mask_of(np.ones(SHAPE, np.complex64)), ()),
        ("refused", "damaged mask", each("*run-1*_mask.nii.gz", lambda path: turn(path, -30)), ()),
        ("refused", "check sum of a mask", each("*run-1*_mask.nii.gz", lambda path: turn(path, -7)), ()),
        ("read", "mask of reals", mask_of(np.ones(SHAPE, np.float64)), ()),
        ("refused", "text as mask", each("*run-1*_mask.nii.gz", lambda path: path.write_text("mask")), ()),
        ("read", "CRLF", text(lambda held: held.replace("\n", "\r\n")), ()),
        ("read", "BOM", text(str, "utf-8-sig"), ()),
        ("read", "UTF-16", text(str, "utf-16"), ()),
        ("read", "trailing tabs", text(lambda held: held.replace("\n", "\t\n")), ()),
        ("read", "blank lines", text(lambda held: held.replace("\n", "\t\n\n").replace("\t\n\n", "\n", 1)), ()),
        ("refused", "Latin-1", text(lambda held: held.replace("trans_x\t", "f\u00fcr\t"), "latin-1"), ()),
        ("refused", "other columns", text(lambda held: held.replace("trans_", "shift_")), ()),
        ("refused", "empty table", text(lambda _: ""), ()),
        ("refused", "other components", text(lambda held: held.replace("_comp_cor_", "_other_")), COMPCOR),
        ("read", "commas", text(lambda held: held.replace("\t", ",")), ()),
        ("refused", "longer rows", text(lambda held: held.replace("\n", "\t1\n").replace("\t1\n", "\n", 1)), ()),
        ("refused", "no header", table(lambda held: held.iloc[1:].set_axis(held.iloc[0].fillna(0), axis=1)), ()),
        ("refused", "a row less", table(lambda held: held.iloc[:-1]), ()),
        ("refused", "column less", table(lambda held: held.drop(columns="csf")), ()),
        ("refused", "no motion", table(lambda held: held.filter(regex="^(?!trans|rot)")), ()),
        ("refused", "no displacement", table(lambda held: held.drop(columns="framewise_displacement")), SCRUB),
        ("refused", "gap", table(lambda held: held.assign(csf=held["csf"].where(held.index != 7))), ()),
        ("refused", "word", table(lambda held: held.assign(csf=["x", *held["csf"].astype(str)[1:]])), ()),
        ("refused", "all scrubbed", table(lambda held: held.assign(framewise_displacement=9.0)), SCRUB),
        ("refused", "damaged json", in_json("{"), COMPCOR),
        ("refused", "deep json", in_json("[" * 100000), COMPCOR),
        ("refused", "json of an empty list", in_json("[]"), COMPCOR),
        ("refused", "json of a list", in_json("[1]"), COMPCOR),
        ("read", "unused damaged json", in_json("{"), ()),
        ("refused", "folder as image", each("*run-1*_bold.nii.gz", as_folder), ()),
        ("refused", "folder as json", each("*run-1*_timeseries.json", as_folder), COMPCOR),
        ("refused", "folder as table", each("*run-1*_timeseries.tsv", as_folder), ()),
    )
)  # fmt: skip
FOLDERS = ("fmriprep", "fmriprep_tsv", "a.tsv", "desc-preproc_bold.nii.gz", "space-x", "sub", "my derivatives (2)")
