"""Every shipped variant with the quick settings of its method's declaration, and those that the first tier takes."""

from functools import cache
from pathlib import Path

import pytest

from brainfed.digests import SourceTree
from brainfed.methods import METHODS, inpainter_of
from brainfed.runtime import resolve
from brainfed.runtime.jobs import Run
from support.imports import import_closure
from support.samples.fused_inputs import with_fused
from support.samples.graph_cohort import connectome_inputs
from support.samples.series_cohort import inputs_for, with_series

METHOD_OF = {variant: method for method in METHODS.values() for variant in method.variants}
WHY = "Another method of the same engine, topology and kind of inputs is tried at every change."
SOURCES = SourceTree(Path(__file__).parents[3] / "workflow")


def settings_of(variant, **further):
    """Quick settings, those of the variant, and further ones, of which each method takes those that it has."""
    method = METHOD_OF[variant]
    given = {**method.quick, **method.variants[variant], **further}
    return method.settings(**{name: value for name, value in given.items() if name in fields_of(method)})


def fields_of(method):
    return method.settings.__dataclass_fields__.keys()


def read_by(variant, inputs):
    """What the variant reads of a cohort: graphs or region series of the same subjects, institutions and folds."""
    method = METHOD_OF[variant]
    if "connectomes" in method.needs:
        return connectome_inputs(inputs)
    if "series" in method.needs:
        return inputs_for(method, with_series(inputs))
    return inputs if inpainter_of(method) is None else with_fused(inputs)


def train(variant, read, run=None, **further):
    return resolve(METHOD_OF[variant].entry)(read, settings_of(variant, **further), run or Run())


def outcome_of(variant, inputs, run=None, **further):
    return train(variant, read_by(variant, inputs), run, **further)


def topology_of(variant):
    topology = METHOD_OF[variant].topology
    return settings_of(variant).training if topology == "setting" else topology


def is_solved(variant):
    """Whether it is solved, or noised in every step, rather than trained until it has learnt something."""
    method = METHOD_OF[variant]
    settings = vars(settings_of(variant))
    trained = method.capabilities.without_patterns and all(
        settings[name] == each for name, each in method.capabilities.without_patterns.items()
    )
    return not method.needs or method.capabilities.own_features or (method.capabilities.patterns and not trained)


@cache
def engines_of(entry):
    """The kinds of trainings of `brainfed.engines` that a training side imports."""
    engines = SOURCES.folder / "brainfed" / "engines"
    imported = import_closure(entry, base=SOURCES)
    return frozenset(file.parent.name for file in imported if engines in file.parents and file.stem == "training")


def engine_and_topology(variant):
    method = METHOD_OF[variant]
    return engines_of(method.entry), method.needs, method.capabilities.patterns, topology_of(variant)


def method_and_topology(variant):
    return METHOD_OF[variant].name, topology_of(variant)


def first_of_each(variants, key):
    """The first variant of every value of the key, in order."""
    return list({key(variant): variant for variant in reversed(list(variants))}.values())[::-1]


def in_tiers(names):
    """All variants, or methods; each but the first of an engine, topology and kind of inputs guards a release alone."""
    first = first_of_each(names, lambda name: engine_and_topology(name if name in METHOD_OF else one_of(name)))
    return [pytest.param(name, marks=[] if name in first else pytest.mark.full(WHY)) for name in names]


def in_tiers_by_split(names):
    """The same with both splits; one a topology and kind of inputs is left a site out at every change."""
    first = first_of_each(names, lambda name: (METHOD_OF[name].needs, topology_of(name)))
    left_out = [pytest.param(name, marks=[] if name in first else pytest.mark.full(WHY)) for name in names]
    return [
        pytest.param(*each.values, split, marks=each.marks)
        for split, every in (("random", in_tiers(names)), ("leave-one-site-out", left_out))
        for each in every
    ]


def one_of(method):
    """The first variant of a method."""
    return next(iter(METHODS[method].variants))
