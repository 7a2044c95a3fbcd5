"""Settings of the sources of a cohort: a BIDS derivative, FreeSurfer's measures, simulated scans, public graphs."""

from dataclasses import dataclass, fields
from typing import Literal

from brainfed.runtime import setting

Expansion = Literal["basic", "power2", "derivatives", "full"]
Measure = Literal["volume", "thickness", "area"]


OPTIONS = {
    "none": (),
    "simple": ("motion", "wm_csf", "global_signal"),
    "scrubbing": ("motion", "wm_csf", "global_signal", "scrub", "fd_threshold", "std_dvars_threshold"),
    "compcor": ("motion", "compcor", "n_compcor", "global_signal"),
    "ica_aroma": ("wm_csf", "global_signal"),
}
"""Options of each strategy of nilearn's `load_confounds_strategy`."""


@dataclass(frozen=True)
class ConfoundSettings:
    """Regression and scrubbing, in the terms of nilearn's `load_confounds_strategy`."""

    strategy: Literal["none", "simple", "scrubbing", "compcor", "ica_aroma"] = setting(
        "simple",
        "simple: motion, white matter, CSF; scrubbing: the same without volumes of high motion; compcor: motion "
        "and anatomical components; ica_aroma: white matter and CSF of images that AROMA cleaned "
        "(desc-smoothAROMAnonaggr); none: nothing. All but none drop non-steady-state volumes and regress out "
        "fMRIPrep's cosines, a high-pass at 128 s; set `extraction.high_pass: none` with them.",
    )
    motion: Expansion | None = setting(None, "Expansion of the six motion parameters; none: the strategy's own, full.")
    wm_csf: Expansion | None = setting(
        None, "Expansion of white matter and CSF; none: the strategy's own, basic (scrubbing: full)."
    )
    global_signal: Expansion | None = setting(None, "Expansion of the global signal; none: it is not regressed out.")
    scrub: int | None = setting(
        None,
        "Shortest stretch of volumes between two scrubbed ones that is kept; 0: any; none: the strategy's own, 5.",
        minimum=0,
    )
    fd_threshold: float | None = setting(
        None,
        "Framewise displacement in mm above which a volume is scrubbed; none: the strategy's own, 0.5.",
        minimum=0,
    )
    std_dvars_threshold: float | None = setting(
        None, "Standardised DVARS above which a volume is scrubbed; none: the strategy's own, 1.5.", minimum=0
    )
    compcor: (
        Literal["anat_combined", "anat_separated", "temporal", "temporal_anat_combined", "temporal_anat_separated"]
        | None
    ) = setting(None, "Masks of the components; none: the strategy's own, anat_combined.")
    n_compcor: int | None = setting(
        None, "Components of each mask; none: those that explain half of the variance.", minimum=1
    )

    def __post_init__(self) -> None:
        """Refuse an option that the strategy would ignore."""
        taken = OPTIONS[self.strategy]
        for name in sorted({option for options in OPTIONS.values() for option in options} - set(taken)):
            if getattr(self, name) is not None:
                fitting = [strategy for strategy, options in OPTIONS.items() if name in options]
                raise ValueError(
                    f"{name}: expected none with strategy {self.strategy}, which does not use it, found "
                    f"{getattr(self, name)}; leave it out or choose {' or '.join(fitting)}"
                )

    @property
    def options(self) -> dict[str, str | int | float]:
        """Options that are set, as keywords of `load_confounds_strategy`."""
        named = {name: getattr(self, name) for name in OPTIONS[self.strategy]}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True)
class BidsSettings:
    """Selection of the images of a BIDS derivative (source: bids)."""

    derivatives: str | None = setting(None, "Folder of the derivative, which holds sub-*/.")
    space: str | None = setting(
        None,
        "Label of the images' space (space-LABEL), with its cohort as in MNIPediatricAsym:cohort-2; native: images "
        "without this entity; none: the only one that there is.",
    )
    resolution: str | None = setting(
        None, "Label of the resolution (res-LABEL); native: images without it; none: the only one that there is."
    )
    reconstruction: str | None = setting(
        None,
        "Label of the reconstruction (rec-LABEL); native: images without it; none: whichever there is, one of a run.",
    )
    task: str | None = setting(None, "Label of the task (task-LABEL); none: the only one that there is.")
    sessions: tuple[str, ...] = setting((), "Labels of the sessions to use (ses-LABEL); empty: all.")
    run_numbers: tuple[int, ...] = setting((), "Numbers of the runs to use (run-NUMBER); empty: all.")
    runs: Literal["concatenate", "first", "average"] = setting(
        "concatenate",
        "Several runs of a subject, over all sessions used: joined after cleaning each; only the first; or one "
        "connectivity a run, averaged: the mean of r, of z with fisher_z, or of the covariance (tangent), in which "
        "each run counts the same. A run with fewer kept volumes than min_timepoints, or no more than regressors, is "
        "left out of an average.",
    )
    brain_mask: bool = setting(True, "Voxels outside the image's brain mask (desc-brain) have no signal.")
    confounds: ConfoundSettings = setting(
        factory=ConfoundSettings, description="What is regressed out and scrubbed (desc-confounds_timeseries.tsv)."
    )
    export: bool = setting(
        False,
        "Write series, correlations and coverage of every subject as BIDS files (BEP017 names) beside the report; "
        "the target `export_bids` writes them once.",
    )


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


@dataclass(frozen=True)
class SimulatedSite:
    """One acquisition site of the simulation."""

    share: float = setting(1.0, "Share of the subjects, relative to the other sites.", minimum=0)
    volumes: int = setting(100, "Length of a scan in volumes.", minimum=10)
    tr: float = setting(2.0, "Repetition time in s.", minimum=0.1)
    noise: float = setting(1.0, "Standard deviation of a voxel's noise, in units of the signal's.", minimum=0)


def _sites() -> dict[str, SimulatedSite]:
    return {
        "north": SimulatedSite(share=0.35, volumes=120, tr=2.0, noise=1.0),
        "east": SimulatedSite(share=0.25, volumes=150, tr=1.5, noise=1.4),
        "south": SimulatedSite(share=0.25, volumes=100, tr=2.5, noise=0.8),
        "west": SimulatedSite(share=0.15, volumes=110, tr=2.2, noise=1.8),
    }


@dataclass(frozen=True)
class SimulateSettings:
    """A simulated cohort with known effects; every effect is a shift of correlations."""

    subjects: int = setting(120, "Number of subjects, 10 patients in every 20.", minimum=8)
    seed: int = setting(7, "Seed of the simulated brains.", minimum=0)
    sites: dict[str, SimulatedSite] = setting(factory=_sites, description="The acquisition sites by name.")
    regions: int = setting(122, "Number of regions of the parcellation.", minimum=4)
    grid: tuple[int, int, int] = setting((14, 16, 14), "Voxels along each axis.")
    voxel_size: float = setting(11.0, "Edge of a voxel in mm.", minimum=0.1)
    effect: float = setting(0.13, "Correlation of a patient minus that of a control.", minimum=0, maximum=1)
    effect_connections: int = setting(300, "Number of connections that diagnosis moves, half of them up.", minimum=0)
    effect_age: float = setting(0.05, "Shift of a correlation by one standard deviation of age.", minimum=0, maximum=1)
    age_connections: int = setting(300, "Number of connections that age moves.", minimum=0)
    effect_sex: float = setting(0.1, "Correlation of a man minus that of a woman.", minimum=0, maximum=1)
    sex_connections: int = setting(300, "Number of connections that sex moves.", minimum=0)
    site_spread: float = setting(
        0.1, "Spread of a site's own connectivity, in units of the shared networks' strength.", minimum=0
    )
    individuality: float = setting(
        0.5, "Spread of a subject's own connectivity, in units of the shared networks' strength.", minimum=0
    )
    age_mean: float = setting(25.0, "Mean age in years.", minimum=0)
    age_sd: float = setting(6.0, "Standard deviation of age in years (ages stay within 6 ... 80).", minimum=0)
    memory: float = setting(4.0, "Time constant of the signal's autocorrelation in s.", minimum=0.1)
    groups: int = setting(
        0,
        "Groups of similar subjects, a multiple of 4: each has one sex, a narrow age band and its own connectivity; "
        "0: subjects are drawn independently.",
        minimum=0,
    )
    group_agreement: float = setting(
        0.0,
        "How strongly the group decides the diagnosis. 0: half of every group are patients; 1: all of a group have one "
        "diagnosis; between: a share of (1 + agreement) / 2 has it.",
        minimum=0,
        maximum=1,
    )
    group_spread: float = setting(
        0.5, "Spread of a group's own connectivity, in units of the shared networks' strength.", minimum=0
    )
    thickness_regions: int = setting(
        0,
        "Cortical regions of a table of thickness as FreeSurfer writes it: a further view (`features.views`, `kind: "
        "morphometry`); 0: no table.",
        minimum=0,
    )
    thickness_effect: float = setting(
        0.5, "Thickness of a patient minus that of a control in every fifth region, in standard deviations.", minimum=0
    )
    thickness_site_spread: float = setting(
        0.5, "Spread of a site's own thickness of a region, in standard deviations.", minimum=0
    )
    thickness_missing: float = setting(
        0.05, "Share of the subjects without a row in the table of thickness.", minimum=0, maximum=0.9
    )

    def __post_init__(self) -> None:
        """Refuse a simulation without sites, and groups that diagnoses cannot divide equally."""
        if self.groups % 4:
            raise ValueError(
                f"simulate.groups: expected a multiple of 4, equal for sexes and diagnoses, found "
                f"{self.groups}; write {4 * round(self.groups / 4) or 4}, or 0 for none"
            )
        for name in ("group_agreement", "group_spread"):
            if not self.groups and getattr(self, name) != getattr(SimulateSettings, name):
                raise ValueError(
                    f"simulate.{name}: expected groups for it, found {getattr(self, name):g} with groups 0; set "
                    "simulate.groups, or remove the key"
                )
        for field in fields(self):
            changed = field.name.startswith("thickness") and getattr(self, field.name) != field.default
            if not self.thickness_regions and changed:
                raise ValueError(
                    f"simulate.{field.name}: expected thickness_regions beside it, found 0 of them; set "
                    "simulate.thickness_regions, or remove the key"
                )
        if not self.sites:
            raise ValueError("simulate.sites: expected at least one site, found none; add one or remove the key")
        if not any(site.share > 0 for site in self.sites.values()):
            raise ValueError(
                f"simulate.sites: expected a share above 0 at one site or more, found 0 at all {len(self.sites)}; "
                "raise one"
            )


@dataclass(frozen=True)
class TUDatasetSettings:
    """Data sets in the text format of the TU Dortmund collection (Morris et al. 2020)."""

    folder: str = setting(
        "resources/tudataset", "Folder with a folder a data set; `snakemake fetch_tudatasets` downloads into it."
    )
    names: tuple[str, ...] = setting(
        (),
        "Names of the data sets, such as PROTEINS. Each is a site: with `institutions: sites` every one is an "
        "institution, with node features and classes of its own.",
    )

    def __post_init__(self) -> None:
        """Refuse a data set that is named twice, or whose name is no name of a folder."""
        for name in self.names:
            if self.names.count(name) > 1:
                raise ValueError(f"tudataset.names: expected every data set once, found {name!r} twice; remove one")
            if not name or "/" in name or name != name.strip() or name.startswith("."):
                raise ValueError(f"tudataset.names: expected the name of a data set, found {name!r}; fix it")
