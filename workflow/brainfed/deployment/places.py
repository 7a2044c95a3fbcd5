"""What a person's config says of a study between sites: its plan, its one cohort, the files of Flower."""

from dataclasses import dataclass
from pathlib import Path

from brainfed.cohort.sources.listing import list_cohort
from brainfed.configuration.layout.layout import Layout
from brainfed.configuration.loading import load_plan, read_config
from brainfed.configuration.planning.plan import Plan
from brainfed.runtime.errors import UserError

FOLDER = Path("federation")
"""Keys, certificate, logs and state, beside `results`."""
OUTCOME = "outcome.json"
"""What came of a study: the sites' scores, or the sentence of an error."""
PAGE = "outcome.html"
"""The same scores, to be read."""


@dataclass(frozen=True)
class StudyPlace:
    """A config with `study`.

    Attributes:
        config: its path.
        plan: what it plans.
    """

    config: Path
    plan: Plan

    @classmethod
    def of(cls, config: Path) -> "StudyPlace":
        """Read a config.

        Raises:
            UserError: it has no study, or several cohorts.
        """
        plan = load_plan(read_config(config), [config])
        if not plan.project.study.sites:
            raise UserError(f"{config}: expected `study` with the names of all sites, found none; add it.")
        if len(plan.project.cohorts) != 1:
            raise UserError(
                f"{config}: expected one cohort, whose subjects each site has of its own, found "
                f"{', '.join(plan.project.cohorts)}; keep one of them."
            )
        return cls(config, plan)

    @property
    def cohort(self) -> str:
        """Name of the cohort."""
        return next(iter(self.plan.project.cohorts))

    @property
    def layout(self) -> Layout:
        """The files of this site's run; its subjects are listed now.

        Raises:
            UserError: as of the cohort's source.
        """
        settings = self.plan.project.cohorts[self.cohort]
        return Layout(self.plan, {self.cohort: list_cohort(self.cohort, settings)})

    @property
    def port(self) -> int:
        """The coordinator's port."""
        return int(self.plan.project.study.address.rpartition(":")[2])

    @property
    def host(self) -> str:
        """The coordinator's name or address."""
        return self.plan.project.study.address.rpartition(":")[0]
