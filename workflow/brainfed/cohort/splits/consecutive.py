"""Institutions of consecutive subjects, and the rest at random (Xie et al. 2021, one data set over many clients)."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.runtime.streams import Streams


def consecutive_institutions(subjects: pd.DataFrame, settings: SplitSettings, streams: Streams) -> NDArray[np.object_]:
    """(n,) name of each subject's institution, `institution-1` ...; the same in all repeats.

    Of N labelled subjects every institution gets the next min(`block`, N // `count`) in the order of their ids, and
    each of the others goes to an institution at random. Twins follow the first labelled one. Subjects without a label
    go to institutions at random and do not move the others.

    Args:
        subjects: subject, group (of twins), diagnosis (-1 without one), in ascending order of subject.
        settings: `count` and `block`.
        streams: random streams; their repeat has no effect.
    """
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    known = subjects.loc[labelled, "group"].reset_index(drop=True).drop_duplicates()
    others = subjects.loc[~labelled & ~subjects["group"].isin(known).to_numpy(), "group"].drop_duplicates()
    fixed, held = Streams(streams.seed), min(settings.block, int(labelled.sum()) // settings.count)
    run = known.index.to_numpy() // held
    inside = run < settings.count
    place = fixed.numpy("institutions", "consecutive").integers(settings.count, size=len(known))
    place[inside] = run[inside]
    spread = fixed.numpy("institutions", "consecutive", "unlabelled").integers(settings.count, size=len(others))
    drawn = zip([*known, *others], [*place.tolist(), *spread.tolist()], strict=True)
    names = {group: f"institution-{code + 1}" for group, code in drawn}
    return subjects["group"].map(names).to_numpy(dtype=object)
