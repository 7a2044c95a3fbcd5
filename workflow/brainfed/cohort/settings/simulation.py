"""Settings of a simulated cohort."""

from dataclasses import dataclass, fields

from brainfed.runtime.settings import setting


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
