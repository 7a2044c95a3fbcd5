"""Settings of a BIDS derivative (fMRIPrep's output): selection of images, regression of confounds."""

from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.settings import setting

Expansion = Literal["basic", "power2", "derivatives", "full"]

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
