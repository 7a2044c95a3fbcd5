"""Settings of differential privacy, and their limits.

The unit of protection is one subject of one institution: in neighbouring data sets the
data of one subject are there, or add nothing. Its place stays, as numbers of subjects are public (zero-out adjacency,
Kairouz et al. 2021). All scans or windows of a subject count as one.
"""

from dataclasses import dataclass
from math import inf
from typing import Literal

from brainfed.runtime.errors import UserError
from brainfed.runtime.settings import setting

UNIT = "subject"

NOT_OF_TWINS = ("privacy", "epsilon", "delta", "clip")
"""Settings that no twin has, because its training is not private."""

SMALLEST_DELTA = 1e-12
"""Below it rounding dominates Opacus' PRV accountant."""

Calibration = Literal["none", "paper", "classical", "accountant"]

PRIVACY_DESCRIPTION = (
    "How the noise on clipped gradients is set. none: neither clipping nor noise. accountant: the least noise with "
    "which the whole training spends at most `epsilon` at each institution. classical: sqrt(2 log(1.25 / delta)) / "
    "epsilon, proven for one release and epsilon below 1. paper: sqrt(2 log(1.25 / delta) / epsilon), as FGLBC "
    "prints it. privacy.json has the epsilon that is really spent."
)


@dataclass(frozen=True)
class PrivacySettings:
    """Differentially private local training (Abadi et al. 2016)."""

    privacy: Calibration = setting("none", PRIVACY_DESCRIPTION)
    epsilon: float = setting(10.0, "Privacy budget of an institution, above 0.", minimum=0)
    delta: float = setting(
        1e-5,
        "Probability that the guarantee fails; above 0, below 1 / training subjects of any institution.",
        minimum=0,
    )
    clip: float = setting(
        1.0, "Largest L2 norm C of one subject's gradient, above 0; noise is relative to it.", minimum=0
    )

    def __post_init__(self) -> None:
        if not 0 < self.epsilon < inf:
            raise ValueError(f"epsilon: expected a number above 0, found {self.epsilon:g}; privacy: none spends none")
        if not SMALLEST_DELTA <= self.delta < 1:
            raise ValueError(
                f"delta: expected a number from {SMALLEST_DELTA:g} to below 1, found {self.delta:g}; 1e-5 is usual"
            )
        if not 0 < self.clip < inf:
            raise ValueError(
                f"clip: expected a norm above 0, found {self.clip:g}; privacy: none trains without clipping"
            )

    @property
    def private(self) -> bool:
        """Whether gradients are clipped and noise is added."""
        return self.privacy != "none"

    def require_enough(self, institution: str, subjects: int) -> None:
        """Refuse training subjects of an institution that privacy settings do not fit; none is none to protect.

        Raises:
            UserError: a single subject trains, or delta allows to publish one of them.
        """
        if self.private and subjects == 1:
            raise UserError(
                f"privacy of institution {institution}: expected two or more training subjects, found 1, whose noised "
                "gradient would be all that it sends; join institutions, or set privacy: none."
            )
        if self.private and subjects and self.delta * subjects >= 1:
            raise UserError(
                f"delta of institution {institution}: expected less than 1 / {subjects} training subjects = "
                f"{1 / subjects:g}, found {self.delta:g}; lower delta."
            )
