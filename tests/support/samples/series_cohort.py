"""Small cohorts of region series for the tests of methods: patients' regions follow one another more."""

from dataclasses import fields, replace

import numpy as np

from brainfed.samples import LabelledSubjects, PublicSeriesInputs, SeriesInputs
from support.samples.method_inputs import method_inputs

REGIONS = 5
WINDOW = 12
TIMES = (9, 31)
"""Time points: some series are shorter than a window, some take three to cover."""


def inputs_for(method, inputs):
    """The inputs (`SeriesInputs`) with a public set, if the method reads one."""
    return with_public(inputs) if "public" in method.needs else inputs


def series_inputs(subjects=60, effect=3.0, lengths=None, **changes):
    """The subjects, institutions and folds of `method_inputs`, a series each, of their own or of given lengths (n,)."""
    return with_series(method_inputs(subjects, 5 * REGIONS, effect=effect, **changes), lengths)


def with_series(held, lengths=None):
    """The same subjects; their first features are the shares of a slow common signal in their regions."""
    loadings = held.features[0][:, :REGIONS]
    random = np.random.default_rng(11)
    drawn = random.integers(*TIMES, len(loadings))
    lengths = drawn if lengths is None else lengths
    noise = random.standard_normal((len(loadings), max(lengths), REGIONS + 1))
    return of_series(
        held,
        [
            own[:length, :-1] + shares * own[:length, -1:].cumsum(axis=0) / 2
            for own, shares, length in zip(noise, loadings, lengths, strict=True)
        ],
    )


def of_series(held, series):
    """The same subjects with these series (T, R), z-scored."""
    scored = [(each - each.mean(axis=0)) / each.std(axis=0) for each in series]
    shared = {field.name: getattr(held, field.name) for field in fields(LabelledSubjects)}
    start = np.cumsum([0, *map(len, scored)])
    return SeriesInputs(**shared, start=start, series=np.concatenate(scored).astype(np.float32))


def exchanged(inputs, series):
    """The same subjects, those at some positions with other series (T, R), taken as they are."""
    every = [series.get(place, inputs.subject(place)) for place in range(len(inputs.subjects))]
    start = np.cumsum([0, *map(len, every)])
    return replace(inputs, start=start, series=np.concatenate(every).astype(np.float32))


def with_public(inputs, every=2):
    """The same subjects; in every fold each `every`-th training subject of an institution is public."""
    order = np.empty(len(inputs.subjects), dtype=np.int64)
    for place in range(len(inputs.institutions)):
        members = inputs.members(place)
        order[members] = np.arange(len(members))
    public = (inputs.labels >= 0) & (order % every == 0)
    held = {field.name: getattr(inputs, field.name) for field in fields(inputs)}
    return PublicSeriesInputs(**held, public=public)
