"""FedSage+'s generator: who is hidden, the losses, what crosses, resuming, and what the trained generator answers."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brainfed.federation.pace import Pace
from brainfed.federation.privacy import WeightNoise
from brainfed.graphs.graph import Graph
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.inpainting.fedsage.draws import Draws
from brainfed.inpainting.fedsage.losses import count_loss
from brainfed.inpainting.fedsage.owner import hidden_nodes, owners_of, row_normalised, scaled_members
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.fedsage.shared_tensors import RAW_TENSORS, SUMMED_TENSORS
from brainfed.inpainting.fusing.fuse import fuse
from brainfed.inpainting.scaling import scaling_of
from brainfed.inpainting.settings import FusingSettings, InpaintingSettings
from brainfed.methods.fedsage.fedsage_plus import FEDSAGE
from brainfed.models.fedsage_generator import GeneratorShape, MissingNeighbourGenerator
from brainfed.runtime.artefacts import ArrayFile
from brainfed.runtime.jobs.checkpoints import Checkpoint, checkpoint_path
from brainfed.runtime.jobs.run import Run
from inpainting_inputs import inpainting_inputs
from reference.fedsage import PlainOwner, hidden_neighbours, smooth_l1, train_generators_by_loops

CPU = torch.device("cpu")
DOUBLE = Run(precision="float64")
QUICK = FedSageSettings(local_epochs=2, rounds=2, targets=3, fgen_width=8, hidden_fraction=0.2, learning_rate=0.01)

NOISY = (FedSageSettings, InpaintingSettings)


def cohort(subjects=45, **options):
    """Fifteen subjects in each of three institutions, six features inside (-1, 1)."""
    return inpainting_inputs(subjects, 6, **options)


def widened(inputs, factor):
    """The same cohort with the first feature multiplied."""
    features = inputs.features.copy()
    features[:, 0] *= factor
    return replace(inputs, features=features, correlations=False)


def loaded(inputs, trained, settings=QUICK, run=Run()):  # noqa: B008
    return fedsage.load(inputs, settings, ArrayFile(trained.arrays, {}), run)


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


def test_the_first_owner_may_miss_nobody():
    inputs = cohort()
    inputs = replace(inputs, institution=np.where(inputs.institution == 0, 1, inputs.institution))
    inputs.institution[:2] = 0  # too few to hide one
    trained = fedsage.train(inputs, QUICK, Run())
    assert owners_of(inputs, QUICK, CPU, torch.float32)[0].institution == 0
    assert all(np.isfinite(values).all() for values in trained.arrays.values())


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


def test_more_hidden_neighbours_than_targets_are_counted_in_full_and_some_at_random_are_targets():
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
@pytest.mark.parametrize("block", [4, 512])
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


def test_the_setting_of_noise_is_fednis():
    own, fednis = (next(field for field in fields(kind) if field.name == "noise") for kind in NOISY)
    assert (own.type, own.default, dict(own.metadata)) == (fednis.type, fednis.default, dict(fednis.metadata))


def test_without_noise_nothing_is_drawn_and_no_weight_is_copied(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(WeightNoise, "_copy", refuse)
    fedsage.train(cohort(), replace(QUICK, noise=0.0), Run())
    with pytest.raises(AssertionError):
        fedsage.train(cohort(), QUICK, Run())


def test_noise_is_on_what_others_are_sent_and_not_on_the_owners_own_weights(monkeypatch):
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


def test_in_the_federated_rounds_only_the_feature_generator_trains():
    inputs = cohort()
    local = fedsage.train(inputs, replace(QUICK, rounds=0), Run()).arrays
    both = fedsage.train(inputs, QUICK, Run()).arrays
    moved = {name for name in both if both[name].tobytes() != local[name].tobytes()}
    assert moved == {name for name in both if ".fgen." in name.replace("/", ".")}


def test_another_owners_missing_neighbours_move_the_feature_generator_in_the_rounds_alone():
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


def test_the_losses_fall():
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


def test_by_default_parameters_and_summed_gradients_cross_and_nothing_with_an_entry_a_patient():
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


def test_raw_exchange_is_the_same_training_and_sends_patients():
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


def test_everything_that_may_cross_is_declared():
    assert dict(FEDSAGE.shared_tensors) == {**SUMMED_TENSORS, **RAW_TENSORS}
    assert FEDSAGE.settings is FedSageSettings


def test_training_is_deterministic_and_depends_on_its_streams():
    inputs = cohort()
    first, second = fedsage.train(inputs, QUICK, Run()), fedsage.train(inputs, QUICK, Run())
    other = fedsage.train(replace(inputs, streams=replace(inputs.streams, repeat=1)), QUICK, Run())
    name = "0/fgen.output.weight"
    assert first.arrays[name].tobytes() == second.arrays[name].tobytes() != other.arrays[name].tobytes()


class CutOffError(Exception):
    """What cuts a training off."""


@pytest.mark.parametrize("step", [1, 2, 5, 6, 7, 11], ids=lambda step: f"step-{step}")
def test_an_interrupted_training_resumes_to_the_same_bytes(step, tmp_path, monkeypatch):
    """Three owners x two local epochs, then three owners x two rounds."""
    inputs = cohort()
    expected = fedsage.train(inputs, QUICK, Run())
    monkeypatch.setattr(Pace, "due", lambda _: True)
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "generator.safetensors", "0a"), "0a")

    def cut_off(done, *_):
        if done == step + 1:
            raise CutOffError

    with pytest.raises(CutOffError):
        fedsage.train(inputs, QUICK, Run(checkpoint=checkpoint, progress=cut_off))
    seen = []
    resumed = fedsage.train(inputs, QUICK, Run(checkpoint=checkpoint, progress=lambda done, *_: seen.append(done)))
    assert seen == list(range(step + 1, 13))
    assert {name: value.tobytes() for name, value in resumed.arrays.items()} == {
        name: value.tobytes() for name, value in expected.arrays.items()
    }
    assert resumed.history.equals(expected.history)
    assert resumed.crossings == expected.crossings


def test_a_diverged_training_can_be_kept_and_resumed(tmp_path, monkeypatch):
    diverging = replace(QUICK, learning_rate=1e38)
    monkeypatch.setattr(Pace, "due", lambda _: True)
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "generator.safetensors", "0a"), "0a")
    expected = fedsage.train(cohort(), diverging, Run(checkpoint=checkpoint)).history
    assert expected["value"].isna().any()
    assert fedsage.train(cohort(), diverging, Run(checkpoint=checkpoint)).history.equals(expected)


def test_counts_are_between_nothing_and_the_number_of_subjects_elsewhere():
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


def test_subjects_that_may_not_be_learnt_from_change_nothing_and_get_nobody():
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


def test_an_institution_without_anybody_to_learn_from_has_no_generator():
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


def test_counts_of_operations_by_hand():
    inputs = cohort()
    trained = fedsage.train(inputs, QUICK, Run())
    owners = owners_of(inputs, QUICK, CPU, torch.float32)
    last_layer = sum(2 * 3 * len(owner.targeted) * 8 * 3 * 6 for owner in owners)
    encoder = sum(2 * 2 * owner.visible * 6 * 32 for owner in owners)
    assert trained.counts["operations"] == 2 * (last_layer + encoder) + 2 * 3 * last_layer
    weights = 6 * 32 + 32 * 128 + 128 + 128 * 256 + 256 * 8 + 8 * 18
    assert trained.counts["parameters"] == weights + 32 + 128 + 1 + 256 + 8 + 18
