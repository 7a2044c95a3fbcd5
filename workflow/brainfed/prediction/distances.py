"""How far scans lie from the centre of the training data that are new to a model: what a patient is compared with.

A model is centred and scaled on its training subjects, so they lie nearer to its centre than any new scan: among
thousands of features nearly all of them lie nearer. The subjects that the folds hold out are as new as a patient, but
their models have seen fewer subjects than the kept one, and lie farther from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FAR = 3.0
"""Standard deviations beyond which a scan is not like those of training: few of these lie near their centre either."""
SPENT = 3
"""Subjects that moments cost: a z-score by the moments of m normal subjects has the mean square 1 + 4 / (m - 3)."""

Lengths = NDArray[np.float64]


@dataclass(frozen=True)
class ScanLengths:
    """Lengths of scaled features where one scaling holds, at an institution or at all.

    Attributes:
        held_out: of tested subjects, each by the model of the fold that never saw it.
        training: of the training subjects of every fold, by its model: all folds in one.
        folds: their number.
        subjects: number of training subjects of the kept model.
    """

    held_out: Lengths
    training: Lengths
    folds: int
    subjects: int

    def of_new_scans(self) -> Lengths:
        """The lengths that the held-out subjects would have by a model of all others, not of the other folds alone."""
        fewer = len(self.training) / self.folds - SPENT
        if not len(self.held_out) or fewer <= 0:
            return self.held_out
        excess = max(_mean_square(self.held_out) / _mean_square(self.training) - 1.0, 0.0)
        nearer = np.sqrt((1.0 + excess * fewer / (self.subjects - SPENT)) / (1.0 + excess))
        return np.asarray(nearer * self.held_out)


def spread_of(places: Sequence[ScanLengths]) -> dict[str, Any]:
    """Where new scans lie, builtins: `means`, one a place; `sd` inside of a place; numbers of `subjects` and `beyond`.

    Args:
        places: one an institution, or a single one where the model scales all alike.
    """
    lengths = [place.of_new_scans() for place in places]
    everywhere = float(np.concatenate(lengths).mean())
    means = [float(own.mean()) if len(own) else everywhere for own in lengths]
    apart = np.concatenate([own - mean for own, mean in zip(lengths, means, strict=True)])
    sd = float(np.sqrt(np.mean(apart**2)))
    beyond = int((np.abs(apart) > FAR * sd).sum())
    return {"means": means, "sd": sd, "subjects": len(apart), "beyond": beyond}


def distance_of(length: float, spread: Mapping[str, Any], institution: int | None) -> float:
    """Standard deviations from the mean of new scans.

    Args:
        length: of a patient's scaled features.
        spread: of `spread_of`.
        institution: the patient's; None where the model scales all alike.
    """
    means = spread["means"]
    return float(
        (length - means[institution if institution is not None and len(means) > 1 else 0]) / (spread["sd"] or 1.0)
    )


def _mean_square(lengths: Lengths) -> float:
    return float(np.mean(lengths**2))
