"""Private clients: the plain loop's numbers, a resumed run's bytes and budget, counted steps, refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from brainfed.engines.private import Poisson, PrivateClients
from brainfed.federation import spending_row
from brainfed.runtime import Streams, UserError
from brainfed.runtime.jobs import Run
from reference.private_federation import train_by_loops

from .training import FOLDS, PRIVACY, ROUNDS, SIZES, STREAMS, clients_of, made_up, networks, schedule, train

CASES = {
    "logistic regression": {"kind": "logistic"},
    "perceptron": {"kind": "mlp"},
    "windows": {"kind": "convolution", "windows": 3},
    "three classes": {"kind": "mlp", "classes": 3},
    "momentum and decay": {"kind": "mlp", "momentum": 0.9, "weight_decay": 0.1},
    "adam": {"kind": "mlp", "optimiser": "adam", "learning_rate": 0.05},
    "adam of windows, reset": {"kind": "convolution", "windows": 2, "optimiser": "adam", "optimiser_state": "reset"},
    "all in one step": {"kind": "mlp", "batch": 0},
    "alone": {"kind": "mlp", "federated": False},
}


@pytest.mark.parametrize("privacy", [{}, PRIVACY], ids=["without privacy", "private"])
@pytest.mark.parametrize("case", CASES)
def test_it_gives_the_plain_loops_numbers(case, privacy):
    options = dict(CASES[case])
    kind, federated = options.pop("kind"), options.pop("federated", True)
    data = made_up(options.pop("windows", 3 if kind == "convolution" else 0), options.pop("classes", 2))
    settings = schedule(**privacy, **options)
    found = train(clients_of(data, kind, settings, federated=federated))
    labels = [[row[:count].numpy() for row in own] for own, count in zip(data.labels, data.sizes, strict=True)]
    held, losses, scores = train_by_loops(
        networks(data, kind), data.rows, labels, settings, STREAMS, found.multipliers, federated
    )
    np.testing.assert_allclose(found.curves.losses, losses, atol=1e-8, rtol=0)
    (members,) = found.member_probabilities()
    for place, count in enumerate(data.sizes):
        for position in range(len(FOLDS)):
            pairs = zip(found.modules[place][position].parameters(), held[place][position].parameters(), strict=True)
            for ours, plain in pairs:
                torch.testing.assert_close(ours.detach(), plain.detach(), atol=1e-8, rtol=0)
            trained = labels[place][position] >= 0
            for number in range(ROUNDS):
                curve = found.curves.probabilities[number, place, position, :count]
                np.testing.assert_allclose(curve[~trained], scores[number][place][position][~trained], atol=1e-8)
                assert np.isnan(curve[trained]).all()
            last = members[place, position, :count]
            np.testing.assert_allclose(last[trained], scores[-1][place][position][trained], atol=1e-8)
            assert np.isnan(last[~trained]).all()


@pytest.mark.parametrize(
    ("optimiser", "optimiser_state"),
    [
        *(("sgd", "keep"), ("adam", "keep"), ("adam", "reset")),
        pytest.param("sgd", "reset", marks=pytest.mark.full("A reset is tried with Adam, which has more to forget.")),
    ],
)
def test_an_interrupted_training_resumes_to_the_same_bytes_and_budget(optimiser, optimiser_state, resumed):
    data = made_up(windows=2)
    settings = schedule(**PRIVACY, optimiser=optimiser, optimiser_state=optimiser_state, momentum=0.5)

    def trained(run):
        clients = clients_of(data, "convolution", settings, dtype=torch.float32)
        return train(clients, checkpoint=run.checkpoint, progress=run.progress)

    whole = trained(Run())
    again, seen = resumed(trained, 2)
    assert seen[-1] == ROUNDS
    assert whole.curves.probabilities.tobytes() == again.curves.probabilities.tobytes()
    assert whole.curves.losses.tobytes() == again.curves.losses.tobytes()
    for own, other in zip(whole._each(), again._each(), strict=True):
        for name, tensor in own[1].state_dict().items():
            assert torch.equal(tensor, other[1].state_dict()[name])
    rows = [[spending_row(each, settings) for each in clients.spendings()] for clients in (whole, again)]
    assert rows[0] == rows[1]
    assert rows[0][0]["steps"] == ROUNDS * settings.local_epochs


def test_a_round_that_is_cut_off_repeats_its_noise():
    """The second run of the round releases what the first did: the budget is not spent twice."""
    data = made_up()
    clients = clients_of(data, "mlp", schedule(**PRIVACY))
    before = {name: array.copy() for name, array in clients.state(0).items()}
    first = clients.fit(1, (0, 1))[0].tensors
    clients.load(0, before)
    assert (clients.steps_taken == 0).all()
    second = clients.fit(1, (0, 1))[0].tensors
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_noise_differs_between_institutions_folds_rounds_and_seeds():
    data = made_up(sizes=(8, 8))
    settings = schedule(privacy="paper", epsilon=1e-4, delta=1e-3, rounds=2, local_epochs=1, batch=0)

    def uploads(number, streams=STREAMS):
        found = clients_of(data, "logistic", settings, streams=streams).fit(number, (0, 1))
        return [found[place].tensors["weight-0"][position] for place in (0, 1) for position in (0, 1)]

    every = [*uploads(0), *uploads(1), *uploads(0, Streams(8)), *uploads(0, Streams(7, 1))]
    for left, one in enumerate(every):
        for other in every[left + 1 :]:
            assert (one - other).abs().max() > 1


def test_steps_are_counted_where_an_institution_trains():
    clients = clients_of(made_up(), "mlp", schedule(**PRIVACY, batch=3))
    clients.fit(0, (0, 1))
    # Two epochs of so many training subjects over 3, rounded up.
    assert clients.samples.tolist() == [[4, 5], [6, 8], [0, 3]]
    assert clients.steps_taken.tolist() == [[4, 4], [4, 6], [0, 0]]
    clients.fit(1, (1, 2))
    assert clients.steps_taken.tolist() == [[4, 4], [8, 12], [0, 2]]
    found = clients.spendings()
    assert [(each.institution, each.fold) for each in found] == [("0", 0), ("0", 1), ("1", 0), ("1", 1), ("2", 1)]
    assert [each.steps for each in found] == [4, 4, 8, 12, 2]
    assert [each.sampling_rate for each in found] == [3 / 4, 3 / 5, 3 / 6, 3 / 8, 1.0]
    assert not np.isclose(clients.multipliers[:2], 0).any()
    assert clients.multipliers[2, 0] == 0


def test_the_whole_training_spends_at_most_epsilon_and_nearly_all_of_it():
    settings = schedule(privacy="accountant", epsilon=3.0, delta=1e-3)
    rows = [spending_row(each, settings) for each in train(clients_of(made_up(), "logistic", settings)).spendings()]
    assert len(rows) == 5
    assert all(2.98 < row["epsilon_spent"] <= 3.0 for row in rows)
    assert {row["unit"] for row in rows} == {"subject"}
    assert all(row["steps"] == ROUNDS * 2 * -(-row["subjects"] // 4) for row in rows)


def test_without_privacy_nothing_is_reported_as_spent():
    assert train(clients_of(made_up(), "logistic", schedule())).spendings() == []


def test_privacy_takes_the_same_batches(monkeypatch):
    drawn = {}
    for name, options in {"plain": {}, "private": PRIVACY}.items():
        clients = clients_of(made_up(), "logistic", schedule(**options))
        taken = clients._step
        seen = drawn[name] = []

        def step(place, position, samples, moment, expected, taken=taken, seen=seen):
            seen.append((place, position, samples.tolist(), moment, expected))
            return taken(place, position, samples, moment, expected)

        monkeypatch.setattr(clients, "_step", step)
        train(clients)
    assert drawn["plain"] == drawn["private"]
    assert len({len(samples) for _, _, samples, _, _ in drawn["plain"]}) > 2


def test_an_institution_of_one_subject_trains_without_privacy_alone():
    data = made_up(sizes=(1, 6))
    data.labels[0, :, 0] = 1
    with pytest.raises(UserError, match="two or more training subjects"):
        clients_of(data, "logistic", schedule(**PRIVACY))
    found = train(clients_of(data, "logistic", schedule()))
    assert found.poisson.rate(1) == 1
    assert found.steps_taken[0].tolist() == [ROUNDS * 2, ROUNDS * 2]


def test_a_round_that_draws_nobody_goes_on(monkeypatch):
    clients = clients_of(made_up(), "logistic", schedule(**PRIVACY))
    monkeypatch.setattr(Poisson, "draw", lambda *_: torch.zeros(0, dtype=torch.int64))
    train(clients)
    assert np.isnan(clients.curves.losses).all()
    assert clients.score(0) == "no subject drawn"
    assert clients.steps_taken[0, 0] == 2 * ROUNDS


def test_labels_without_training_change_nothing():
    """The label of a tested subject is no input; a hidden one is -1, whatever the truth."""
    data = made_up()
    scrambled = replace(data, values=[each.clone() for each in data.values])
    hidden = data.labels[0, 0] < 0
    scrambled.values[0][hidden[: SIZES[0]]] += 100
    uploads = [clients_of(each, "mlp", schedule(**PRIVACY)).fit(0, (0,))[0].tensors for each in (data, scrambled)]
    for name, tensor in uploads[0].items():
        assert torch.equal(tensor[0], uploads[1][name][0])
    assert not torch.equal(uploads[0]["weight-0"][1], uploads[1]["weight-0"][1])


def test_delta_must_be_below_one_over_the_training_subjects():
    with pytest.raises(UserError, match=r"delta of institution 1: expected less than 1 / 8 training subjects"):
        clients_of(made_up(), "logistic", schedule(**(PRIVACY | {"delta": 0.125})))


def test_a_loss_that_is_not_finite_is_refused():
    clients = clients_of(made_up(), "mlp", schedule(learning_rate=1e200))
    with pytest.raises(UserError, match=r"training of institution 0 \(fold 0, round \d\): expected a finite loss"):
        train(clients)


def test_batch_statistics_and_unknown_names_are_refused():
    data = made_up()
    own = type("Own", (torch.nn.BatchNorm1d.__base__,), {})
    for layer in (lambda: torch.nn.BatchNorm1d(6), lambda: torch.nn.SyncBatchNorm(6), lambda: own(6)):
        batched = [[torch.nn.Sequential(layer(), torch.nn.Linear(6, 2)) for _ in FOLDS] for _ in SIZES]
        with pytest.raises(ValueError, match="found batch statistics: 0"):
            PrivateClients(batched, data.cohort, schedule(), STREAMS)
    with pytest.raises(ValueError, match=r"shares: expected names among weight-0, bias-0, found weight-1"):
        PrivateClients(networks(data, "logistic"), data.cohort, schedule(), STREAMS, ["weight-1"])
