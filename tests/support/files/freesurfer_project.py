"""Made-up FreeSurfer tables and stats files for tests."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

ASEG = ("Left-Hippocampus", "Right-Hippocampus", "5th-Ventricle", "EstimatedTotalIntraCranialVol")
REGIONS = ("bankssts", "cuneus", "insula")


def write_table(path: Path, first: str, columns: Sequence[str], rows: Mapping[str, Sequence[object]]) -> str:
    """A tab-separated table as FreeSurfer writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [[first, *columns], *([subject, *map(str, values)] for subject, values in rows.items())]
    path.write_text("\n".join("\t".join(cells) for cells in lines) + "\n")
    return str(path)


def write_tables(folder: Path, subjects: Sequence[str], patients: Sequence[str] = ()) -> list[str]:
    """aseg, and thickness of either hemisphere; the hippocampus of patients is smaller, the 5th ventricle empty."""
    random = np.random.default_rng(0)
    aseg = {
        subject: [
            round(4000 - 700 * (subject in patients) + 300 * random.standard_normal(), 1),
            round(4100 + 300 * random.standard_normal(), 1),
            0.0,
            round(1_500_000 + 100_000 * random.standard_normal(), 1),
        ]
        for subject in subjects
    }
    paths = [write_table(folder / "aseg_table.tsv", "Measure:volume", ASEG, aseg)]
    for hemisphere in ("lh", "rh"):
        columns = [f"{hemisphere}_{region}_thickness" for region in REGIONS]
        rows = {subject: np.round(2.5 + 0.2 * random.standard_normal(3), 3).tolist() for subject in subjects}
        first = f"{hemisphere}.aparc.thickness"
        paths.append(write_table(folder / f"{hemisphere}.aparc_table_thickness.tsv", first, columns, rows))
    return paths


ASEG_STATS = """# Title Segmentation Statistics
# Measure lhCortex, lhCortexVol, Left hemisphere cortical gray matter volume, {cortex}, mm^3
# Measure BrainSegVol-to-eTIV, BrainSegVol-to-eTIV, Ratio of BrainSegVol to eTIV, 0.75, unitless
# Measure lhSurfaceHoles, lhSurfaceHoles, Number of defect holes in lh surfaces, 12, unitless
# Measure EstimatedTotalIntraCranialVol, eTIV, Estimated Total Intracranial Volume, {head}, mm^3
# ColHeaders  Index SegId NVoxels Volume_mm3 StructName normMean normStdDev normMin normMax normRange
  1  17  4100  {hippocampus}  Left-Hippocampus  70.0  8.0  30.0  110.0  80.0
"""
APARC_STATS = """# Table of FreeSurfer cortical parcellation anatomical statistics
# Measure Cortex, NumVert, Number of Vertices, 130000, unitless
# Measure Cortex, WhiteSurfArea, White Surface Total Area, 90011.3, mm^2
# Measure Cortex, MeanThickness, Mean Thickness, 2.50298, mm
# Measure EstimatedTotalIntraCranialVol, eTIV, Estimated Total Intracranial Volume, 1500000, mm^3
# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg ThickStd MeanCurv GausCurv FoldInd CurvInd
bankssts                                 1300    894   2029  2.296 0.500     0.11     0.02       12     1.1
cuneus                                   2000   1531   3059  1.941 0.480     0.14     0.04       30     3.0
"""


def write_subject(subjects_dir: Path, identity: str, *, hippocampus: float = 4000, head: float = 1_500_000) -> Path:
    """The stats folder of one subject of a SUBJECTS_DIR."""
    folder = subjects_dir / identity / "stats"
    folder.mkdir(parents=True)
    text = ASEG_STATS.format(cortex=hippocampus * 60, head=head, hippocampus=hippocampus)
    (folder / "aseg.stats").write_text(text)
    for hemisphere in ("lh", "rh"):
        (folder / f"{hemisphere}.aparc.stats").write_text(APARC_STATS)
    return folder
