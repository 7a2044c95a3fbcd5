"""Training of FedSage+'s generators: local epochs, federated rounds, resuming."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from brainfed.federation import Pace
from brainfed.inpainting.fedsage import Draws, owners_of
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.inpainting.fedsage._local import hidden_nodes
from brainfed.runtime.jobs import Checkpoint, Run
from brainfed.runtime.jobs._checkpoints import checkpoint_path
from reference.fedsage import PlainOwner, train_generators_by_loops
from support.samples.fedsage_inputs import CPU, DOUBLE, QUICK, cohort


def test_training_allows_a_first_owner_without_missing_neighbours():
    inputs = cohort()
    inputs = replace(inputs, institution=np.where(inputs.institution == 0, 1, inputs.institution))
    inputs.institution[:2] = 0  # too few to hide one
    trained = fedsage.train(inputs, QUICK, Run())
    assert owners_of(inputs, QUICK, CPU, torch.float32)[0].institution == 0
    assert all(np.isfinite(values).all() for values in trained.arrays.values())


def plain_owners(inputs, settings):
    start = fedsage.train(inputs, replace(settings, learning_rate=0.0), DOUBLE).arrays
    owners = []
    for code in range(len(inputs.institutions)):
        hidden = hidden_nodes(inputs, code, settings.hidden_fraction).tolist()
        prefix = f"{code}/"
        weights = {
            name.removeprefix(prefix): torch.tensor(value, requires_grad=True)
            for name, value in start.items()
            if name.startswith(prefix)
        }
        visible = [node for node in inputs.members(code).tolist() if node not in hidden]
        features = torch.from_numpy(inputs.features).double()
        owners.append(PlainOwner(code, visible, hidden, features, inputs.graph, weights))
    return owners


@pytest.mark.parametrize("part", ["all", "fold-2"])
@pytest.mark.parametrize("noise", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("block", [2, 1024])
def test_training_owner_by_owner_equals_the_rounds_of_the_plain_loop(block, noise, part, monkeypatch):
    monkeypatch.setattr(fedsage, "CPU_BLOCK", block)
    inputs = cohort(46, seed=4, part=part)
    settings = replace(QUICK, noise=noise)
    trained = fedsage.train(inputs, settings, DOUBLE)
    owners = plain_owners(inputs, settings)
    draws = Draws(inputs.streams, part, QUICK.dropout)

    def keep(rows, width, *key):
        return draws.keep(torch.zeros(rows, 1, dtype=torch.float64), width, *key)

    train_generators_by_loops(inputs, owners, settings, keep)
    for owner in owners:
        for name, weight in owner.weights.items():
            found = trained.arrays[f"{owner.code}/{name}"]
            np.testing.assert_allclose(found, weight.detach().numpy(), atol=1e-8, rtol=0, err_msg=name)


def test_all_owners_start_alike_and_no_generator_is_averaged():
    inputs = cohort()
    start = fedsage.train(inputs, replace(QUICK, learning_rate=0.0), Run()).arrays
    trained = fedsage.train(inputs, QUICK, Run()).arrays
    names = {name.removeprefix("0/") for name in trained if name.startswith("0/")}
    assert len(names) == 12
    for name in names:
        assert start[f"0/{name}"].tobytes() == start[f"1/{name}"].tobytes() == start[f"2/{name}"].tobytes()
        values = {trained[f"{code}/{name}"].tobytes() for code in range(3)}
        assert len(values) == 3, name


def test_federated_rounds_train_only_the_feature_generator():
    inputs = cohort()
    local = fedsage.train(inputs, replace(QUICK, rounds=0), Run()).arrays
    both = fedsage.train(inputs, QUICK, Run()).arrays
    moved = {name for name in both if both[name].tobytes() != local[name].tobytes()}
    assert moved == {name for name in both if ".fgen." in name.replace("/", ".")}


def test_other_owners_change_the_feature_generator_in_federated_rounds_only():
    inputs = cohort()
    features = inputs.features.copy()
    features[inputs.members(1)] *= -1
    changed = replace(inputs, features=features)
    alone, alone_changed = (
        fedsage.train(given_inputs, replace(QUICK, rounds=0), Run()).arrays for given_inputs in (inputs, changed)
    )
    both, both_changed = (fedsage.train(given_inputs, QUICK, Run()).arrays for given_inputs in (inputs, changed))
    for name in (name for name in both if name.startswith("0/")):
        assert alone[name].tobytes() == alone_changed[name].tobytes()
    assert both["0/fgen.output.weight"].tobytes() != both_changed["0/fgen.output.weight"].tobytes()


def test_training_lowers_the_losses():
    inputs = cohort(90)
    history = fedsage.train(inputs, replace(QUICK, local_epochs=40, rounds=40), Run()).history
    assert list(history.columns) == ["institution", "round", "loss", "value"]
    assert set(history["loss"]) == {"count", "feature", "feature_elsewhere", "hidden_fraction"}
    assert history.loc[history["loss"] == "hidden_fraction", "value"].tolist() == pytest.approx([0.2] * 3)
    for _, rows in history.groupby("institution"):
        for loss in ("count", "feature", "feature_elsewhere"):
            values = rows.loc[rows["loss"] == loss].sort_values("round")["value"].to_numpy()
            assert values[-5:].mean() < values[:5].mean()
        assert rows.loc[rows["loss"] == "feature", "round"].tolist() == list(range(1, 81))


def test_training_is_deterministic_and_depends_on_its_streams():
    inputs = cohort()
    first, second = fedsage.train(inputs, QUICK, Run()), fedsage.train(inputs, QUICK, Run())
    other = fedsage.train(replace(inputs, streams=replace(inputs.streams, repeat=1)), QUICK, Run())
    name = "0/fgen.output.weight"
    assert first.arrays[name].tobytes() == second.arrays[name].tobytes() != other.arrays[name].tobytes()


@pytest.mark.parametrize("step", [1, 2, 5, 6, 7, 11], ids=lambda step: f"step-{step}")
def test_an_interrupted_training_resumes_to_the_same_bytes(step, resumed):
    """Three owners x two local epochs, then three owners x two rounds."""
    inputs = cohort()
    expected = fedsage.train(inputs, QUICK, Run())
    again, seen = resumed(lambda run: fedsage.train(inputs, QUICK, run), step + 1)
    assert seen == list(range(step + 1, 13))
    assert {name: value.tobytes() for name, value in again.arrays.items()} == {
        name: value.tobytes() for name, value in expected.arrays.items()
    }
    assert again.history.equals(expected.history)
    assert again.crossings == expected.crossings


def test_a_diverged_training_resumes(tmp_path, monkeypatch):
    diverging = replace(QUICK, learning_rate=1e38)
    monkeypatch.setattr(Pace, "due", lambda _: True)
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "generator.safetensors", "0a"), "0a")
    expected = fedsage.train(cohort(), diverging, Run(checkpoint=checkpoint)).history
    assert expected["value"].isna().any()
    assert fedsage.train(cohort(), diverging, Run(checkpoint=checkpoint)).history.equals(expected)


def test_counts_of_operations_by_hand():
    inputs = cohort()
    trained = fedsage.train(inputs, QUICK, Run())
    owners = owners_of(inputs, QUICK, CPU, torch.float32)
    last_layer = sum(2 * 3 * len(owner.targeted) * 8 * 3 * 6 for owner in owners)
    encoder = sum(2 * 2 * owner.visible * 6 * 32 for owner in owners)
    assert trained.counts["operations"] == 2 * (last_layer + encoder) + 2 * 3 * last_layer
    weights = 6 * 32 + 32 * 128 + 128 + 128 * 256 + 256 * 8 + 8 * 18
    assert trained.counts["parameters"] == weights + 32 + 128 + 1 + 256 + 8 + 18
