"""Settings of a cohort of FreeSurfer measures (source: freesurfer)."""

from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.settings import setting

Measure = Literal["volume", "thickness", "area"]


@dataclass(frozen=True)
class FreeSurferSettings:
    """Paths of the measures, selection of features, normalisation of volumes."""

    tables: tuple[str, ...] = setting(
        (),
        "Paths of tables of asegstats2table and aparcstats2table, or merged ones (csv or tsv, a row a subject). They "
        "are joined by id; a measure may be in several, each with other subjects.",
    )
    subjects_dir: str | None = setting(
        None, "Path of a SUBJECTS_DIR with stats files (aseg.stats, lh.aparc.stats ...); instead of tables."
    )
    parcellations: tuple[str, ...] = setting(
        ("aparc",), "Cortical parcellations to read from a SUBJECTS_DIR: aparc, aparc.a2009s, aparc.DKTatlas."
    )
    id: str = setting(
        "{file}",
        "FreeSurfer's id of a subject: {file}, {subject} and {site} are replaced, as in `sub-{subject}`.",
    )
    subject: str | None = setting(
        None, "Column of a merged table with FreeSurfer's id; none: the first, as in FreeSurfer's own tables."
    )
    rows: dict[str, tuple[str, ...]] = setting(
        factory=dict,
        description="Rows of merged tables to read, column -> values: `VISCODE: [bl]`; the others are ignored.",
    )
    columns: tuple[str, ...] = setting(
        (),
        "Names of the columns of measures, with * and ? (`lh_*`, `ST*TA`); empty: all, which is refused for a "
        "merged table, as it may hold diagnoses too.",
    )
    leave_out: tuple[str, ...] = setting((), "Names of columns to leave out of them, with * and ?.")
    measures: tuple[Measure, ...] = setting(
        ("volume", "thickness", "area"),
        "Kinds of measures that are features, in mm³, mm and mm² as FreeSurfer has them; others (curvature, standard "
        "deviations, intensities) are features only where `columns` names them in full, and a column whose name does "
        "not tell its kind must be named in full or left out.",
    )
    whole_brain: bool = setting(
        True,
        "Keep global measures: intracranial volume, total grey matter, mean thickness and the like.",
    )
    normalise: Literal["none", "ratio"] = setting(
        "none",
        "ratio: volumes as in a head of 1,500,000 mm³ (volume x 1,500,000 / estimated intracranial volume), each "
        "subject by its own; areas and thickness stay.",
    )

    def __post_init__(self) -> None:
        """Refuse two sources, and an empty selection."""
        if self.tables and self.subjects_dir is not None:
            raise ValueError(
                "freesurfer: expected either tables or subjects_dir, found both; remove one, as the same measures "
                "would be read twice"
            )
        if not self.measures:
            raise ValueError("freesurfer.measures: expected volume, thickness or area, found none; name one")
        if not self.parcellations and set(self.measures) != {"volume"}:
            raise ValueError(
                "freesurfer.parcellations: expected one for thickness and area, found none; name aparc, or set "
                "measures: [volume]"
            )
