"""Sites of subjects and covariates for harmonisation; no diagnosis is read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from brainfed.runtime.artefacts import read_table
from brainfed.runtime.errors import UserError

SEXES = {"female": 0.0, "male": 1.0}


@dataclass(frozen=True)
class Acquisition:
    """Sites and covariates of subjects.

    Attributes:
        site: (n,) names.
        covariates: name -> (n,), NaN where unknown; age in years, sex 0 (female) or 1 (male).
    """

    site: NDArray[np.object_]
    covariates: dict[str, NDArray[np.float64]]


def read_acquisition(participants: Path | str, subjects: Sequence[str], covariates: Sequence[str]) -> Acquisition:
    """Sites and `covariates` (`age`, `sex`) of `subjects`, in their order.

    Raises:
        UserError: a subject has no row in the table, or no site.
    """
    known = read_table(participants, ["subject", "site", *covariates]).set_index("subject")
    absent = [subject for subject in subjects if subject not in known.index]
    if absent:
        raise UserError(f"{participants}: subject {absent[0]!r} is missing; delete the file and run again.")
    people = known.loc[list(subjects), ["site", *covariates]]
    nowhere = people.index[people["site"].isna()]
    if len(nowhere):
        raise UserError(
            f"{participants}: `harmonise: combat` needs the site of every subject, {nowhere[0]} (and "
            f"{len(nowhere) - 1} more) have none; fill in the site, exclude them, or use `harmonise: none`."
        )
    numbers = {name: people[name].map(SEXES) if name == "sex" else people[name] for name in covariates}
    return Acquisition(
        people["site"].to_numpy(dtype=object),
        {name: np.asarray(values.astype("float64"), dtype=np.float64) for name, values in numbers.items()},
    )
