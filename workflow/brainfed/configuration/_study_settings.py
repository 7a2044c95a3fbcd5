"""Settings of a federation between real sites."""

import re
from dataclasses import dataclass
from typing import Literal

from brainfed.runtime import setting

# What a study between sites runs and checks. No module outside of `brainfed.sites` imports it: a study alone needs it.
JOIN, COORDINATE = "brainfed.sites.join:join", "brainfed.sites.coordinate:coordinate"
REQUIRE_FLOWER = "brainfed.sites.flower.versions:require_flower"
SITE_JOB = "brainfed.sites.home:site_job"
STUDY_FILE, STUDY_KEPT = "brainfed.sites.study:require_extended_study", "brainfed.sites.study:require_study_of"
RELEASED = "brainfed.sites.released:require_releasable"

FEWEST = 2
"""Sites of a federation."""
PORTS = 65536
NAME = re.compile(r"\w[\w.-]*( [\w.-]+)*")
"""Of a site: part of a path and of a list."""
LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?"
"""Between two points of a host."""
HOST = re.compile(rf"{LABEL}(\.{LABEL})*")
"""Of the coordinator: a name or an address."""


@dataclass(frozen=True)
class StudySettings:
    """A federation between real sites: who takes part, and how the coordinator waits.

    Without `sites` all institutions are in one place, and a federation is simulated.
    """

    sites: tuple[str, ...] = setting((), "Names of all sites, as their phenotype tables write them; empty: none.")
    site: str = setting("", "The site where this config is; empty: the coordinator. Each site sets its own.")
    address: str = setting(
        "", "Name or address of the coordinator, and its port, as the sites reach it: `hub.example.org:9092`."
    )
    least: int = setting(
        2,
        "Fewest sites of a round. Where a method averages models, a round goes on without sites that are late; where "
        "it adds up numbers of all sites, it waits for all.",
        minimum=FEWEST,
    )
    wait: float = setting(
        3600.0,
        "Seconds that a step waits for the slowest site, after the first site has answered. Before the first step the "
        "coordinator waits for all sites without end.",
        minimum=0,
    )
    secure_sums: bool = setting(
        True,
        "Mask numbers of which the coordinator needs the sum alone, so that it sees no site's own (secure "
        "aggregation): models that are averaged, moments, products and gradients. A round then has four steps. A "
        "method that compares sites, as gcfl, sends each site's own in any case.",
    )
    accept_reconstruction: bool = setting(
        False,
        "Run a study whose exact sums may suffice to compute the features of single subjects. Each fold, inner fold "
        "and repeat adds up another set of subjects; where there are more sets than a quarter of the smallest site's "
        "subjects, a study is refused without this line. true: all sites accept it, and no bound of epsilon holds for "
        "variants without privacy.",
    )
    epsilon: float = setting(
        0.0,
        "Bound of epsilon for one subject over all that private variants release in the study, folds, repeats and "
        "variants together; a site that would spend more is refused. 0: the largest epsilon of its variants, which a "
        "single training keeps. The counts of tested subjects are outside of it.",
        minimum=0,
    )
    noise: Literal["secret", "study"] = setting(
        "secret",
        "Key of the noise that protects subjects, and of the draws of private steps. secret: a key that the site makes "
        "and no other has; study: the study's seed, which all sites know, so that a rehearsal equals a simulation. "
        "The key suffices to subtract the noise.",
    )

    def __post_init__(self) -> None:
        """Refuse a federation of one site, two sites of one name, and a site that is none of the study's."""
        if not self.sites:
            if self.site:
                raise ValueError(
                    f"sites: expected the names of all sites beside site: {self.site}, found none; add them"
                )
            return
        if len(self.sites) < FEWEST:
            raise ValueError(f"sites: expected two or more, found {self.sites[0]} alone; add the others")
        for name in self.sites:
            if not NAME.fullmatch(name):
                raise ValueError(
                    f"sites: expected names of letters, digits, spaces, points, hyphens and underscores, found "
                    f"{name!r}; rename the site, in its table by `codes.site`"
                )
        twice = [name for name in self.sites if self.sites.count(name) > 1]
        if twice:
            raise ValueError(f"sites: expected every name once, found {twice[0]} twice; rename one of them")
        if self.site and self.site not in self.sites:
            raise ValueError(f"site: expected one of {', '.join(self.sites)}, found {self.site}; fix it")
        host, _, port = self.address.rpartition(":")
        if not HOST.fullmatch(host) or not re.fullmatch("[0-9]+", port) or not 0 < int(port) < PORTS:
            raise ValueError(
                f"address: expected the coordinator's name and port, as hub.example.org:9092, found "
                f"{self.address or 'none'}; set it"
            )
        if self.least > len(self.sites):
            raise ValueError(
                f"least: expected at most {len(self.sites)}, the number of sites, found {self.least}; lower it"
            )

    @property
    def ordered(self) -> tuple[str, ...]:
        """The names in ascending order: an institution's code is its place here, as in a simulation."""
        return tuple(sorted(self.sites))
