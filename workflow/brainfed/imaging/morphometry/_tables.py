"""Tables of FreeSurfer's measures: the names of columns, group tables, and stats files of one subject."""

import csv
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from brainfed.cohort.phenotype import read_table_text, separator_of
from brainfed.cohort.quality import EXPECTED
from brainfed.cohort.settings import FreeSurferSettings
from brainfed.runtime import UserError

# Kinds of FreeSurfer measures by column name.
#
# FreeSurfer's own names are `Left-Hippocampus`, `lh_cuneus_thickness`. ADNI's are `ST44CV`, `ST44SA`, `ST44TA`,
# `ST29SV`; those of the ENIGMA protocols `L_cuneus_thickavg`, `R_cuneus_surfavg`, `Lhippo`, `RThickness`.

Kind = Literal["volume", "thickness", "area", "other", "unknown"]
"""`other`: curvatures, ratios, counts, standard deviations; `unknown`: the name does not tell."""
Content = list[tuple[int, str, list[str]]]
"""Line, place and cells of every row."""

INTRACRANIAL = ("EstimatedTotalIntraCranialVol", "eTIV", "IntraCranialVol", "ICV", "ST10CV")
"""Names of the estimated intracranial volume in FreeSurfer's versions, merged tables and ADNI's tables."""

WHOLE_BRAIN = re.compile(
    r"(Estimated(Total)?)?IntraCranialVol|eTIV|ICV|ST10CV|(lh|rh)?(Cortex|CorticalWhiteMatter|CerebralWhiteMatter)Vol"
    r"|SubCortGrayVol|TotalGrayVol|SupraTentorialVol\w*|BrainSegVol\w*|MaskVol|[lr]h_(MeanThickness|WhiteSurfArea)_\w+|[LR](Thickness|SurfArea)"
)
SUBCORTICAL = re.compile(
    r"(Left|Right)-(Lateral-Ventricle|Inf-Lat-Vent|(Cerebellum|Cerebral)-(White-Matter|Cortex)|Thalamus(-Proper)?\*?"
    r"|Caudate|Putamen|Pallidum|Hippocampus|Amygdala|Accumbens-area|VentralDC|vessel|choroid-plexus"
    r"|UnsegmentedWhiteMatter|(non-)?WM-hypointensities)"
    r"|(3rd|4th|5th)-Ventricle|Brain-Stem|CSF|(non-)?WM-hypointensities|Optic-Chiasm"
    r"|CC_((Mid_)?(Posterior|Anterior)|Central)|(wm|ctx)-[lr]h-[\w.-]+|VentricleChoroidVol"
)
"""Names of asegstats2table, of aseg.stats and wmparc.stats."""
ADNI = re.compile(r"ST\d+(?P<kind>CV|SV|HS|SA|TA|TS)")
ADNI_KINDS: dict[str, Kind] = {
    "CV": "volume", "SV": "volume", "HS": "volume", "SA": "area", "TA": "thickness", "TS": "other",
}  # fmt: skip
CORTICAL_NAME = re.compile(r"[lr]h_.+_(?P<kind>[A-Za-z]+)")
CORTICAL_KINDS: dict[str, Kind] = {
    "volume": "volume", "thickness": "thickness", "area": "area",
    **dict.fromkeys(("thicknessstd", "meancurv", "gauscurv", "foldind", "curvind", "mean", "std"), "other"),
}  # fmt: skip
ENIGMA = re.compile(r"[LR](_.+_|(?=Thickness|SurfArea))(?P<kind>thickavg|surfavg|Thickness|SurfArea)")
ENIGMA_KINDS: dict[str, Kind] = {
    "thickavg": "thickness", "Thickness": "thickness", "surfavg": "area", "SurfArea": "area",
}  # fmt: skip
ENIGMA_VOLUME = re.compile(r"[LR](LatVent|thal|caud|put|pal|hippo|amyg|accumb)")
OTHER = re.compile(r".*(_mean|_std|-to-eTIV|SurfaceHoles)")

RENAMED = {f"{side}-Thalamus-Proper{star}": f"{side}-Thalamus" for side in ("Left", "Right") for star in ("", "*")}
"""Structures that FreeSurfer 7 names otherwise than FreeSurfer 6, by their former names."""


def measure_of(column: str) -> Kind:
    """Kind of a measure by its name."""
    if match := ADNI.fullmatch(column):
        return ADNI_KINDS[match["kind"]]
    if match := CORTICAL_NAME.fullmatch(column):
        return CORTICAL_KINDS.get(match["kind"], "unknown")
    if match := ENIGMA.fullmatch(column):
        return ENIGMA_KINDS[match["kind"]]
    if OTHER.fullmatch(column):
        return "other"
    volumes = (SUBCORTICAL, WHOLE_BRAIN, ENIGMA_VOLUME)
    return "volume" if any(names.fullmatch(column) for names in volumes) else "unknown"


def is_chosen(column: str, settings: FreeSurferSettings) -> bool:
    """Whether the settings choose a column by its name, whatever its kind."""
    if settings.columns and not _any_of(column, settings.columns):
        return False
    return not (_any_of(column, settings.leave_out) or (WHOLE_BRAIN.fullmatch(column) and not settings.whole_brain))


def is_feature(column: str, settings: FreeSurferSettings, unknown: Kind = "unknown") -> bool:
    """Whether the settings keep a column; columns of another kind must be named in full.

    Args:
        unknown: kind of a column whose name does not tell it.
    """
    kind = measure_of(column)
    kind = unknown if kind == "unknown" else kind
    return is_chosen(column, settings) and (kind in settings.measures or column in settings.columns)


def current_name(column: str, all_columns: Collection[str]) -> str:
    """Name of a structure in FreeSurfer 7 if the data have both names, else its own."""
    current = RENAMED.get(column, column)
    return current if current in all_columns else column


def _any_of(column: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(column, pattern) for pattern in patterns)


# Read one table of FreeSurfer measures, of asegstats2table or aparcstats2table, or a merged csv.

WRITTEN = re.compile(r"Measure:(?P<aseg>\w+)|[lr]h\.(?P<name>.+)\.(?P<aparc>\w+)")
"""First header cell of FreeSurfer's own tables: `Measure:volume`, `lh.aparc.a2009s.thickness`."""


@dataclass(frozen=True)
class TextTable:
    """Cells of a table as text.

    Attributes:
        file: path of the table.
        columns: names of the measures, in order.
        rows: FreeSurfer's id -> its cells, in the order of `columns`.
        places: FreeSurfer's id -> `line 3` of the file, or its column; empty if the rows are files of their own.
        kind: kind of the measures whose names do not tell it: all of asegstats2table's are volumes.
    """

    file: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[str, ...]]
    places: dict[str, str]
    kind: Kind = "unknown"

    def place(self, identity: str) -> str:
        """Place of a row, for messages."""
        if identity in self.places:
            return f"{self.file}, {self.places[identity]}"
        return f"{self.file}/{identity}/stats" if identity in self.rows else self.file


def read_freesurfer_table(file: str | Path, settings: FreeSurferSettings) -> TextTable:
    """Read the rows and columns of a table that the settings select.

    A column of `asegstats2table --meas mean` is called `NAME_mean`, so that it differs from the volume of NAME. A table
    that `--transpose` wrote is turned.

    Raises:
        UserError: the file is not UTF-8 text or is empty, a row is ragged or repeated, a column appears twice, the
            column of the id or a filter is absent, or no column of a merged table is selected.
    """
    lines = _lines(file)
    _, header = next(lines, (1, []))
    written = WRITTEN.fullmatch(header[0]) if header else None
    measure = written["aseg"] if written else None
    content = [(line, f"line {line}", cells) for line, cells in lines]
    if written and _is_transposed(header, [cells for _, _, cells in content]):
        header, content = _turned(file, header, content)
    repeated = [name for name in header if header.count(name) > 1]
    if repeated:
        raise UserError(f"{file}: expected every column once, found {repeated[0]!r} twice; rename or remove one.")
    if settings.subject is None and not written and not settings.columns:
        raise UserError(
            f"{file}: expected a table of asegstats2table or aparcstats2table, whose first cell is Measure:volume or "
            f"lh.aparc.thickness, found {(header or [''])[0]!r}; name the measures of a merged table under "
            "`freesurfer.columns`, as it may hold diagnoses too."
        )
    if not written and not settings.columns:
        raise UserError(
            f"{file}: expected the columns of a merged table that are measures under `freesurfer.columns`, found none; "
            "name them, as such a table may hold diagnoses too."
        )
    key = 0 if settings.subject is None or written else _position(file, header, settings.subject)
    filters = {} if written else {_position(file, header, name): values for name, values in settings.rows.items()}
    kept = [at for at in range(len(header)) if at != key and at not in filters]
    rows: dict[str, tuple[str, ...]] = {}
    places: dict[str, str] = {}
    for line, place, cells in content:
        _refuse_ragged(file, line, header, cells)
        if any(cells[at] not in values for at, values in filters.items()):
            continue
        identity = cells[key].rstrip("/")
        if identity in rows:
            raise UserError(
                f"{file}: expected every subject once, found {identity!r} in {places[identity]} and {place}; "
                f"remove one of them{'' if written else ', or choose among visits with `freesurfer.rows`'}."
            )
        rows[identity] = tuple(cells[at] for at in kept)
        places[identity] = place
    ending = "" if measure in (None, "volume") else f"_{measure}"
    columns = tuple(header[at] + ending for at in kept)
    return TextTable(str(file), columns, rows, places, "volume" if measure == "volume" else "unknown")


def _refuse_ragged(file: str | Path, line: int, header: Sequence[str], cells: Sequence[str]) -> None:
    if len(cells) != len(header):
        raise UserError(
            f"{file}, line {line}: expected {len(header)} cells as in the header, found {len(cells)}; fix the row."
        )


def _is_transposed(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether most rows, and at most few columns, have names of measures."""
    down = [cells[0] for cells in rows]
    across = list(header[1:])
    known = [sum(measure_of(name) != "unknown" for name in names) for names in (down, across)]
    return known[0] > len(down) / 2 and known[1] < len(across) / 2


def _turned(file: str | Path, header: Sequence[str], content: Content) -> tuple[list[str], Content]:
    """Header and rows of a table with a column a subject."""
    for line, _, cells in content:
        _refuse_ragged(file, line, header, cells)
    turned = [list(cells) for cells in zip(header, *(cells for _, _, cells in content), strict=True)]
    return turned[0], [(1, f"column {place}", cells) for place, cells in enumerate(turned[1:], start=2)]


def _lines(file: str | Path) -> Iterator[tuple[int, list[str]]]:
    """Number and stripped cells of every line that is not blank; a separator at a line's end starts no cell."""
    text = read_table_text(file)
    if not text.certain:
        raise UserError(f"{file}: expected UTF-8 text, found another encoding; save it as UTF-8.")
    first = text.lines[0]
    reader = csv.reader(text.lines, delimiter=separator_of(first))
    trailing = first.rstrip("\r\n").endswith(reader.dialect.delimiter)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                ends = trailing and not cells[-1].strip()
                yield reader.line_num, [cell.strip() for cell in (cells[:-1] if ends else cells)]
    except csv.Error as error:
        raise UserError(
            f"{file}, line {reader.line_num}: expected cells of a table, found other text ({error}); fix its "
            "quotation marks."
        ) from error


def _position(file: str | Path, header: list[str], name: str) -> int:
    if name not in header:
        raise UserError(
            f"{file}: expected a column {name!r}, found none (it has {', '.join(header[:8])} ...); fix "
            "`freesurfer.subject` or `freesurfer.rows`."
        )
    return header.index(name)


# Read the stats files of one subject of a SUBJECTS_DIR, under the names of FreeSurfer's own tables.

CORTICAL_COLUMNS = {"thickness": "ThickAvg", "area": "SurfArea", "volume": "GrayVol"}
"""Measure -> column of a cortical stats file."""

OF_HEMISPHERE = {"MeanThickness": "thickness", "WhiteSurfArea": "area"}
"""Name that aparcstats2table adds from the head of a cortical stats file -> its measure."""

FEWEST = 4
"""Fewest cells of a `# Measure` line: field, short name, value, unit."""


def read_stats(subject: str, folder: str | Path, names: Sequence[str]) -> dict[str, str]:
    """Read measure -> text: `Left-Hippocampus`, `EstimatedTotalIntraCranialVol`, `lh_bankssts_thickness`.

    Parcellations that share region names with aparc keep their own name: `lh_aparc.DKTatlas_cuneus_thickness`.

    Args:
        folder: the `stats` folder.
        names: names of files in it: `aseg.stats`, `lh.aparc.stats`.

    Raises:
        UserError: a file is absent, truncated, or not a stats file.
    """
    measures: dict[str, str] = {}
    for name in names:
        path = Path(folder) / name
        if not path.is_file():
            raise UserError(
                f"Subject {subject}: {EXPECTED}, found no {path}; run recon-all to its end, or drop the subject."
            )
        measures |= _subcortical(subject, path) if name == "aseg.stats" else _cortical(subject, path)
    return measures


def _subcortical(subject: str, path: Path) -> dict[str, str]:
    heads, rows = _read(subject, path, ("StructName", "Volume_mm3"))
    volumes = {row["StructName"]: row["Volume_mm3"] for row in rows}
    if len(volumes) < len(rows):
        raise UserError(f"Subject {subject}: {EXPECTED}, found a structure in two rows of {path}; copy the file again.")
    # As asegstats2table: `lhCortexVol` of (lhCortex, lhCortexVol), the first of (IntraCranialVol, ICV).
    return volumes | {
        field if "Vol" in field and "Vol" not in short else short: value for (field, short), value in heads.items()
    }


def _cortical(subject: str, path: Path) -> dict[str, str]:
    hemisphere, parcellation = path.name.removesuffix(".stats").split(".", 1)
    prefix = hemisphere if parcellation in ("aparc", "aparc.a2009s") else f"{hemisphere}_{parcellation}"
    heads, rows = _read(subject, path, ("StructName", *CORTICAL_COLUMNS.values()))
    measures = {
        f"{prefix}_{row['StructName']}_{measure}": row[column]
        for measure, column in CORTICAL_COLUMNS.items()
        for row in rows
    }
    known = {short: value for (_, short), value in heads.items()}
    return measures | {
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
            f"Subject {subject}: {EXPECTED}, found that {path} cannot be read ({error.strerror}); check its "
            "permissions."
        ) from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("# Measure "):
            cells = [cell.strip() for cell in line.removeprefix("# Measure ").split(",")]
            if len(cells) < FEWEST:
                raise UserError(
                    f"Subject {subject}: {EXPECTED}, found a measure of {len(cells)} cells in {path}, line {number}; "
                    "copy the file again."
                )
            heads[cells[0], cells[1]] = cells[-2]
        elif line.startswith("# ColHeaders"):
            columns = line.split()[2:]
        elif line.strip() and not line.startswith("#"):
            values = line.split()
            if len(values) != len(columns):
                raise UserError(
                    f"Subject {subject}: {EXPECTED}, found {len(values)} cells for {len(columns)} columns in {path}, "
                    f"line {number}; copy the file again."
                )
            rows.append(dict(zip(columns, values, strict=True)))
    absent = [name for name in needed if name not in columns]
    if absent or not rows:
        what = f"no column {absent[0]}" if absent else "no row"
        raise UserError(f"Subject {subject}: {EXPECTED}, found {what} in {path}; copy the file again.")
    return heads, rows
