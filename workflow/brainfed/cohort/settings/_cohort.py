"""Settings of a cohort: its files, the meaning of its codes, exclusion by the quality of scans, flags."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, ClassVar, Literal

from brainfed.cohort import CLASSES, NO_NUMBERS, Sex, Target, check_class_names, check_meanings
from brainfed.cohort.settings._sources import BidsSettings, FreeSurferSettings, SimulateSettings, TUDatasetSettings
from brainfed.runtime import setting

# Settings of exclusion by the quality of scans; the first rule that applies, in the order of the fields, counts.
#
# No rule reads connectivity: subjects with odd connectivity are listed, not excluded, because features must not choose
# the tested subjects.


@dataclass(frozen=True)
class ExclusionSettings:
    """Limits of quality; none: no limit. Subjects with an unknown measure stay."""

    min_volumes: int | None = setting(None, "Fewest volumes after scrubbing.", minimum=2)
    min_kept_seconds: float | None = setting(
        None, "Shortest scan after scrubbing, in s; needs the repetition time.", minimum=0
    )
    min_kept_share: float | None = setting(
        None, "Smallest fraction of the acquired volumes after scrubbing.", minimum=0, maximum=1
    )
    mean_fd: float | None = setting(None, "Largest mean framewise displacement in mm.", minimum=0)
    min_coverage: float | None = setting(None, "Smallest mean coverage of regions.", minimum=0, maximum=1)
    max_barely_seen_regions: int | None = setting(
        None, "Most regions below the cohort's `min_coverage`, unseen ones included.", minimum=0
    )
    max_constant_regions: int | None = setting(None, "Most regions without signal, constant or unseen.", minimum=0)
    min_tsnr: float | None = setting(
        None,
        "Smallest temporal signal-to-noise ratio: median over region means, in the kept volumes, about a linear "
        "trend. It depends on the atlas: larger regions have a higher one.",
        minimum=0,
    )


@dataclass(frozen=True)
class FlagSettings:
    """Limits of quality; subjects and sites beyond them are kept and listed among the issues."""

    mean_fd: float = setting(0.2, "Mean framewise displacement in mm above which motion is high.", minimum=0)
    kept_seconds: float = setting(
        240.0, "Length in s after scrubbing below which a scan is short (Parkes 2018: four minutes).", minimum=0
    )
    unlike: float = setting(
        3.5,
        "Connectivity with a robust z below minus this is unlike the others' (Iglewicz and Hoaglin 1993).",
        minimum=0,
    )
    alike: float = setting(
        0.999,
        "Correlation of connectivity above which two subjects count as one person: same fold, same institution.",
        minimum=0.9,
        maximum=1,
    )
    site_effect: float = setting(
        0.8, "Cohen's d of a site against all others from which a significant difference is listed.", minimum=0
    )


ANYWHERE = re.compile(r"[^*{}]+/\*\*/[^*/]+")
"""Pattern of a file in a folder or anywhere below it."""


@dataclass(frozen=True)
class ColumnSettings:
    """Column names of the phenotype table."""

    subject: str = setting("participant_id", "Column with the subject's id, unique in the table.")
    subject_fallback: str | tuple[str, ...] | None = setting(
        None,
        "Column, or a list of columns in their order, that names a subject whose `subject` cell is a missing code, or, "
        "among several tables, whose table has no column `subject`; none: that is an error.",
    )
    file: str | None = setting(
        None,
        "Column whose value replaces {file} in the path patterns, a missing code: no series; none: the subject id.",
    )
    subject_prefix: str | None = setting(
        None,
        "Column, as that of the site, whose value stands before the id: `A-01` and `B-01` for hospitals that both "
        "number their patients from 01. In path patterns {subject} stays the id as the table has it.",
    )
    site: str | None = setting(
        "site", "Column with the acquisition site; none: all subjects come from one, called single-site."
    )
    age: str | None = setting("age", "Column with the age; none: ages are unknown.")
    age_unit: Literal["years", "months", "weeks", "days"] | None = setting(
        None,
        "Unit of the ages, which are kept in years; none: years, and a column or a description of it (in the `.json` "
        "beside the table) that names another unit is refused.",
    )
    sex: str | None = setting("sex", "Column with the sex code; none: sexes are unknown.")
    diagnosis: str | None = setting(
        "diagnosis", "Column with the diagnosis code; none: no diagnosis, for `target: sex`."
    )
    mean_fd: str | None = setting(None, "Column with the mean framewise displacement in mm; none: motion is unknown.")

    @property
    def ids(self) -> tuple[str, ...]:
        """Columns that name a subject, the first that does so first."""
        further = self.subject_fallback or ()
        return (self.subject, *((further,) if isinstance(further, str) else further))

    @property
    def named(self) -> tuple[str, ...]:
        """All columns, each once."""
        others = (self.subject_prefix, self.file, self.site, self.age, self.sex, self.diagnosis, self.mean_fd)
        return tuple(dict.fromkeys(name for name in (*self.ids, *others) if name is not None))


@dataclass(frozen=True)
class CodeSettings:
    """Meaning of the phenotype table's codes, which are compared as text."""

    sex: dict[str, Sex] = setting(
        factory=lambda: {"male": "male", "female": "female"}, description="Sex codes: code -> male or female."
    )
    diagnosis: dict[str, str] = setting(
        factory=lambda: {"patient": "patient", "control": "control"},
        description="Diagnosis codes: code -> patient, control (or a name in `classes`), unlabelled (see "
        "`unlabelled`) or excluded (leaves the cohort). Several codes may mean the same, so that many diagnoses become "
        "two.",
    )
    site: dict[str, str] = setting(
        factory=dict, description="Site codes: code -> name of the site; a code that is not here is the site's name."
    )


@dataclass(frozen=True)
class ExtractionSettings:
    """Cleaning of averaged region series (NIfTI sources)."""

    detrend: bool = setting(True, "Remove the linear trend of each region.")
    standardise: bool = setting(True, "Scale each region to mean 0 and standard deviation 1.")
    high_pass: float | None = setting(0.01, "Lower edge of the band-pass in Hz; none: no high-pass.", minimum=0)
    low_pass: float | None = setting(0.1, "Upper edge of the band-pass in Hz; none: no low-pass.", minimum=0)

    def __post_init__(self) -> None:
        """Refuse a band that passes nothing."""
        for name, edge in (("high_pass", self.high_pass), ("low_pass", self.low_pass)):
            if edge is not None and edge <= 0:
                raise ValueError(
                    f"extraction.{name}: expected a frequency above 0 Hz, found {edge:g}; write none for no such filter"
                )
        if self.high_pass is not None and self.low_pass is not None and self.high_pass >= self.low_pass:
            raise ValueError(
                f"extraction: expected high_pass below low_pass, found {self.high_pass:g} and {self.low_pass:g} Hz; "
                "fix one of them"
            )


@dataclass(frozen=True)
class CohortSettings:
    """One cohort: its source, its table, the extraction of its region series."""

    NOT_YET: ClassVar[Mapping[str, str]] = {"target": NO_NUMBERS}

    source: Literal["simulate", "nifti", "bids", "timeseries", "freesurfer", "tudataset"] = setting(
        description="simulate: generated NIfTI; nifti: 4D images and a parcellation; bids: fMRIPrep's output and a "
        "parcellation; timeseries: region series; freesurfer: tables or stats files of regional volumes, thickness and "
        "areas (`features.kind: morphometry`); tudataset: public graphs, as molecules, in place of subjects."
    )
    bids: BidsSettings = setting(factory=BidsSettings, description="Which of fMRIPrep's files are used (source: bids).")
    phenotype: str | tuple[str, ...] | None = setting(
        None,
        "Path of the phenotype table (csv or tsv), or a list of tables with these columns, read one below the other; "
        "none with source bids: participants.tsv of the derivative, or of the data set above it.",
    )
    rows: dict[str, tuple[str, ...]] = setting(
        factory=dict,
        description="Rows of the phenotype table that form the cohort, column -> values: `VISCODE: [bl]`; the others "
        "are ignored.",
    )
    series: str | None = setting(
        None,
        "Path pattern of the series: {file}, {subject} and {site} are replaced; NIfTI images, or region series as "
        "text, NumPy's .npy and .npz, or MATLAB's .mat. "
        "`folder/**/name` finds a file of that name in the folder, or in any folder below it.",
    )
    confounds: str | None = setting(
        None,
        "Path pattern of confound tables (NIfTI sources), with a header or as motion parameters without one; none: "
        "nothing is regressed out.",
    )
    confound_columns: tuple[str, ...] = setting((), "Columns of the confound tables to regress out; empty: all.")
    atlas: str = setting(
        "atlas",
        "Name of the parcellation, as it appears in paths. basc122, cc200, harvard-oxford and aal need no "
        "`parcellation` (NIfTI and BIDS sources): `snakemake fetch_atlases` downloads them. Of region series it is a "
        "label of your own, which nothing is read by.",
    )
    parcellation: str | None = setting(
        None,
        "Path of the parcellation NIfTI: 3D with integer labels, 0 outside, or 4D with one map of weights a region; "
        "none: a known `atlas`.",
    )
    labels: str | None = setting(
        None,
        "Path of the region table, separated by tabs, commas or semicolons: columns index (a label, or the number of a "
        "map; 0 is the background) and name; none: regions are named by number.",
    )
    regions: int | None = setting(
        None, "Number of regions that every series must have (timeseries).", minimum=2, maximum=100_000
    )
    header: bool | None = setting(
        None,
        "Whether the first line of every series names the regions (timeseries); none: decided for each file, and a "
        "line of integers that may be labels or a volume is refused.",
    )
    transposed: bool | None = setting(
        None,
        "Whether files of series have a row a region (timeseries), and text of them no header; none: they have a row a "
        "volume, and a file whose rows are smooth while its columns are not is refused.",
    )
    variable: str | None = setting(
        None,
        "Name of the array with the series in MATLAB's files and .npz files of several (timeseries); none: the only "
        "matrix, DPARSF's ROISignals, or CONN's regions.",
    )
    columns: ColumnSettings = setting(factory=ColumnSettings, description="Names of the phenotype table's columns.")
    codes: CodeSettings = setting(factory=CodeSettings, description="What the phenotype table's codes mean.")
    target: Target = setting(
        "diagnosis",
        "Target of learning: the diagnosis, or sex (male against female). Sex then is no phenotype of any graph, "
        "generator or baseline, and diagnoses only exclude. class: that of a graph, for source tudataset alone. "
        "Numbers, such as scores of a questionnaire, are not supported as targets yet, nor are covariates of methods.",
    )
    classes: tuple[str, ...] = setting(
        (),
        "Names of the diagnoses that are learnt, two or more, the reference first; `codes.diagnosis` maps codes to "
        "them: `classes: [CN, MCI, AD]` with `codes: {diagnosis: {1: CN, 2: MCI, 3: AD}}`. Empty: control, patient. "
        "With source tudataset, which needs them, the names of the labels of each data set in ascending order.",
    )
    condition: str = setting("", "What patients have, as `autism`: a noun for the question that the report asks.")
    modality: str = setting(
        "", "What institutions hold, as `resting-state scans`: a plural for the question that the report asks."
    )
    unlabelled: Literal["drop", "keep"] = setting(
        "drop",
        "Subjects whose target is missing or coded unlabelled leave the cohort, or stay as nodes without a label: in "
        "graphs and in fits that read no label, never scored.",
    )
    missing: tuple[str, ...] = setting(
        (),
        "Codes that mean missing in any column, beside empty cells and those that pandas reads as missing (NaN, NA, "
        "n/a, NULL, None, #N/A and the like); a code under `codes` keeps its meaning in its column.",
    )
    tr: dict[str, float] = setting(
        factory=dict, description="Repetition time in s by site; overrules the image header."
    )
    shards: int = setting(8, "Number of parts of the stored series.", minimum=1)
    min_timepoints: int = setting(50, "Shortest usable series, in volumes.", minimum=2)
    on_invalid: Literal["error", "drop"] = setting(
        "error",
        "An absent, damaged, non-finite or short series, or an absent confound table, stops the run, or drops its "
        "subject with a line in the report.",
    )
    constant_regions: Literal["impute_zero", "drop_subject", "error"] = setting(
        "impute_zero", "Regions without signal: their correlations are 0, their subject is dropped, or the run stops."
    )
    contradictory_copies: Literal["stop", "keep"] = setting(
        "stop",
        "Subjects with one scan and different diagnoses (of `target: sex` sexes) stop the run, as at least one file or "
        "row is wrong, or are kept: they share an institution and a fold, like all copies. Simulated "
        "cohorts and graphs have none.",
    )
    min_coverage: float = setting(
        0.5,
        "A region that a scan covers by a smaller fraction is listed among the issues; it is kept.",
        minimum=0,
        maximum=1,
    )
    exclude: ExclusionSettings = setting(
        factory=ExclusionSettings, description="Limits of quality; subjects beyond them are left out."
    )
    flag: FlagSettings = setting(
        factory=FlagSettings, description="Limits of quality; subjects beyond them stay, listed among the issues."
    )
    extraction: ExtractionSettings = setting(
        factory=ExtractionSettings, description="Cleaning of region series (NIfTI and BIDS sources)."
    )
    freesurfer: FreeSurferSettings = setting(
        factory=FreeSurferSettings,
        description="FreeSurfer's measures: those of source freesurfer, or a further view of subjects with scans. "
        "A subject with a scan and without measures stays, and lacks this view.",
    )
    tudataset: TUDatasetSettings = setting(
        factory=TUDatasetSettings, description="The data sets of graphs (source: tudataset)."
    )
    fetch: str = setting("", "Command that downloads the files; messages on absent files name it.")
    simulate: SimulateSettings = setting(
        factory=SimulateSettings, description="The simulated cohort (source: simulate)."
    )

    @property
    def kind(self) -> Literal["connectivity", "morphometry", "graphs"]:
        """Kind of features of the source; graphs have none, and are samples themselves."""
        if self.source == "tudataset":
            return "graphs"
        return "morphometry" if self.source == "freesurfer" else "connectivity"

    @property
    def refuses_contradictions(self) -> bool:
        """Whether copies of one scan with different labels stop the run; a simulated cohort has no wrong rows."""
        return self.contradictory_copies == "stop" and self.source not in ("simulate", "tudataset")

    @property
    def one_task(self) -> bool:
        """Whether a class means the same at all sites: several data sets of graphs have a task each."""
        return self.target != "class" or len(self.tudataset.names) == 1

    @property
    def kinds(self) -> frozenset[str]:
        """Kinds of features of the source, and of FreeSurfer's measures beside region series."""
        measured = self.freesurfer.tables or self.freesurfer.subjects_dir is not None or self.simulates_thickness
        return frozenset([self.kind, "morphometry"] if measured else [self.kind])

    @property
    def simulates_thickness(self) -> bool:
        """Whether a simulated cohort has a table of cortical thickness."""
        return self.source == "simulate" and self.simulate.thickness_regions > 0

    def __post_init__(self) -> None:
        """Refuse impossible repetition times, a target without a column, and two sources of thickness."""
        self._spell_paths()
        if self.simulates_thickness and (self.freesurfer.tables or self.freesurfer.subjects_dir is not None):
            raise ValueError(
                "freesurfer: expected no tables beside simulate.thickness_regions, which simulates one, found some; "
                "remove one of the two"
            )
        self._check_graphs()
        if self.series is not None and "**" in self.series and not ANYWHERE.fullmatch(self.series):
            raise ValueError(
                f"series: expected ** once, as a whole folder right before the name of the file (folder/**/name) and "
                f"below a folder without braces, found {self.series!r}; fix the pattern"
            )
        if self.target != "class" and getattr(self.columns, self.target) is None:
            raise ValueError(f"columns.{self.target}: the target is the {self.target}, found no column; name it")
        simulated = self.source == "simulate"
        if self.condition and self.target != "diagnosis":
            raise ValueError(f"condition: expected none with target {self.target}, found {self.condition!r}; remove it")
        if self.classes:
            check_class_names(self.classes, self.target, simulated=simulated)
        if self.target != "class":
            check_meanings(self.codes.diagnosis, self.classes, needed=self.target == "diagnosis" and not simulated)
        for site, tr in self.tr.items():
            if tr <= 0:
                raise ValueError(f"tr.{site}: expected a repetition time above 0 s, found {tr:g}; fix it")

    def _spell_paths(self) -> None:
        """Write each path in one way: a change from `data` to `./data` or `data//` is none, and runs nothing again."""
        for name in ("phenotype", "series", "confounds", "parcellation", "labels"):
            object.__setattr__(self, name, _spelled(getattr(self, name)))
        nested = {"bids": ("derivatives",), "freesurfer": ("tables", "subjects_dir"), "tudataset": ("folder",)}
        for key, names in nested.items():
            own = getattr(self, key)
            object.__setattr__(self, key, replace(own, **{name: _spelled(getattr(own, name)) for name in names}))

    def _check_graphs(self) -> None:
        """Refuse graphs without names of classes, and the target of graphs elsewhere."""
        graphs = self.source == "tudataset"
        if graphs != (self.target == "class"):
            raise ValueError(
                f"target: expected class with source tudataset and with no other source, found {self.target} with "
                f"source {self.source}; change one of them"
            )
        usual: dict[str, Any] = {"phenotype": None, "rows": {}, "series": None, "confounds": None, "unlabelled": "drop"}
        idle = [name for name, value in usual.items() if graphs and getattr(self, name) != value]
        if idle or (graphs and self.exclude != ExclusionSettings()):
            raise ValueError(
                f"{(idle or ['exclude'])[0]}: expected none with source tudataset, whose graphs have no table and no "
                "scan, found some; leave it out"
            )
        if graphs and not self.classes:
            raise ValueError(
                "classes: expected names of the classes of the graphs, as [inactive, active], found none; name them"
            )

    @property
    def class_names(self) -> tuple[str, ...]:
        """The classes that are learnt, in the order of the labels 0, 1, ...: meanings of the target's codes."""
        return self.classes or CLASSES[self.target]

    @property
    def score_names(self) -> tuple[str, ...]:
        """The classes as predictions name their scores: one score of two classes has no name."""
        return self.class_names if len(self.class_names) > 2 else ("0", "1")

    @property
    def tables(self) -> tuple[str, ...]:
        """Paths of the phenotype tables; empty if there is none."""
        if self.phenotype is None:
            return ()
        return (self.phenotype,) if isinstance(self.phenotype, str) else tuple(self.phenotype)


def expanded(path: str) -> str:
    """A path with the home folder for `~`, and the values of environment variables for `$NAME` and `${NAME}`."""
    return os.path.expandvars(os.path.expanduser(path))  # noqa: PTH111 - Path stops at a user who does not exist.


def _spelled(path: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
    """A path, or several, expanded and without steps that lead nowhere; `..` stays, as a link may lead elsewhere."""
    if isinstance(path, tuple):
        return tuple(str(PurePath(expanded(file))) if file else file for file in path)
    return str(PurePath(expanded(path))) if path else path
