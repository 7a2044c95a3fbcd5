"""Read the stats files of one subject of a SUBJECTS_DIR, under the names of FreeSurfer's own tables."""

from collections.abc import Sequence
from pathlib import Path

from brainfed.cohort.quality.exclusion import MEASURES
from brainfed.runtime.errors import UserError

CORTICAL = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
"""Measure -> column of a cortical stats file."""

OF_HEMISPHERE = {"MeanThickness": "thickness", "WhiteSurfArea": "area"}
"""Name that aparcstats2table adds from the head of a cortical stats file -> its measure."""

FEWEST = 4
"""Fewest cells of a `# Measure` line: field, short name, value, unit."""


def read_stats(subject: str, folder: str | Path, names: Sequence[str]) -> dict[str, str]:
    """Read measure -> text: `Left-Hippocampus`, `EstimatedTotalIntraCranialVol`, `lh_bankssts_thickness`.

    Parcellations that share region names with aparc keep their own name: `lh_aparc.DKTatlas_cuneus_thickness`.

    Args:
        subject: id, for messages.
        folder: the `stats` folder.
        names: names of files in it: `aseg.stats`, `lh.aparc.stats`.

    Raises:
        UserError: a file is absent, truncated, or not a stats file.
    """
    found: dict[str, str] = {}
    for name in names:
        path = Path(folder) / name
        if not path.is_file():
            raise UserError(
                f"Subject {subject}: {MEASURES}, found no {path}; run recon-all to its end, or drop the subject."
            )
        found |= _subcortical(subject, path) if name == "aseg.stats" else _cortical(subject, path)
    return found


def _subcortical(subject: str, path: Path) -> dict[str, str]:
    heads, rows = _read(subject, path, ("StructName", "Volume_mm3"))
    volumes = {row["StructName"]: row["Volume_mm3"] for row in rows}
    if len(volumes) < len(rows):
        raise UserError(f"Subject {subject}: {MEASURES}, found a structure in two rows of {path}; copy the file again.")
    return volumes | {_global_name(*names): value for names, value in heads.items()}


def _global_name(field: str, short: str) -> str:
    """Name of asegstats2table: `lhCortexVol` of (lhCortex, lhCortexVol), the first of (IntraCranialVol, ICV)."""
    return field if "Vol" in field and "Vol" not in short else short


def _cortical(subject: str, path: Path) -> dict[str, str]:
    hemisphere, parcellation = path.name.removesuffix(".stats").split(".", 1)
    prefix = hemisphere if parcellation in ("aparc", "aparc.a2009s") else f"{hemisphere}_{parcellation}"
    heads, rows = _read(subject, path, ("StructName", *CORTICAL.values()))
    found = {
        f"{prefix}_{row['StructName']}_{measure}": row[column] for measure, column in CORTICAL.items() for row in rows
    }
    known = {short: value for (_, short), value in heads.items()}
    return found | {
        f"{hemisphere}_{name}_{measure}": known[name] for name, measure in OF_HEMISPHERE.items() if name in known
    }


def _read(subject: str, path: Path, needed: Sequence[str]) -> tuple[dict[tuple[str, str], str], list[dict[str, str]]]:
    """Read (field, short name) -> value of the `# Measure` lines, and the rows by column of `# ColHeaders`."""
    heads: dict[tuple[str, str], str] = {}
    columns: list[str] = []
    rows: list[dict[str, str]] = []
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(
            f"Subject {subject}: {MEASURES}, found that {path} cannot be read ({error.strerror}); check its "
            "permissions."
        ) from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("# Measure "):
            cells = [cell.strip() for cell in line.removeprefix("# Measure ").split(",")]
            if len(cells) < FEWEST:
                raise UserError(
                    f"Subject {subject}: {MEASURES}, found a measure of {len(cells)} cells in {path}, line {number}; "
                    "copy the file again."
                )
            heads[cells[0], cells[1]] = cells[-2]
        elif line.startswith("# ColHeaders"):
            columns = line.split()[2:]
        elif line.strip() and not line.startswith("#"):
            values = line.split()
            if len(values) != len(columns):
                raise UserError(
                    f"Subject {subject}: {MEASURES}, found {len(values)} cells for {len(columns)} columns in {path}, "
                    f"line {number}; copy the file again."
                )
            rows.append(dict(zip(columns, values, strict=True)))
    absent = [name for name in needed if name not in columns]
    if absent or not rows:
        what = f"no column {absent[0]}" if absent else "no row"
        raise UserError(f"Subject {subject}: {MEASURES}, found {what} in {path}; copy the file again.")
    return heads, rows
