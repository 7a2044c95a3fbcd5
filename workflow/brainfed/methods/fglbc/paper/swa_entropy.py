"""How far a server's weighted mean is from a plain one: the entropy of its weights (FGLBC eq. 6)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import read_table


@dataclass(frozen=True)
class SharesOfMean:
    """The weights of one variant's server.

    Attributes:
        variant: the variant.
        entropy: mean over rounds, folds and repeats of the entropy over that of equal weights of the institutions that
            took part; 1: a plain mean.
        least: the smallest of a round.
        largest: the largest weight of an institution in any round.
        equal: the weight of each institution in a plain mean.
    """

    variant: ShownVariant
    entropy: float
    least: float
    largest: float
    equal: float

    @property
    def compared(self) -> str:
        """What the server compares."""
        return "weights" if self.variant.setting("aggregation") == "printed" else "updates (ours)"


def shares_of_mean(variant: ShownVariant) -> SharesOfMean | None:
    """The weights in the histories of a variant; None where none are recorded, or one institution takes part."""
    tables = [read_table(path).assign(repeat=number) for number, path in enumerate(variant.histories)]
    tables = [table for table in tables if "weight" in table and table["weight"].notna().any()]
    if not tables:
        return None
    rows = pd.concat(tables).dropna(subset=["weight"])
    rounds = rows.groupby(["repeat", "fold", "round"])["weight"]
    institutions = rounds.agg(lambda weight: int((weight > 0).sum()))
    if institutions.max() < 2:
        return None
    terms = rows["weight"] * np.log(rows["weight"].where(rows["weight"] > 0, 1.0))
    entropy = -terms.groupby([rows["repeat"], rows["fold"], rows["round"]]).sum()
    shared = institutions > 1
    relative = entropy[shared] / np.log(institutions[shared])
    return SharesOfMean(
        variant,
        float(relative.mean()),
        float(relative.min()),
        float(rows["weight"].max()),
        float(1 / institutions.max()),
    )
