"""A small fMRIPrep derivative on disk: file names, tables of confounds and sidecars as fMRIPrep writes them."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd

MOTION = ("trans_x", "trans_y", "trans_z", "rot_x", "rot_y", "rot_z")
VOLUMES, TR = 150, 2.0
SHAPE = (6, 4, 4)
AFFINE = np.diag([8.0, 8, 8, 1])


def entities(**labels: str) -> str:
    """`sub-01_task-rest` of sub="01", task="rest"; empty labels are left out."""
    return "_".join(f"{name}-{label}" for name, label in labels.items() if label)


def confounds(volumes: int = VOLUMES, seed: int = 0, moved: tuple[int, ...] = (), unsteady: int = 0) -> pd.DataFrame:
    """A table with fMRIPrep's columns; the head jumps at the volumes `moved`."""
    rng = np.random.default_rng(seed)
    table = {}
    for name in (*MOTION, "csf", "white_matter", "global_signal"):
        values = rng.normal(0, 0.02 if name in MOTION else 5, volumes).cumsum()
        change = np.diff(values, prepend=np.nan)
        table |= {
            name: values,
            f"{name}_derivative1": change,
            f"{name}_power2": values**2,
            f"{name}_derivative1_power2": change**2,
        }
    displacement = rng.uniform(0.05, 0.2, volumes)
    displacement[0] = np.nan
    displacement[list(moved)] = 2.0
    dvars = np.where(np.isnan(displacement), np.nan, 1.0)
    time = np.arange(volumes)
    table |= {
        "framewise_displacement": displacement,
        "std_dvars": dvars,
        "cosine00": np.cos(np.pi * (time + 0.5) / volumes),
        "cosine01": np.cos(2 * np.pi * (time + 0.5) / volumes),
    }
    table |= {f"a_comp_cor_{number:02d}": rng.standard_normal(volumes) for number in range(6)}
    table |= {f"non_steady_state_outlier{number:02d}": (time == number).astype(float) for number in range(unsteady)}
    return pd.DataFrame(table)


def components() -> dict[str, object]:
    """What the json beside the table says of the CompCor components."""
    return {
        f"a_comp_cor_{number:02d}": {
            "Mask": "combined",
            "Method": "aCompCor",
            "Retained": True,
            "CumulativeVarianceExplained": 0.1 * (number + 1),
            "VarianceExplained": 0.1,
            "SingularValue": 10.0 - number,
        }
        for number in range(6)
    }


def region_labels() -> np.ndarray:
    """Three regions, two planes of the x axis each."""
    return np.repeat(np.arange(1, 4), 2)[:, None, None] * np.ones(SHAPE, dtype=np.int16)


def write_atlas(folder: Path) -> dict[str, str]:
    """The parcellation and its table, as settings of a cohort."""
    folder.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(region_labels().astype(np.int16), AFFINE), folder / "atlas.nii.gz")
    (folder / "atlas.tsv").write_text("index\tname\n1\tA\n2\tB\n3\tC\n")
    return {"parcellation": str(folder / "atlas.nii.gz"), "labels": str(folder / "atlas.tsv")}


@dataclass(frozen=True)
class Derivative:
    """The folder of a derivative that is being written."""

    folder: Path

    def write_run(
        self,
        sub: str,
        ses: str = "",
        run: str = "",
        space: str = "T1w",
        res: str = "",
        task: str = "rest",
        seed: int = 0,
        tr: float | None = TR,
        header_tr: float = TR,
        image: Path | None = None,
        mask: Path | None = None,
        table: pd.DataFrame | None = None,
        volumes: int = VOLUMES,
    ) -> Path:
        """One run: image, brain mask, sidecar (unless `tr` is None), confounds with their json; the image's path."""
        func = self.folder / f"sub-{sub}" / (f"ses-{ses}" if ses else "") / "func"
        func.mkdir(parents=True, exist_ok=True)
        run_name = entities(sub=sub, ses=ses, task=task, run=run)
        name = "_".join(part for part in (run_name, entities(space=space, res=res)) if part)
        path = func / f"{name}_desc-preproc_bold.nii.gz"
        if image is None:
            voxels = np.random.default_rng(seed).normal(1000, 10, (*SHAPE, volumes)).astype(np.float32)
            scan = nib.Nifti1Image(voxels, AFFINE)
            scan.header.set_xyzt_units("mm", "sec")
            scan.header["pixdim"][4] = header_tr
            nib.save(scan, path)
            nib.save(nib.Nifti1Image(np.ones(SHAPE, dtype=np.uint8), AFFINE), func / f"{name}_desc-brain_mask.nii.gz")
        else:
            shutil.copyfile(image, path)
            shutil.copyfile(mask, func / f"{name}_desc-brain_mask.nii.gz")
        if tr is not None:
            (func / f"{name}_desc-preproc_bold.json").write_text(json.dumps({"RepetitionTime": tr, "TaskName": task}))
        written = confounds(volumes, seed) if table is None else table
        written.to_csv(func / f"{run_name}_desc-confounds_timeseries.tsv", sep="\t", index=False, na_rep="n/a")
        (func / f"{run_name}_desc-confounds_timeseries.json").write_text(json.dumps(components()))
        return path

    def write_participants(self, *rows: str, header: str = "participant_id\tsite\tage\tsex\tdiagnosis") -> Path:
        """participants.tsv; a row has a site, an age, a sex and a diagnosis if it names its subject only."""
        path = self.folder / "participants.tsv"
        full = [row if "\t" in row else f"{row}\ta\t20\tmale\tpatient" for row in rows]
        path.write_text("\n".join([header, *full]) + "\n")
        return path
