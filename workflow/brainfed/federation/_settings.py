"""Settings of a federated training: rounds, selection, noise, privacy, attacks and defences."""

from dataclasses import dataclass
from math import ceil, inf
from typing import Literal

from brainfed.runtime import UserError, setting

Topology = Literal["local", "federated", "central"]
"""One model an institution, one model shared by all institutions, or one on pooled data."""
Calibration = Literal["none", "paper", "classical", "accountant"]

NOISE = 0.01
"""FedNI's standard deviation."""

NOISE_DESCRIPTION = (
    "Standard deviation of the noise on uploaded weights, 0 or `off` for none. "
    "Without an accountant it is no formal privacy guarantee."
)


# Settings of the FedAvg core: rounds, selection and noise (McMahan et al. 2017; FedNI Sec. III-C).


@dataclass(frozen=True)
class FederationSettings:
    """Federated training of one model."""

    rounds: int = setting(10, "Communication rounds T.", minimum=1)
    local_epochs: int = setting(10, "Local epochs E between two communications.", minimum=1)
    learning_rate: float = setting(1e-3, "Adam's learning rate.", minimum=0)
    weight_decay: float = setting(0.0, "Adam's L2 penalty.", minimum=0)
    proximal: float = setting(
        0.0,
        "Strength mu of FedProx's proximal term, which holds local weights near those that the round began with "
        "(Li et al. 2020, eq. 2).",
        minimum=0,
    )
    noise: float = setting(NOISE, NOISE_DESCRIPTION, minimum=0)
    fraction: float = setting(1.0, "Fraction C of the institutions drawn in each round.", minimum=0, maximum=1)
    batch: int = setting(
        0,
        "At most so many labelled subjects a local step (FedAvg's B), equally many steps everywhere; 0: all.",
        minimum=0,
    )
    weighting: Literal["equal", "subjects"] = setting("equal", "Average with weights 1/M, or n_m/n.")
    optimiser_state: Literal["reset", "keep"] = setting("reset", "What a client's Adam does between rounds.")

    def __post_init__(self) -> None:
        if self.optimiser_state == "keep" and self.fraction < 1:
            raise ValueError("optimiser_state: keep needs fraction: 1, a client that sits out has no state to keep")


# Settings of experiments on robustness: institutions that send poison, and a server that expects them.

ROBUSTNESS_KEYS = ("attack", "attacked", "defence", "trim")
"""Settings that no counterpart has: counterparts train on honest data."""

TRIMMING = ("trimmed_mean", "krum", "multi_krum")
"""Defences that read `trim`."""

SHARE = 0.25
"""Share of the institutions that is attacked, if an attack names no other."""

ROUNDING = 9
"""Decimals of share x institutions: 0.07 x 100 is 7.000000000000001."""


@dataclass(frozen=True)
class RobustnessSettings:
    """An attack on the federation, and the server's defence."""

    attack: Literal["none", "paf", "ofom", "sign_flip", "scale", "label_flip"] = setting(
        "none",
        "What poisoned institutions do. paf: they send the mean of the others plus a vector ten times as long, in a "
        "random direction (GAHFL eq. 8). ofom: one does so, all others send the mean with it (GAHFL eq. 9). sign_flip, "
        "scale: they send their update times -1, or 10. label_flip: they train on labels in reverse order, which of "
        "two classes are the wrong ones.",
    )
    attacked: float = setting(
        SHARE,
        "Share of the institutions that are poisoned, rounded up; a larger share adds to the same ones.",
        minimum=0,
        maximum=1,
    )
    defence: Literal["none", "median", "trimmed_mean", "krum", "multi_krum", "geometric_median", "norm_clipping"] = (
        setting(
            "none",
            "What takes the place of the server's mean. median, trimmed_mean: of every number for itself. krum, "
            "multi_krum: the model, or mean of models, with the nearest others. geometric_median: the smallest sum "
            "of distances. norm_clipping: the mean of updates, none longer than their median length.",
        )
    )
    trim: float = setting(
        0.25,
        "Share of the institutions, rounded up, that trimmed_mean leaves out at each end, and that krum and multi_krum "
        "take for poisoned.",
        minimum=0,
        maximum=0.5,
    )

    def __post_init__(self) -> None:
        if self.attack == "none" and self.attacked != SHARE:
            raise ValueError(
                f"attacked: expected an attack, found attacked: {self.attacked:g} without one, which poisons nobody; "
                "add `attack`, or remove `attacked`"
            )
        if self.defence in TRIMMING and not 0 < self.trim < 0.5:
            raise ValueError(
                f"trim: expected a share above 0 and below 0.5 for defence: {self.defence}, found {self.trim:g}; 0.25 "
                "is the default"
            )

    @property
    def poisons(self) -> bool:
        """Whether any institution is poisoned."""
        return self.attack != "none" and self.attacked > 0


def share_of(share: float, institutions: int) -> int:
    """Number of institutions of a share, rounded up."""
    return ceil(round(share * institutions, ROUNDING))


# Settings of differential privacy, and their limits.
#
# The unit of protection is one subject of one institution: in neighbouring data sets the
# data of one subject are there, or add nothing. Its place stays, as numbers of subjects are public (zero-out adjacency,
# Kairouz et al. 2021). All scans or windows of a subject count as one.

UNIT = "subject"

PRIVACY_KEYS = ("privacy", "epsilon", "delta", "clip")
"""Settings that no counterpart has, because its training is not private."""

SMALLEST_DELTA = 1e-12
"""Below it rounding dominates Opacus' PRV accountant."""

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


# Settings of federated training in private steps (Abadi et al. 2016; McMahan et al. 2017).


@dataclass(frozen=True)
class PrivateSchedule(PrivacySettings):
    """Rounds, local steps and privacy; `privacy: none` takes the same steps on the same batches without noise."""

    rounds: int = setting(20, "Communication rounds T.", minimum=1)
    local_epochs: int = setting(1, "Local epochs E between two communications.", minimum=1)
    batch: int = setting(
        32,
        "Expected number of subjects a local step: each training subject is in it with probability batch / training "
        "subjects, and an epoch has training subjects / batch steps; 0: all in one step.",
        minimum=0,
    )
    optimiser: Literal["sgd", "adam"] = setting("sgd", "Optimiser of the local steps.")
    learning_rate: float = setting(0.1, "Learning rate of the optimiser.", minimum=0)
    momentum: float = setting(0.0, "Of `optimiser: sgd`.", minimum=0, maximum=1)
    weight_decay: float = setting(0.0, "L2 penalty of the optimiser; it reads no data and spends nothing.", minimum=0)
    optimiser_state: Literal["reset", "keep"] = setting("keep", "What a client's optimiser does between rounds.")


def sampling_rate(batch: int, subjects: int) -> float:
    """Probability q that a local step includes a subject, of an institution with so many training subjects."""
    return 1.0 if not batch else min(batch / max(subjects, 1), 1.0)


def steps_of_an_epoch(batch: int, subjects: int) -> int:
    """Local steps of one epoch, 1 / q rounded up; none without training subjects."""
    return -(-subjects // batch) if batch else min(subjects, 1)
