"""Federated training of the generator: strategies, noise, resumption, and what it may see (FedNI Alg. 1 A, C)."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from brainfed.federation.strategies import FedAvg
from brainfed.graphs import build_graph
from brainfed.inpainting import DISCRIMINATOR_TENSORS, GENERATOR_TENSORS, SIZE_TENSORS, InpaintingSettings
from brainfed.inpainting.fedni import drawing
from brainfed.inpainting.fedni import training as fedni
from brainfed.inpainting.fedni._adversarial_step import LENGTHS, LOSSES, new_generator
from brainfed.inpainting.fedni._masking import draw_mask, institution_of, normalised
from brainfed.inpainting.fedni.drawing import count_scale, warn_of_sites
from brainfed.inpainting.fedni.training import InpaintingClients
from brainfed.runtime import ArrayFile, canonical_json
from brainfed.runtime.jobs import Run
from reference.inpainting_step import plain_gradients
from support.samples.inpainting_inputs import inpainting_inputs, mask_of_epoch

SHORT = {"rounds": 2, "local_epochs": 2}
STRATEGIES = ("generator", "both", "discriminator", "none")


def trained(inputs, run=None, **settings):
    return fedni.train(inputs, InpaintingSettings(**(SHORT | settings)), run or Run())


def loaded(inputs, result, **settings):
    return drawing.load(inputs, InpaintingSettings(**(SHORT | settings)), ArrayFile(result.arrays, {}), Run())


def test_one_round_of_three_epochs_equals_plain_modules_under_autograd():
    inputs = inpainting_inputs()
    settings = InpaintingSettings(rounds=1, local_epochs=3, noise=0.0, federated="none")
    run = Run(precision="float64")
    result = fedni.train(inputs, settings, run)
    plain = InpaintingClients(inputs, settings, run)
    for place in range(3):
        institution = institution_of(inputs, place, torch.device("cpu"), torch.float64)
        own, first_weight = plain.generators.modules[place], plain.discriminators.modules[place]
        optimisers = [
            torch.optim.Adam(module.parameters(), lr=settings.learning_rate) for module in (own, first_weight)
        ]
        for epoch in range(3):
            masked = mask_of_epoch(institution, epoch, "all", inputs.streams, settings)
            plain_gradients(own, first_weight, institution.nodes, masked, settings, 4)
            for optimiser in optimisers:
                optimiser.step()
        for name, weight in own.state_dict().items():
            if weight.is_floating_point():
                found = result.arrays[f"generator/{name}"][place]
                np.testing.assert_allclose(found, weight.numpy(), rtol=0, atol=1e-8, err_msg=name)


def federation(strategy, **settings):
    inputs = inpainting_inputs()
    chosen = InpaintingSettings(**(SHORT | {"federated": strategy, "noise": 0.0} | settings))
    held = InpaintingClients(inputs, chosen, Run())
    return inputs, held, held.fit(0, held.institutions)


def exchange(inputs, held, replies):
    server = FedAvg(held.institutions, held.start())
    server.aggregate(0, fedni.wire_of(held, inputs).up(0, replies))
    held.receive(server.broadcast(1))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_strategy_averages_only_the_networks_that_it_names(strategy):
    inputs, held, replies = federation(strategy)
    before = {
        (kind, name): stack.clone()
        for kind, stacks in (("generator", held.generators), ("discriminator", held.discriminators))
        for name, stack in (stacks.weights | stacks.buffers).items()
    }
    exchange(inputs, held, replies)
    for kind, stacks in (("generator", held.generators), ("discriminator", held.discriminators)):
        for name, stack in (stacks.weights | stacks.buffers).items():
            earlier = before[kind, name]
            if strategy in (kind, "both") and not name.endswith(("_u", "_v")):
                torch.testing.assert_close(stack, earlier.mean(dim=0, keepdim=True).expand_as(earlier))
            else:
                assert torch.equal(stack, earlier)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_tensors_that_the_strategy_declares_cross(strategy):
    result = trained(inpainting_inputs(), federated=strategy)
    names = {row["name"] for row in result.crossings}
    generators = set(GENERATOR_TENSORS) if strategy in ("generator", "both") else set()
    discriminators = set(DISCRIMINATOR_TENSORS) if strategy in ("discriminator", "both") else set()
    assert names == {*SIZE_TENSORS} | generators | discriminators
    assert all("subjects" not in row["axes"] for row in result.crossings)
    assert all(row["tensors"] == (3 if row["name"] in SIZE_TENSORS else 3 * 2) for row in result.crossings)


def test_noise_is_added_to_weights_and_not_to_running_moments():
    (inputs, plain, quiet), (_, noisy, loud) = federation("generator"), federation("generator", noise=0.1)
    exchange(inputs, plain, quiet)
    exchange(inputs, noisy, loud)
    for name, stack in plain.generators.weights.items():
        assert not torch.equal(stack, noisy.generators.weights[name])
    for name, stack in plain.generators.buffers.items():
        assert torch.equal(stack, noisy.generators.buffers[name])
    difference = noisy.generators.weights["feature_2.weight"][0] - plain.generators.weights["feature_2.weight"][0]
    assert float(difference.std()) == pytest.approx(0.1 / 3**0.5, rel=0.05)


def test_local_generators_are_one_an_institution():
    assert trained(inpainting_inputs(), federated="generator").arrays["generator/encoder_0.weight"].shape[0] == 1
    local = trained(inpainting_inputs(), federated="discriminator").arrays["generator/encoder_0.weight"]
    assert local.shape[0] == 3 and not np.array_equal(local[0], local[1])


def test_same_inputs_same_bytes():
    first, second = trained(inpainting_inputs()), trained(inpainting_inputs())
    for name, array in first.arrays.items():
        assert array.tobytes() == second.arrays[name].tobytes(), name
    assert first.history.equals(second.history)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_killed_training_resumes_to_the_same_bytes(resumed, strategy):
    inputs = inpainting_inputs()
    whole = trained(inputs, rounds=4, federated=strategy)

    again, seen = resumed(lambda run: trained(inputs, run, rounds=4, federated=strategy), 3)
    assert seen == [3, 4]
    for name, array in whole.arrays.items():
        assert array.tobytes() == again.arrays[name].tobytes(), name
    assert whole.history.equals(again.history)
    assert whole.counts == again.counts and whole.crossings == again.crossings


def test_history_has_a_row_for_each_institution_round_and_loss():
    history = trained(inpainting_inputs()).history
    assert len(history) == 3 * 2 * 9
    assert set(history["loss"]) == {*LOSSES, *LENGTHS, "hidden_fraction"}
    hidden = history.loc[history["loss"] == "hidden_fraction", "value"]
    assert hidden.between(0, 0.15).all()
    assert np.isfinite(history["value"]).all()


def test_training_lowers_the_reconstruction_loss():
    history = trained(inpainting_inputs(), rounds=15, local_epochs=5, learning_rate=3e-3).history
    losses = history[history["loss"] == "reconstruction"].groupby("round")["value"].mean()
    assert losses.iloc[-1] < 0.8 * losses.iloc[0]


@pytest.fixture(scope="module")
def cut_down():
    """A cohort whose graph was cut, a generator trained on it, and the numbers of cut edges."""
    inputs = inpainting_inputs(subjects=120, scope="global_cut")
    result = trained(inputs, rounds=10, local_epochs=10, noise=0.0, discriminator=False)
    graph = build_graph(
        inputs.features, inputs.institution, site=inputs.site, sex=inputs.sex, age=inputs.age,
        settings=inputs.graph_settings, streams=inputs.streams,
    )  # fmt: skip
    return inputs, result, np.bincount(graph.cut.row, minlength=120)


def test_on_held_out_masks_the_count_beats_every_multiple_of_the_visible_degree(cut_down):
    _, result, _ = cut_down
    found = result.held_out
    assert len(found) == 3
    assert np.mean([one["count_error"] for one in found]) < np.mean([one["degree_error"] for one in found])


def test_the_predicted_number_of_missing_neighbours_is_on_the_scale_of_the_cut(cut_down):
    inputs, result, true = cut_down
    calibrated = loaded(inputs, result).counts()
    assert 2 / 3 < calibrated.sum() / true.sum() < 3 / 2


def test_as_printed_the_number_is_on_the_scale_of_a_mask(cut_down):
    inputs, _, true = cut_down
    result = trained(inputs, count="printed", noise=0.0)
    printed = loaded(inputs, result, count="printed").counts()
    assert printed.sum() < 0.25 * true.sum()


def test_the_count_is_scaled_by_the_odds_ratio_of_cut_and_masks(cut_down):
    inputs, _, _ = cut_down
    settings = InpaintingSettings()
    institution = institution_of(inputs, 0, torch.device("cpu"), torch.float32)
    hidden, visible = 0, 0
    for number in range(32):
        random = inputs.streams.numpy("count-scale", "all", 0, number)
        mask = draw_mask(institution.edges, int(random.integers(40)), random, settings)
        joined = institution.edges.toarray() > 0
        shown = np.setdiff1d(np.arange(40), mask.hidden)
        hidden += joined[np.ix_(shown, mask.hidden)].sum()
        visible += joined[np.ix_(shown, shown)].sum()
    assert count_scale(inputs, institution, settings) == pytest.approx(80 / 39 / (hidden / visible))
    assert count_scale(inputs, institution, InpaintingSettings(count="printed")) == 1
    local = inpainting_inputs()
    alone = institution_of(local, 0, torch.device("cpu"), torch.float32)
    assert count_scale(local, alone, settings) == 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_empty_and_full_masks_give_no_nan(share, caplog):
    inputs = inpainting_inputs(scope="global_cut")
    shares = {"hidden_least": share, "hidden_most": share}
    result = trained(inputs, **shares)
    assert (result.held_out[0]["count_error"] is None) == (share == 0)
    assert json.loads(canonical_json(result.held_out)) == [dict(one) for one in result.held_out]
    assert len(caplog.messages) == (3 if share == 0 else 0)
    assert all("each of its masks hides fewer than two edges" in message for message in caplog.messages)
    caplog.clear()
    assert np.isfinite(loaded(inputs, result, **shares).counts()).all()
    assert [message.partition(":")[0] for message in caplog.messages] == (
        [f"institution {name!r}" for name in inputs.institutions] if share == 0 else []
    )
    assert all("its masks hide no edge, so its predicted numbers" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("scope", "count", "warned"),
    [("global_cut", "calibrated", True), ("global_cut", "printed", False), ("local", "calibrated", False)],
)
def test_the_log_warns_that_scaled_numbers_are_too_high_for_sites(scope, count, warned, caplog):
    warn_of_sites(inpainting_inputs(scope=scope), count)
    assert [("tend to be too high" in message) for message in caplog.messages] == [True] * warned


def test_without_a_discriminator_its_losses_are_nan_and_its_parameters_0():
    result = trained(inpainting_inputs(), discriminator=False)
    assert result.counts["discriminator_parameters"] == 0
    adversarial = result.history.loc[result.history["loss"].isin(["adversarial", "discriminator"]), "value"]
    assert len(adversarial) and adversarial.isna().all()


def test_the_discriminator_steps_every_d_interval_epochs():
    def moved(interval):
        inputs = inpainting_inputs()
        held = InpaintingClients(inputs, InpaintingSettings(**SHORT, d_interval=interval), Run())
        before = held.discriminators.weights["judge_2.bias"].clone()
        steps = []
        for place in range(3):
            optimiser = held._optimisers[place][1]
            original = optimiser.step
            optimiser.step = lambda original=original: (steps.append(1), original())
        held.fit(0, held.institutions)
        held.fit(1, held.institutions)
        return len(steps), not torch.equal(before, held.discriminators.weights["judge_2.bias"])

    assert moved(1) == (12, True)
    assert moved(2) == (6, True)
    assert moved(3) == (6, True)


def test_subjects_outside_the_fold_change_nothing():
    fitted = np.arange(60) % 5 != 0
    inputs = inpainting_inputs(fitted=fitted, part="fold-0")
    changed = inputs.features.copy()
    changed[~fitted] = 0.9
    other = replace(inputs, features=changed, sex=np.where(fitted, inputs.sex, 0), age=np.where(fitted, inputs.age, 99))
    first, second = trained(inputs), trained(other)
    assert all(array.tobytes() == second.arrays[name].tobytes() for name, array in first.arrays.items())
    counts = loaded(inputs, first).counts()
    assert (counts[~fitted] == 0).all() and (counts[fitted] > 0).all()


def test_an_institution_without_training_subjects_takes_no_part():
    fitted = np.arange(60) % 3 != 1
    inputs = inpainting_inputs(fitted=fitted, part="fold-1")
    result = trained(inputs)
    assert set(result.history["institution"]) == {"site-0", "site-2"}
    assert all(row["tensors"] == (2 if row["name"] in SIZE_TENSORS else 2 * 2) for row in result.crossings)
    generator = loaded(inputs, result)
    assert (generator.counts()[~fitted] == 0).all()


def test_a_local_generator_depends_on_its_own_institution_only():
    inputs = inpainting_inputs()
    changed = inputs.features.copy()
    changed[inputs.institution != 0] *= 0.1
    results = [trained(case, federated="none") for case in (inputs, replace(inputs, features=changed))]
    for name, array in results[0].arrays.items():
        assert array[0].tobytes() == results[1].arrays[name][0].tobytes(), name


def test_counts_are_k_times_the_predicted_share_and_draws_are_features_and_phenotypes():
    inputs = inpainting_inputs()
    result = trained(inputs)
    generator = loaded(inputs, result)
    institution = institution_of(inputs, 1, torch.device("cpu"), torch.float32)
    model = new_generator(inputs, InpaintingSettings()).eval()
    model.load_state_dict({name.removeprefix("generator/"): torch.from_numpy(array[0])
                           for name, array in result.arrays.items()}, strict=False)  # fmt: skip
    with torch.no_grad():
        embedding = model.encode(institution.nodes.features, normalised(institution.adjacency))
        degree = torch.from_numpy(np.diff(institution.edges.indptr)).float()
        expected = 4 * model.missing(embedding, degree).numpy()
    np.testing.assert_allclose(generator.counts()[inputs.institution == 1], expected, rtol=1e-6)
    made = generator.draw(np.array([1, 1, 4, 5]))
    assert made.features.shape == (4, 40) and np.abs(made.features).max() <= 1
    assert not np.array_equal(made.features[0], made.features[1])
    assert set(made.sex) <= {0, 1} and np.isfinite(made.age).all()
    again = generator.draw(np.array([5]))
    np.testing.assert_allclose(again.features[0], made.features[3], rtol=1e-5)


def test_measures_are_z_scored_with_a_common_bound_and_returned_in_their_own_units():
    inputs = inpainting_inputs(scale=5.0)
    inputs = replace(inputs, features=inputs.features * 100 + 3000)
    for number in range(3):
        institution = institution_of(inputs, number, torch.device("cpu"), torch.float64)
        own = inputs.features[inputs.institution == number].astype(float)
        expected = (own - own.mean(axis=0)) / own.std(axis=0) / 5
        np.testing.assert_allclose(institution.nodes.features, np.clip(expected, -1, 1), atol=1e-4)
    made = loaded(inputs, trained(inputs)).draw(np.arange(60))
    np.testing.assert_allclose(made.features.mean(), inputs.features.mean(), rtol=0.1)


def test_correlations_are_not_scaled_and_a_constant_measure_becomes_0():
    inputs = inpainting_inputs()
    institution = institution_of(inputs, 0, torch.device("cpu"), torch.float32)
    np.testing.assert_array_equal(institution.nodes.features, inputs.features[inputs.institution == 0])
    measures = inputs.features * 100
    measures[:, 3] = 7
    institution = institution_of(
        replace(inputs, features=measures, correlations=False), 0, torch.device("cpu"), torch.float32
    )
    assert bool((institution.nodes.features[:, 3] == 0).all())


def test_every_node_is_a_root_once_before_any_is_twice():
    inputs = inpainting_inputs()
    roots = [int(inputs.streams.numpy("mask-roots", "all", 0, 0).permutation(20)[place]) for place in range(20)]
    assert sorted(roots) == list(range(20))
    masks = [mask_of_epoch(institution_of(inputs, 0, torch.device("cpu"), torch.float32), epoch, "all", inputs.streams,
                  InpaintingSettings()) for epoch in range(4)]  # fmt: skip
    assert len({tuple(mask.hidden.tolist()) for mask in masks}) > 1


def test_a_graph_too_small_to_hide_anything_is_skipped():
    inputs = inpainting_inputs(subjects=9, k=1)
    result = trained(inputs)
    values = result.history.loc[result.history["loss"] == "count", "value"]
    assert values.isna().all()
