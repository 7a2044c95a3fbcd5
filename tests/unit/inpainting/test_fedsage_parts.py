"""The parts of FedSage+'s generator: losses, layers, the impaired graph, wide layers by blocks, nodes, what crosses."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from brainfed.federation import WeightNoise
from brainfed.graphs import Graph
from brainfed.inpainting import (
    RAW_TENSORS,
    SUMMED_TENSORS,
    FedSageSettings,
    FusingSettings,
    InpaintingSettings,
    fuse,
    scaling_of,
)
from brainfed.inpainting.fedsage import Draws, owners_of
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.inpainting.fedsage._local import (
    FEW_NODES,
    Targets,
    WideOutput,
    count_loss,
    hidden_nodes,
    nearest_missing,
    row_normalised,
    scaled_members,
)
from brainfed.methods.fedsage.declaration import FEDSAGE
from brainfed.models import GeneratorShape, MissingNeighbourGenerator
from brainfed.runtime.jobs import Run
from reference.fedsage import greedy_feature_loss, hidden_neighbours, smooth_l1
from support.samples.fedsage_inputs import CPU, DOUBLE, QUICK, cohort, loaded, widened


def test_the_count_loss_by_hand():
    # |0.5 - 1| = 0.5 -> 0.125; |3 - 1| = 2 -> 1.5; exact -> 0.
    assert float(count_loss(torch.tensor([0.5, 3.0, 2.0]), torch.tensor([1.0, 1.0, 2.0]))) == pytest.approx(1.625 / 3)


@given(st.lists(st.tuples(st.floats(-5, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_the_count_loss_is_that_of_the_plain_loop(pairs):
    predicted, true = (torch.tensor(side, dtype=torch.float64) for side in zip(*pairs, strict=True))
    torch.testing.assert_close(count_loss(predicted, true), torch.as_tensor(smooth_l1(predicted, true)))


def test_the_layers_are_those_of_the_paper():
    generator = MissingNeighbourGenerator(GeneratorShape(features=70, targets=5, fgen_width=256))
    shapes = {name: tuple(value.shape) for name, value in generator.named_parameters() if name.endswith("weight")}
    assert shapes == {
        "encoder.first.weight": (32, 70),
        "encoder.second.weight": (128, 32),
        "dgen.output.weight": (1, 128),
        "fgen.first.weight": (256, 128),
        "fgen.second.weight": (256, 256),
        "fgen.output.weight": (5 * 70, 256),
    }


def test_dropout_keeps_the_mean_and_zeroes_its_share():
    draws = Draws(cohort().streams, "all", 0.5)
    keep = draws.keep(torch.zeros(200, 3, dtype=torch.float64), 50, "here", 1)
    assert set(keep.unique().tolist()) == {0.0, 2.0}
    assert float(keep.mean()) == pytest.approx(1, abs=0.05)
    assert torch.equal(keep, draws.keep(torch.zeros(200, 3, dtype=torch.float64), 50, "here", 1))
    assert not torch.equal(keep, draws.keep(torch.zeros(200, 3, dtype=torch.float64), 50, "here", 2))


def layer_of(weight, bias):
    layer = torch.nn.Linear(*reversed(weight.shape)).double()
    layer.weight.data, layer.bias.data = torch.as_tensor(weight), torch.as_tensor(bias)
    return layer


def test_the_feature_loss_by_hand():
    missing = torch.tensor([[0.0, 0.0], [0.9, 0.9], [0.8, 0.0]]).double()
    neighbours = torch.tensor([[True, True, False], [False, True, False]])
    generated = torch.tensor([[[0.7, 0.0], [0.7, 0.9]], [[0.0, 0.0], [0.9, 0.0]]]).double()
    squares = missing.square().sum(dim=1)
    assert nearest_missing(generated @ missing.T, squares, neighbours).tolist() == [[0, 1], [1, 1]]
    # Node 0 may not take the third, which is nearest: (0.7, 0) -> (0, 0): 0.49; (0.7, 0.9) -> (0.9, 0.9): 0.04.
    # Node 1 has (0.9, 0.9) alone: 1.62 and 0.81. Two visible nodes miss none; 2 slots, 2 features.
    says = layer_of(generated.atanh().view(2, 4).T.contiguous(), torch.zeros(4).double())
    loss, _ = WideOutput().add_gradients(says, torch.eye(2).double(), [Targets(missing, neighbours, visible=4)])
    assert float(loss) == pytest.approx((0.49 + 0.04 + 1.62 + 0.81) / (4 * 2 * 2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_missing_neighbours_loss_and_gradient_are_zero(dtype):
    layer = layer_of(np.ones((12, 5)), np.ones(12)).to(dtype)
    empty = Targets(torch.zeros(0, 4, dtype=dtype), torch.zeros(0, 0, dtype=torch.bool), visible=7)
    loss, back = WideOutput().add_gradients(layer, torch.zeros(0, 5, dtype=dtype), [empty])
    assert float(loss) == 0 and back.shape == (0, 5)
    assert not layer.weight.grad.any() and not layer.bias.grad.any()


@hypothesis_settings(deadline=None)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 4),
    st.integers(1, 7),
    st.integers(1, 9),
)
@example(seed=0, nodes=FEW_NODES + 1, hidden=3, slots=2, features=7, block=2)
def test_loss_and_gradients_are_those_of_autograd_over_the_plain_loop(seed, nodes, hidden, slots, features, block):
    random = np.random.default_rng(seed)
    wide = WideOutput(block)
    fast, slow = (
        layer_of(random.standard_normal((slots * features, 3)), random.standard_normal(slots * features))
        for random in (np.random.default_rng(seed), np.random.default_rng(seed))
    )
    for _ in range(2):  # the second time the gradient's memory holds the first's numbers
        for layer in (fast, slow):
            layer.zero_grad()
        for owners in (2, 1):  # two at once, then a third: all add up
            read = [
                torch.tensor(random.standard_normal((nodes + more, 3)), requires_grad=True) for more in range(owners)
            ]
            targets, expected = [], []
            for own in read:
                neighbours = random.random((len(own), hidden)) < 0.5
                neighbours[np.arange(len(own)), random.integers(0, hidden, len(own))] = True
                missing = torch.from_numpy(random.uniform(-1, 1, (hidden, features)))
                truths = [[missing[index] for index in np.flatnonzero(row)] for row in neighbours]
                vectors = slow(own).tanh().view(len(own), slots, features)
                expected.append(greedy_feature_loss(vectors, truths, len(own) + 2))
                targets.append(Targets(missing, torch.from_numpy(neighbours), len(own) + 2))
            torch.stack(expected).sum().backward()
            found, back = wide.add_gradients(fast, torch.cat(read).detach(), targets)
            torch.testing.assert_close(found, torch.stack(expected).detach(), atol=1e-12, rtol=1e-9)
            torch.testing.assert_close(back, torch.cat([own.grad for own in read]), atol=1e-12, rtol=1e-9)
        torch.testing.assert_close(fast.weight.grad, slow.weight.grad, atol=1e-12, rtol=1e-9)
        torch.testing.assert_close(fast.bias.grad, slow.bias.grad, atol=1e-12, rtol=1e-9)


def test_a_tenth_of_each_institution_is_hidden_at_random():
    inputs = cohort(90)
    for institution in range(3):
        hidden = hidden_nodes(inputs, institution, 0.10)
        assert len(hidden) == 3
        assert set(hidden) <= set(inputs.members(institution))
        assert hidden.tolist() == hidden_nodes(inputs, institution, 0.10).tolist()
        assert hidden.tolist() != hidden_nodes(replace(inputs, part="fold-0"), institution, 0.10).tolist()


def test_one_node_stays_visible():
    assert len(hidden_nodes(cohort(), 0, 1.0)) == 14


def test_the_impaired_graph_is_induced_on_the_visible_nodes_and_rows_sum_to_one():
    inputs = cohort()
    for owner in owners_of(inputs, QUICK, CPU, torch.float64):
        hidden = hidden_nodes(inputs, owner.institution, 0.2)
        visible = [node for node in inputs.members(owner.institution) if node not in hidden]
        dense = np.zeros((45, 45))
        dense[inputs.graph.row, inputs.graph.column] = inputs.graph.weight
        block = dense[np.ix_(visible, visible)]
        expected = torch.from_numpy(block / block.sum(axis=1, keepdims=True))
        torch.testing.assert_close(owner.propagation, expected)
        torch.testing.assert_close(owner.propagated, expected @ torch.from_numpy(inputs.features[visible]).double())


def test_counts_and_targets_are_the_hidden_neighbours():
    inputs = cohort(seed=1)
    for owner in owners_of(inputs, QUICK, CPU, torch.float64):
        hidden = hidden_nodes(inputs, owner.institution, 0.2)
        visible = [node for node in inputs.members(owner.institution) if node not in hidden]
        missed = [hidden_neighbours(inputs.graph, node, hidden) for node in visible]
        assert owner.counts.tolist() == [len(found) for found in missed]
        assert owner.targeted.tolist() == [index for index, found in enumerate(missed) if found]
        for index, row in zip(owner.targeted.tolist(), owner.neighbours, strict=True):
            assert hidden[row.numpy()].tolist() == missed[index][: QUICK.targets]
        torch.testing.assert_close(owner.missing, torch.from_numpy(inputs.features[hidden]).double())


def test_all_hidden_neighbours_are_counted_and_a_random_choice_are_targets():
    hub, leaves = 0, [3, 6, 9, 12]
    edges = sorted([(hub, leaf) for leaf in leaves] + [(leaf, hub) for leaf in leaves] + [(hub, hub)])
    row, column = (np.array(ends) for ends in zip(*edges, strict=True))
    base = cohort()
    base = replace(
        base,
        graph=Graph(row, column, np.ones(len(row), dtype=np.float32), 45),
        fitted=np.isin(np.arange(45), [hub, *leaves]),
    )
    settings = replace(QUICK, hidden_fraction=0.8, targets=2)
    streams = (replace(base.streams, seed=seed) for seed in range(50))
    chosen = set()
    for inputs in (replace(base, streams=drawn) for drawn in streams):
        if hub not in hidden_nodes(inputs, 0, 0.8):
            (owner,) = owners_of(inputs, settings, CPU, torch.float64)
            assert owner.counts.tolist() == [4]
            assert owner.neighbours.sum().item() == 2
            chosen.add(tuple(owner.neighbours[0].tolist()))
    assert len(chosen) > 1


def test_a_node_whose_row_is_empty_gets_a_row_of_zeros():
    graph = Graph(np.array([0, 1]), np.array([1, 0]), np.array([2, 3], dtype=np.float32), 3)
    assert row_normalised(graph, np.arange(3)).tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_measures_are_z_scored_by_the_institution_and_correlations_are_not():
    inputs = widened(cohort(), 40)
    members, scaling = inputs.members(1), scaling_of(inputs, 1)
    own = inputs.features[members].astype(float)
    np.testing.assert_allclose(scaling.centre, own.mean(axis=0))
    np.testing.assert_allclose(scaling.unit, 5 * own.std(axis=0))
    np.testing.assert_allclose(scaling.undo(scaled_members(inputs, 1)), own, rtol=1e-5, atol=1e-5)
    assert scaled_members(cohort(), 1).tobytes() == cohort().features[members].tobytes()


def test_counts_are_between_0_and_the_number_of_foreign_subjects():
    inputs = cohort()
    trained = fedsage.train(inputs, QUICK, Run())
    arrays = {**trained.arrays, "0/dgen.output.bias": np.array([50.0], dtype=np.float32)}
    arrays["1/dgen.output.bias"] = np.array([-50.0], dtype=np.float32)
    counts = loaded(inputs, replace(trained, arrays=arrays)).counts()
    assert set(counts[inputs.institution == 0]) == {30.0}
    assert set(counts[inputs.institution == 1]) == {0.0}
    assert ((counts >= 0) & (counts <= 30)).all()


def test_equal_parents_take_their_output_slots_in_order():
    inputs = cohort()
    generator = loaded(inputs, fedsage.train(inputs, QUICK, Run()))
    whole = generator.draw(np.array([4, 4, 4, 7, 7, 7]))
    assert whole.features.shape == (6, 6)
    assert (np.abs(whole.features) < 1).all()
    assert len({row.tobytes() for row in whole.features}) == 6
    assert whole.sex.tolist() == [-1] * 6
    assert np.isnan(whole.age).all()
    some = generator.draw(np.array([2, 7, 7]))
    np.testing.assert_allclose(some.features[1:], whole.features[3:5], atol=1e-6)


def test_generated_features_return_to_the_scale_of_the_cohort():
    wide = widened(cohort(), 1000)
    drawn = loaded(wide, fedsage.train(wide, QUICK, Run())).draw(np.repeat(np.arange(45), 3)).features
    assert np.abs(drawn[:, 0]).max() > 10
    scaling = scaling_of(wide, 0)
    assert (np.abs(drawn[wide.institution.repeat(3) == 0] - scaling.centre) <= scaling.unit * (1 + 1e-6)).all()


def test_more_neighbours_than_slots_are_refused():
    inputs = cohort()
    generator = loaded(inputs, fedsage.train(inputs, QUICK, Run()))
    with pytest.raises(ValueError, match="at most 3 generated neighbours"):
        generator.draw(np.array([4, 4, 4, 4]))


def test_test_subjects_change_nothing_and_get_no_nodes():
    fitted = np.arange(45) % 5 != 0
    inputs = cohort(fitted=fitted, part="fold-0")
    features = inputs.features.copy()
    features[~fitted] = 0.5
    changed = replace(inputs, features=features)
    before, after = fedsage.train(inputs, QUICK, Run()), fedsage.train(changed, QUICK, Run())
    assert all(before.arrays[name].tobytes() == after.arrays[name].tobytes() for name in before.arrays)
    first, second = loaded(inputs, before), loaded(changed, after)
    assert first.counts().tobytes() == second.counts().tobytes()
    assert (first.counts()[~fitted] == 0).all()
    parents = np.flatnonzero(fitted)
    assert first.draw(parents).features.tobytes() == second.draw(parents).features.tobytes()
    with pytest.raises(ValueError, match="'sub-0005' was never learnt from"):
        first.draw(np.array([5]))


def test_an_institution_without_training_subjects_has_no_generator():
    inputs = cohort()
    inputs = replace(inputs, fitted=inputs.institution != 1)
    trained = fedsage.train(inputs, QUICK, Run())
    assert {name.split("/")[0] for name in trained.arrays} == {"0", "2"}
    assert set(trained.history["institution"]) == {"site-0", "site-2"}
    assert (loaded(inputs, trained).counts()[inputs.institution == 1] == 0).all()


def test_the_generated_nodes_join_the_graph():
    inputs = cohort()
    trained = fedsage.train(inputs, QUICK, Run())
    generator = loaded(inputs, trained)
    settings = FusingSettings(cap=None, rounding="truncate", edges="binary")
    fused = fuse(inputs, generator, settings, max_generated=QUICK.targets)
    expected = np.trunc(generator.counts()).astype(int)
    assert np.bincount(fused.parent, minlength=45).tolist() == expected.tolist()
    edges = set(zip(fused.row.tolist(), fused.column.tolist(), strict=True))
    for node, parent in enumerate(fused.parent.tolist(), start=45):
        assert {(node, parent), (parent, node)} <= edges


NOISY = (FedSageSettings, InpaintingSettings)


def test_the_noise_setting_equals_fednis():
    own, fednis = (next(field for field in fields(kind) if field.name == "noise") for kind in NOISY)
    assert (own.type, own.default, dict(own.metadata)) == (fednis.type, fednis.default, dict(fednis.metadata))


def test_without_noise_nothing_is_drawn_and_no_weight_is_copied(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(WeightNoise, "_copy", refuse)
    fedsage.train(cohort(), replace(QUICK, noise=0.0), Run())
    with pytest.raises(AssertionError):
        fedsage.train(cohort(), QUICK, Run())


def test_noise_is_on_copies_for_other_owners_and_not_on_the_owners_weights(monkeypatch):
    """Drawn once a round and owner; after a round without learning the owner's weights are those of before."""
    drawn = []

    def copy(noise, number, sender, message):
        drawn.append((sender, noise.folds, number))
        found = real(noise, number, sender, message)
        for name, weight in message.tensors.items():
            apart = (found.tensors[name] - weight).detach()
            assert apart.abs().min() > 0
            if apart.numel() > 1000:
                assert float(apart.std()) == pytest.approx(0.01, rel=0.1)
        return found

    real = WeightNoise._copy
    monkeypatch.setattr(WeightNoise, "_copy", copy)
    still = replace(QUICK, learning_rate=0.0)
    trained, start = (fedsage.train(cohort(), settings, Run()).arrays for settings in (still, replace(still, rounds=0)))
    assert {name: value.tobytes() for name, value in trained.items()} == {
        name: value.tobytes() for name, value in start.items()
    }
    assert drawn == [(institution, (-1,), number) for institution in range(3) for number in range(2)]


def test_by_default_only_parameters_and_summed_gradients_cross():
    trained = fedsage.train(cohort(), QUICK, Run())
    rows = {(row["name"], row["direction"]): row for row in trained.crossings}
    assert {name for name, _ in rows} == set(SUMMED_TENSORS)
    sizes = {"first.weight": 256 * 128, "first.bias": 256, "second.weight": 8 * 256, "second.bias": 8}
    sizes |= {"output.weight": 3 * 6 * 8, "output.bias": 3 * 6}
    for kind in ("fgen", "fgen-gradient"):
        for name, size in sizes.items():
            for direction in ("upload", "download"):
                row = rows[f"{kind}.{name}", direction]
                assert row["tensors"] == 2 * 3 * 2
                assert row["bytes"] == 2 * 3 * 2 * size * 4
                assert "subjects" not in str(row["axes"]).split(" x ")


def test_raw_exchange_gives_the_same_generators_and_sends_subjects():
    inputs = cohort()
    summed = fedsage.train(inputs, QUICK, DOUBLE)
    raw = fedsage.train(inputs, replace(QUICK, exchange="raw"), DOUBLE)
    assert raw.arrays.keys() == summed.arrays.keys()
    for name, value in raw.arrays.items():
        np.testing.assert_allclose(value, summed.arrays[name], atol=1e-12, rtol=0)
    rows = {(row["name"], row["direction"]): row for row in raw.crossings}
    assert {name for name, _ in rows} == set(RAW_TENSORS)
    assert all("subjects" in str(row["axes"]).split(" x ") for row in rows.values())
    missed = [len(owner.targeted) for owner in owners_of(inputs, QUICK, CPU, torch.float32)]
    assert rows["embedding", "upload"]["bytes"] == 2 * sum(missed) * 128 * 8
    assert rows["generated-gradient", "upload"]["bytes"] == 2 * 2 * sum(missed) * 3 * 6 * 8


def test_all_shared_tensors_are_declared():
    assert dict(FEDSAGE.shared_tensors) == {**SUMMED_TENSORS, **RAW_TENSORS}
    assert FEDSAGE.settings is FedSageSettings
