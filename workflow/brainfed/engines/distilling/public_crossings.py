"""What crosses before the first round: series and labels of public subjects, or of all for a pooled network."""

import numpy as np

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import Content, record_downloads, record_pools, record_uploads
from brainfed.samples.labelled_subjects import IntArray
from brainfed.samples.series_inputs import SeriesInputs

LABEL_BYTES = np.dtype(np.int8).itemsize


def record_exchange(inputs: SeriesInputs, public: IntArray, ledger: Ledger) -> None:
    """Every institution uploads its public subjects, and downloads those of the others, whose logits it sends later.

    Args:
        inputs: subjects of the repeat.
        public: positions of the public subjects of the first fold.
        ledger: takes the rows.
    """
    owner = inputs.institution[public]
    for place, size in _sizes(inputs).items():
        for record, chosen in ((record_uploads, public[owner == place]), (record_downloads, public[owner != place])):
            if len(chosen):
                record(ledger, {place: size}, _content(inputs, chosen, "public-"))


def record_public_pool(inputs: SeriesInputs, public: IntArray, ledger: Ledger) -> None:
    """Every institution sends its public subjects to a centre; arguments as of `record_exchange`."""
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
