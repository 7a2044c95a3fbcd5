"""The simulation is rigged for no method: without effect every method is at chance, with one it is found."""

from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from brainfed.cohort.settings import CohortSettings, SimulateSettings, SplitSettings
from brainfed.cohort.settings._sources import SimulatedSite
from brainfed.cohort.sources import simulate_subjects
from brainfed.cohort.sources._simulated_scans import region_signals, simulate_atlas, simulate_connectome
from brainfed.cohort.splits import split
from brainfed.configuration.stages.registry import stage_settings
from brainfed.evaluation import auc
from brainfed.graphs import Graph, GraphSettings, build_graph
from brainfed.inpainting import FusedGraph, FusingSettings, InpaintingInputs, fuse
from brainfed.methods import METHODS, Inpainter, Method, inpainter_of
from brainfed.methods.fglbc.declaration import RegionGNNSettings, STGCNSettings
from brainfed.methods.gahfl.declaration import CropSettings
from brainfed.methods.gcfl.declaration import GINSettings
from brainfed.methods.private_linear.declaration import PrivateNetworkSettings, PrivateRidgeSettings
from brainfed.runtime import ArrayFile, Streams, resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import GraphInputs, MethodInputs, Phenotypes, SeriesInputs
from support.samples.graph_cohort import connectome_inputs
from support.samples.quick_methods import fields_of
from support.samples.series_cohort import inputs_for as inputs_for_method
from support.samples.series_cohort import of_series

pytestmark = pytest.mark.full(
    "Each method learns twelve simulated cohorts; suites on leakage permute labels for one an engine."
)

COHORTS = 12
SITES = {"a": SimulatedSite(volumes=80, tr=2.0, noise=0.5), "b": SimulatedSite(volumes=120, tr=1.5, noise=1.0)}
MORE = {
    GINSettings: ({"learning_rate": 0.01}, 30, 5),
    RegionGNNSettings: ({"window": 80, "hidden": 8, "layers": 2, "batch": 8, "learning_rate": 0.1}, 20, 2),
    STGCNSettings: (
        {"window": 40, "channels": 8, "kernel": 5, "strides": (4, 1), "batch": 8, "learning_rate": 0.1},
        8,
        2,
    ),
    CropSettings: ({"length": 40, "batch": 256, "local_epochs": 3, "global_epochs": 3, "learning_rate": 0.01}, 2, 2),
    PrivateRidgeSettings: ({}, 40, 20),
    PrivateNetworkSettings: ({"hidden": (64, 32)}, 20, 5),
}
"""Kinds of settings whose quick ones are too few steps to find an effect: further ones, and steps with an effect and
without, where there is nothing to learn, in twelve cohorts."""
RECURRENT = {name for name, method in METHODS.items() if issubclass(method.settings, CropSettings)}
SEE_THE_BRAIN = [name for name, method in METHODS.items() if method.needs and name not in RECURRENT]
SHORT_INPAINTING = {"rounds": 2, "local_epochs": 3}


@cache
def simulated(seed: int, effect: float) -> tuple[pd.DataFrame, np.ndarray, list[np.ndarray]]:
    """The 80 participants of a cohort, the correlations (80, 190) of their signals, and the signals (T, 20)."""
    simulate = SimulateSettings(
        subjects=80,
        seed=seed,
        regions=20,
        grid=(8, 9, 8),
        voxel_size=18.0,
        effect=effect,
        effect_connections=40,
        age_connections=40,
        sex_connections=40,
        sites=SITES,
    )
    streams = Streams(seed)
    connectome = simulate_connectome(simulate, simulate_atlas(simulate, streams), streams)
    people = simulate_subjects(CohortSettings(source="simulate", simulate=simulate), streams)
    signals = [region_signals(simulate, connectome, person, streams) for person in people.values()]
    upper = np.triu_indices(20, 1)
    features = np.array([np.corrcoef(signal, rowvar=False)[upper] for signal in signals], dtype=np.float32)
    table = pd.DataFrame([vars(person) for person in people.values()]).rename(columns={"participant_id": "subject"})
    return table.assign(diagnosis=(table["diagnosis"] == "patient").astype("Int8")), features, signals


@cache
def drawn_split(seed: int, effect: float) -> pd.DataFrame:
    """Two institutions and four folds of a cohort."""
    people, _, _ = simulated(seed, effect)
    included = pd.DataFrame({"subject": people["subject"], "included": True, "twin_group": people["subject"]})
    return split(included, people, SplitSettings(count=2, folds=4), Streams(seed))


def inputs_for(name: str, seed: int, effect: float) -> tuple[MethodInputs | GraphInputs | SeriesInputs, np.ndarray]:
    """What the method gets, two institutions and four folds, and the true labels."""
    people, features, signals = simulated(seed, effect)
    streams, drawn = Streams(seed), drawn_split(seed, effect)
    institution = (drawn["institution"] == "institution-2").to_numpy(np.int64)
    fold, diagnosis = drawn["fold"].to_numpy(np.int64), people["diagnosis"].to_numpy(np.int64)
    site, sex = (people["site"] == "b").to_numpy(np.int64), (people["sex"] == "male").to_numpy(np.int64)
    age = people["age"].to_numpy(np.float64)
    graphs = []
    if "graph" in stage_settings(METHODS[name]):
        settings = GraphSettings(k=5, scope="global" if METHODS[name].topology == "central" else "local")
        graph = build_graph(features, institution, site=site, sex=sex, age=age, settings=settings, streams=streams)
        graphs.append(Graph(graph.row, graph.column, graph.weight, len(people)))
    inputs = MethodInputs(
        subjects=tuple(people["subject"]),
        institutions=("institution-1", "institution-2"),
        institution=institution,
        fold=fold,
        labels=np.where(np.arange(4)[:, None] == fold, -1, diagnosis),
        features=(features,),
        graphs=tuple(graphs),
        phenotypes=Phenotypes(site, sex, age, people["mean_fd"].to_numpy(np.float64)),
        streams=streams,
    )
    if (inpainter := inpainter_of(METHODS[name])) is not None:
        fused = inpainted(inpainter, inputs, settings)
        assert len(fused.parent) > 0
        inputs = replace(inputs, graphs=(), fused=(fused,))
    if METHODS[name].needs == ("connectomes",):
        return connectome_inputs(inputs), diagnosis
    if "series" in METHODS[name].needs:
        return inputs_for_method(METHODS[name], of_series(inputs, signals)), diagnosis
    return inputs, diagnosis


def inpainted(inpainter: Inpainter, inputs: MethodInputs, graph_settings: GraphSettings) -> FusedGraph:
    """The graph completed by a generator that was trained on the cohort, for a few epochs."""
    people, everybody = inputs.phenotypes, np.ones(len(inputs.subjects), dtype=bool)
    known = InpaintingInputs(
        subjects=inputs.subjects,
        institutions=inputs.institutions,
        institution=inputs.institution,
        features=inputs.features[0],
        graph=inputs.graphs[0],
        graph_settings=graph_settings,
        site=people.site,
        sex=people.sex,
        age=people.age,
        fitted=everybody,
        part="all",
        streams=inputs.streams,
    )
    has = {field.name for field in fields(inpainter.settings)}
    settings = inpainter.settings(**{name: value for name, value in SHORT_INPAINTING.items() if name in has})
    trained = resolve(inpainter.train)(known, settings, Run())
    generator = resolve(inpainter.load)(known, settings, ArrayFile(trained.arrays, {}), Run())
    most = getattr(settings, inpainter.max_generated) if inpainter.max_generated else graph_settings.k
    return fuse(known, generator, FusingSettings(), most)


def settings_of(method: Method, effect: float) -> Any:
    """Quick ones, without privacy, with the steps of their kind."""
    given = dict(method.quick)
    for kind, (further, many, few) in MORE.items():
        if issubclass(method.settings, kind):
            given |= dict.fromkeys(("rounds", "epochs"), many if effect else few) | further
    given |= next((own for own in method.variants.values() if own.get("privacy") == "none"), {})
    return method.settings(**{name: value for name, value in given.items() if name in fields_of(method)})


def aucs(name: str, effect: float, cohorts: int) -> np.ndarray:
    """(cohorts,) AUC of each cohort, the mean over folds and institutions.

    Inside institutions: folds are stratified in each, so that an institution's share of patients among
    its training subjects predicts that of its test subjects (the baseline `majority` shows how well).
    """
    method = METHODS[name]
    train, settings = resolve(method.entry), settings_of(method, effect)
    found = []
    for seed in range(cohorts):
        inputs, diagnosis = inputs_for(name, seed, effect)
        scores = train(inputs, settings, Run()).scores[..., 1]
        cells = [
            (fold, inputs.tested(fold) & (inputs.institution == institution))
            for fold in range(4)
            for institution in range(2)
        ]
        found.append(np.mean([auc(diagnosis[cell], scores[fold, cell]) for fold, cell in cells]))
    return np.array(found)


@pytest.mark.parametrize("name", list(METHODS))
def test_without_effect_every_method_is_at_chance(name):
    """The interval over cohorts holds 0.5; together the intervals of all methods hold it with 95 %."""
    found = aucs(name, 0.0, COHORTS)
    level = 1 - 0.05 / len(METHODS) / 2
    margin = student.ppf(level, COHORTS - 1) * found.std(ddof=1) / np.sqrt(COHORTS)
    assert found.mean() - margin <= 0.5 <= found.mean() + margin


@pytest.mark.parametrize("name", list(SEE_THE_BRAIN))
def test_a_large_effect_is_found_by_every_method_that_sees_the_brain(name):
    """Networks on region series see correlations through random windows alone, and take few steps here.

    Recurrent networks would need far more of them to find correlations; `test_gahfl` has an effect on means.
    """
    effect, cohorts = (0.8, 2) if "series" in METHODS[name].needs else (0.4, 4)
    assert aucs(name, effect, cohorts).mean() > 0.7
