"""Institutions that are apart find what a simulation finds: the same scores, and the same ledger."""

from dataclasses import dataclass, replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from brainfed.federation import TOGETHER
from brainfed.imaging import Covariances, tangent_ledger, tangent_of_all, tangent_of_fold
from brainfed.inpainting import FusingSettings, InpaintingSettings, fuse
from brainfed.inpainting.fedni import drawing
from brainfed.inpainting.fedni import training as generator_training
from brainfed.methods import METHODS
from brainfed.methods.fedni.train import train as train_fedni
from brainfed.methods.fglbc.declaration import QUICK_STGCN, FGLBCSettings
from brainfed.methods.fglbc.train import train_fglbc
from brainfed.methods.gcfl.declaration import GCFLSettings
from brainfed.methods.gcfl.train import train_gcfl
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.runtime import resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import Phenotypes
from brainfed.sites import Packet
from brainfed.sites._packet import OPEN, TOTAL
from support.samples.graph_cohort import graph_inputs
from support.samples.inpainting_inputs import inpainting_inputs
from support.samples.method_inputs import method_inputs
from support.samples.series_cohort import series_inputs
from support.sites.apart_sites import only_graphs, only_nodes, only_series, trained_apart

TOLERANCE = 1e-6
CLUSTERS = {"rounds": 5, "first_cut": 2, "eps1": 10.0, "eps2": 0.0}
ONE_SETTING = pytest.mark.full("Another setting of a method that is tried at every change.")
NODES = {
    "fedmlp": {"rounds": 3},
    "fedmlp, in batches": {"rounds": 3, "batch": 4, "weighting": "subjects"},
    "fedmlp, some sites": {"rounds": 4, "fraction": 0.6},
    "fedgcn": {"rounds": 3},
    "ridge-federated": {},
    "ridge-federated, one penalty": {"alphas": (1.0,)},
    "fedtangent": {"zscore": False},
    "logistic-federated": {},
    "logistic-federated, raw": {"standardise": "none"},
}
GRAPHS = {
    "gcfl": GCFLSettings(**CLUSTERS),
    "gcfl+": GCFLSettings(**CLUSTERS, similarity="gradient_norms", sequence=2),
}
SERIES = {
    "fglbc": FGLBCSettings(**QUICK_STGCN, rounds=2),
    "fglbc, one graph": FGLBCSettings(**QUICK_STGCN, rounds=2, adjacency="cohort_mean", privacy="none"),
}


@dataclass(frozen=True)
class Compared:
    """A simulation, the same training at sites apart, and what they asked."""

    inputs: Any
    expected: Any
    found: dict[int, Any]
    asked: dict[int, list[Packet]]

    @classmethod
    def of(cls, train, inputs, only):
        found, threads = trained_apart(train, inputs, only)
        return cls(inputs, train(inputs), found, threads.asked)

    @property
    def difference(self):
        """Largest difference of a score or of a pattern; NaN stands in the same places."""
        found = [0.0]
        for code, outcome in self.found.items():
            expected = self.expected.scores[:, self.inputs.members(code)]
            assert (np.isnan(outcome.scores) == np.isnan(expected)).all()
            found.append(np.nanmax(np.abs(outcome.scores - expected)))
            if self.expected.patterns is not None:
                found.append(np.abs(outcome.patterns - self.expected.patterns).max())
        return max(found)

    @property
    def ledgers(self):
        """Of all sites added up, and of the simulation."""
        return added([outcome.crossings for outcome in self.found.values()]), added([self.expected.crossings])


def added(ledgers):
    """(name, direction) -> tensors and bytes of several ledgers."""
    sums = {}
    for row in (row for rows in ledgers for row in rows):
        held = sums.setdefault((row["name"], row["direction"]), np.zeros(2, dtype=np.int64))
        held += [row["tensors"], row["bytes"]]
    return {key: tuple(held.tolist()) for key, held in sums.items()}


def trained(name, held, run=None):
    method = METHODS[name.partition(",")[0]]
    return resolve(method.entry)(held, method.settings(**NODES[name]), run or Run())


@cache
def of_nodes(name, precision):
    run, inputs = Run(precision=precision), method_inputs(48, 30, folds=2)
    return Compared.of(lambda held: trained(name, held, run), inputs, only_nodes)


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize(
    "precision", ["float64", pytest.param("float32", marks=pytest.mark.full("The same sums of shorter numbers."))]
)
def test_methods_on_features_and_population_graphs(name, precision):
    compared = of_nodes(name, precision)
    assert compared.difference <= TOLERANCE
    assert compared.ledgers[0] == compared.ledgers[1]


@pytest.mark.parametrize("name", [pytest.param(name, marks=ONE_SETTING if "," in name else []) for name in NODES])
def test_a_site_is_left_out_in_every_fold(name):
    inputs = method_inputs(42, 14, institutions=4, split="leave-one-site-out")
    inputs.features[0][inputs.members(2), 5] = 1.0
    compared = Compared.of(lambda held: trained(name, held, Run(precision="float64")), inputs, only_nodes)
    assert compared.difference <= TOLERANCE
    assert compared.ledgers[0] == compared.ledgers[1]


def test_sums_of_the_folds_show_the_numbers_of_a_site_that_is_left_out():
    """The reason that a study which leaves sites out has no masks (`configuration.planning._plan`)."""
    inputs = method_inputs(62, 30, institutions=4, split="leave-one-site-out")
    _, threads = trained_apart(lambda held: trained("fedmlp", held), inputs, only_nodes)
    means = [
        next(each for each in asked if each.kind == TOTAL).tensors["feature-mean"] for asked in threads.asked.values()
    ]
    sums = np.sum(means, axis=0)
    for code in range(4):
        own = inputs.features[0][inputs.members(code)].mean(axis=0, dtype=np.float64)
        np.testing.assert_allclose(sums.sum(axis=0) / 3 - sums[code], own, atol=1e-9)


@pytest.mark.parametrize("name", GRAPHS)
def test_clusters_of_sites(name):
    compared = Compared.of(lambda held: train_gcfl(held, GRAPHS[name], Run()), graph_inputs(folds=3), only_graphs)
    assert compared.difference <= TOLERANCE
    assert compared.ledgers[0] == compared.ledgers[1]


@pytest.mark.parametrize("name", SERIES)
def test_private_training_on_series_spends_the_same(name):
    inputs = series_inputs(folds=3)
    compared = Compared.of(lambda held: train_fglbc(held, SERIES[name], Run()), inputs, only_series)
    assert compared.difference <= TOLERANCE
    assert compared.ledgers[0] == compared.ledgers[1]
    spent = [row for outcome in compared.found.values() for row in outcome.privacy]
    assert sorted(spent, key=lambda row: (row["institution"], row["fold"])) == list(compared.expected.privacy)


@pytest.mark.parametrize("name", SERIES)
def test_a_site_is_left_out_of_private_training(name):
    held = series_inputs(folds=3)
    truth = held.labels.max(axis=0)
    labels = np.where(held.institution == np.arange(3)[:, None], -1, truth)
    inputs = replace(held, fold=held.institution.copy(), labels=labels)
    compared = Compared.of(lambda held: train_fglbc(held, SERIES[name], Run()), inputs, only_series)
    assert compared.difference <= TOLERANCE
    assert compared.ledgers[0] == compared.ledgers[1]


def test_a_generator_its_nodes_and_the_classifier_on_them():
    """FedNI needs every step: federated generator, nodes drawn at home, fused graphs, federated classifier."""
    generated = inpainting_inputs(dimensions=30)
    held = method_inputs(60, 30, folds=3)
    people = {name: getattr(generated, name) for name in ("sex", "age")}
    known = Phenotypes(site=generated.institution, mean_fd=held.phenotypes.mean_fd, **people)
    inputs = replace(held, features=(generated.features,), graphs=(generated.graph,), phenotypes=known)

    def train(held):
        own = np.array([generated.subjects.index(subject) for subject in held.subjects])
        arrays = {name: getattr(generated, name)[own] for name in ("features", "site", "sex", "age", "fitted")}
        shared = {name: getattr(held, name) for name in ("subjects", "institutions", "institution", "link")}
        nodes = replace(generated, graph=held.graphs[0], **arrays, **shared)
        settings = InpaintingSettings(rounds=2, local_epochs=2)
        trained = generator_training.train(nodes, settings, Run())
        loaded = drawing.load(nodes, settings, SimpleNamespace(arrays=trained.arrays), Run())
        fused = fuse(nodes, loaded, FusingSettings(), 3)
        outcome = train_fedni(replace(held, fused=(fused,)), FedGCNSettings(rounds=2), Run())
        return replace(outcome, crossings=(*trained.crossings, *outcome.crossings))

    compared = Compared.of(train, inputs, only_nodes)
    assert compared.difference <= TOLERANCE
    assert compared.ledgers[0] == compared.ledgers[1]


@pytest.mark.parametrize("reference", ["all", "training"])
def test_tangent_features_at_a_reference_of_all_sites(reference):
    inputs = method_inputs(30, 5)
    drawn = np.random.default_rng(3).standard_normal((30, 40, 4))
    covariance = np.array([np.cov(each.T)[np.triu_indices(4)] for each in drawn], dtype=np.float32)
    everybody = Covariances(inputs.subjects, tuple("abcd"), covariance, covariance / 7)

    def features(held):
        own = np.array([inputs.subjects.index(subject) for subject in held.subjects])
        parts = {name: getattr(everybody, name)[own] for name in ("covariance", "logarithm")}
        found = replace(everybody, subjects=held.subjects, **parts)
        if reference == "all":
            return tangent_of_all(found, link=held.link)
        names = [held.institutions[code] for code in held.institution]
        return tangent_of_fold(found, names, held.training(0), "training", tangent_ledger(4), link=held.link)

    assert inputs.link is TOGETHER
    expected = features(inputs)
    found, _ = trained_apart(features, inputs, only_nodes)
    for code, rows in found.items():
        np.testing.assert_allclose(rows, expected[inputs.members(code)], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", NODES)
def test_all_that_leaves_a_site_is_declared(name):
    compared = of_nodes(name, "float64")
    declared = {row["name"] for row in compared.expected.crossings}
    sent = [each for asked in compared.asked.values() for each in asked if each.kind != OPEN]
    names = {name for each in sent for name in each.tensors}
    assert names and names <= declared


@pytest.mark.parametrize("name", [name for name in NODES if name.startswith(("ridge", "fedtangent", "logistic"))])
def test_the_sums_that_a_site_sends_once_have_the_size_that_its_ledger_records(name):
    """The ledger counts one fold; a site has trained in each. Numbers of subjects are recorded once a fold."""
    compared = of_nodes(name, "float64")
    for code, asked in compared.asked.items():
        rows = compared.found[code].crossings
        recorded = {row["name"]: row["bytes"] for row in rows if row["direction"] == "upload"}
        sent = dict.fromkeys(recorded, 0)
        for tensors in (each.tensors for each in asked if each.kind == TOTAL):
            for key, array in tensors.items():
                sent[key] += array.nbytes
        once = {key for key, total in sent.items() if total and key != "training-subjects"}
        assert once and {key: sent[key] for key in once} == {key: compared.inputs.folds * recorded[key] for key in once}
