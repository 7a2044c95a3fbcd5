"""FedNI's second phase: FedGCN on graphs with generated nodes (FedNI Sec. III-C.2)."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.methods.fedni import train as fedni
from brainfed.methods.fedni.declaration import FEDNI
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.runtime.jobs import Run
from brainfed.samples import with_generated
from brainfed.samples._inputs import GENERATED
from reference.loop_federation import train_by_loops
from support.samples.fused_inputs import with_fused, without_nodes
from support.samples.method_inputs import method_inputs

SHORT = {"rounds": 3, "local_epochs": 4, "learning_rate": 0.01}
both_protocols = pytest.mark.parametrize("protocol", ["transductive", "inductive"])


@both_protocols
@pytest.mark.parametrize("skip", ["none", "linear"])
def test_without_generated_nodes_it_is_fedgcn_to_the_bit(protocol, skip):
    plain = method_inputs(60, 24, protocol=protocol)
    expected = train_fedgcn(plain, FedGCNSettings(**SHORT, skip=skip), Run())
    found = fedni.train(without_nodes(with_fused(plain)), FedGCNSettings(**SHORT, skip=skip), Run())
    assert found.scores[..., 1].tobytes() == expected.scores[..., 1].tobytes()
    assert found.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()
    assert found.training_loss.tobytes() == expected.training_loss.tobytes()
    assert found.counts == expected.counts and found.crossings == expected.crossings


@both_protocols
def test_noise_in_place_of_generated_features_changes_the_scores_of_real_subjects(protocol):
    inputs = with_fused(method_inputs(60, 24, protocol=protocol))
    rng = np.random.default_rng(0)
    noisy = tuple(
        replace(fused, features=rng.standard_normal(fused.features.shape).astype(np.float32)) for fused in inputs.fused
    )
    found = [
        fedni.train(case, FedGCNSettings(**SHORT), Run()).scores[..., 1]
        for case in (inputs, replace(inputs, fused=noisy))
    ]
    tested = np.isfinite(found[0])
    assert (found[0][tested] != found[1][tested]).mean() > 0.9


@both_protocols
def test_stacked_training_on_fused_graphs_equals_a_plain_loop(protocol):
    inputs = with_fused(method_inputs(subjects=61, dimensions=12, folds=4, effect=0.5, seed=3, protocol=protocol))
    settings = FedGCNSettings(**SHORT, hidden=(8, 4))
    found = fedni.train(inputs, settings, Run(precision="float64")).scores[..., 1]
    expected = train_by_loops(with_generated(inputs), hidden=(8, 4), graph=True, standardise=True, noise=0.01, **SHORT)
    np.testing.assert_allclose(found, expected[:, :61], atol=1e-8, rtol=0, equal_nan=True)


def test_generated_nodes_are_scaled_by_the_training_subjects_numbers():
    inputs = with_fused(method_inputs(60, 24))
    extended = with_generated(inputs)
    assert (extended.labels[:, 60:] == -1).all() and (extended.fold[60:] == GENERATED).all()
    assert not extended.training(0)[60:].any() and not extended.tested(0)[60:].any()


def test_folds_with_fewer_generated_nodes_leave_places_without_edges():
    inputs = with_fused(method_inputs(60, 24, protocol="inductive"))
    first, *others = inputs.fused
    fewer = without_nodes(replace(inputs, fused=(first,))).fused[0]
    extended = with_generated(replace(inputs, fused=(fewer, *others)))
    places = len(extended.subjects) - 60
    assert places == sum(
        max(int((fused.institution == name).sum()) for fused in others) for name in range(len(inputs.institutions))
    )
    assert extended.graphs[0].row.max() < 60 and not extended.features[0][60:].any()
    for graph, fused in zip(extended.graphs[1:], others, strict=True):
        assert len(graph.row) == len(fused.row)
        assert sorted(graph.weight.tolist()) == sorted(fused.weight.tolist())
    for name in range(len(inputs.institutions)):
        inside = extended.institution[extended.graphs[1].row] == name
        assert (extended.institution[extended.graphs[1].column[inside]] == name).all()


def test_it_declares_its_generator():
    assert FEDNI.options["inpainting"].name == "fedni"
    assert all("subjects" not in axes for axes in FEDNI.options["inpainting"].shared_tensors.values())
