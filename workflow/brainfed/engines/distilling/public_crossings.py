"""What crosses before the first round: series and labels of public subjects, or of all for a pooled network."""

from collections.abc import Collection

import numpy as np

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import Content, record_downloads, record_pools, record_uploads
from brainfed.samples.labelled_subjects import IntArray
from brainfed.samples.series_inputs import SeriesInputs

SERIES = "public-series"
LABEL_BYTES = np.dtype(np.int8).itemsize


def record_exchange(inputs: SeriesInputs, public: IntArray, trains: Collection[int], ledger: Ledger) -> None:
    """Institutions upload their public subjects, and those that train download the series of the others' public ones.

    Args:
        inputs: subjects of the repeat.
        public: positions of the public subjects of the first fold.
        trains: institutions that send logits in the first fold.
        ledger: takes the rows.
    """
    owner = inputs.institution[public]
    for place, size in _sizes(inputs).items():
        own, others = public[owner == place], public[owner != place]
        if len(own):
            record_uploads(ledger, {place: size}, _content(inputs, own, "public-"))
        if len(others) and place in trains:
            series = _content(inputs, others, "public-")
            record_downloads(ledger, {place: size}, {SERIES: series[SERIES]})


def record_public_pool(inputs: SeriesInputs, public: IntArray, ledger: Ledger) -> None:
    """Every institution sends its public subjects of the first fold, at these positions, to a centre."""
    _record_pool(inputs, public, ledger, "public-")


def record_series_pool(inputs: SeriesInputs, ledger: Ledger) -> None:
    """Every institution sends all of its subjects to a centre."""
    _record_pool(inputs, np.arange(len(inputs.subjects)), ledger, "")


def _record_pool(inputs: SeriesInputs, chosen: IntArray, ledger: Ledger, prefix: str) -> None:
    sizes, owner = _sizes(inputs), inputs.institution[chosen]
    if len(sizes) > 1:
        held = {place: chosen[owner == place] for place in sizes}
        record_pools(ledger, sizes, {place: _content(inputs, own, prefix) for place, own in held.items() if len(own)})


def _sizes(inputs: SeriesInputs) -> dict[int, int]:
    return {place: len(inputs.members(place)) for place in range(len(inputs.institutions))}


def _content(inputs: SeriesInputs, subjects: IntArray, prefix: str) -> Content:
    series = (int(inputs.lengths[subjects].sum()), inputs.regions)
    return {
        f"{prefix}series": (series, inputs.series.itemsize),
        f"{prefix}labels": ((len(subjects),), LABEL_BYTES),
    }
