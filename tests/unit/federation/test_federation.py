"""The federation core: weights, averages, noise, selection, the ledger, resuming, chunks, unseen institutions."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brainfed.engines.stacked import _training as training
from brainfed.federation import Ledger, Message, Pace, WeightNoise, normal
from brainfed.federation._sharing import UndeclaredCrossing
from brainfed.federation.strategies import FedAvg, average, choose
from brainfed.federation.strategies._fedavg import institution_weights
from brainfed.methods import SoloSettings
from brainfed.methods.gcn.declaration import FEDGCN, FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn, train_localgcn
from brainfed.runtime import PROGRESS, Streams
from brainfed.runtime.jobs import Checkpoint, Run
from brainfed.runtime.jobs._checkpoints import checkpoint_path
from reference.loop_federation import train_by_loops
from support.samples.method_inputs import method_inputs

STREAMS = Streams(5)
QUICK = FedGCNSettings(rounds=4, local_epochs=2, learning_rate=0.01, hidden=(6, 3))
ALONE = SoloSettings(epochs=8, curve_every=2, learning_rate=0.01, hidden=(6, 3))


def test_equal_weights_are_one_over_the_institutions_that_take_part():
    counts = torch.tensor([[10, 0], [30, 5], [60, 5]])
    expected = torch.tensor([[1 / 3, 0], [1 / 3, 1 / 2], [1 / 3, 1 / 2]], dtype=torch.float64)
    torch.testing.assert_close(institution_weights(counts, "equal"), expected)


def test_subject_weights_are_shares_of_the_training_subjects():
    counts = torch.tensor([[10, 0], [30, 5], [60, 15]])
    expected = torch.tensor([[0.1, 0], [0.3, 0.25], [0.6, 0.75]], dtype=torch.float64)
    torch.testing.assert_close(institution_weights(counts, "subjects"), expected)


@pytest.mark.parametrize("weighting", ["equal", "subjects"])
def test_without_samples_all_weights_are_zero(weighting):
    weights = institution_weights(torch.tensor([[0, 7], [0, 7]]), weighting)
    assert weights.tolist() == [[0.0, 0.5], [0.0, 0.5]]


def test_a_fold_without_contributions_keeps_its_model():
    start = {"w": torch.tensor([[1.0], [2.0]])}
    server = FedAvg((0, 1, 2), start)
    reply = Message({"w": torch.full((2, 1), 5.0)}, torch.tensor([0, 3]))
    server.aggregate(0, {1: reply})
    sent = server.broadcast(1)
    assert [sent[code].tensors["w"].tolist() for code in (0, 1, 2)] == [[[1.0], [5.0]]] * 3
    assert start["w"].tolist() == [[1.0], [2.0]]


@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.sampled_from([(), (4,), (2, 3)]),
    st.integers(0, 1000),
)
def test_the_average_is_that_of_numpy(institutions, folds, shape, seed):
    random = np.random.default_rng(seed)
    values = random.standard_normal((institutions, folds, *shape))
    weights = random.uniform(0.1, 1, (institutions, folds))
    found = average([{"w": torch.from_numpy(value.copy())} for value in values], torch.from_numpy(weights))["w"].numpy()
    expected = np.stack([sum(weights[m, fold] * values[m, fold] for m in range(institutions)) for fold in range(folds)])
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_the_average_leaves_its_arguments_as_they_are():
    values = torch.ones(2, 1, 3)
    average([{"w": value} for value in values], torch.full((2, 1), 0.5))
    assert torch.equal(values, torch.ones(2, 1, 3))


def noised(institutions, folds, width=3, scale=0.5):
    stacks = {"w": torch.zeros(institutions, len(folds), width), "b": torch.zeros(institutions, len(folds))}
    add_noise(stacks, scale, 2, folds)
    return stacks


def add_noise(stacks, scale, number, folds):
    institutions = range(len(stacks["w"]))
    replies = {place: Message({name: stack[place] for name, stack in stacks.items()}) for place in institutions}
    WeightNoise(scale, STREAMS, folds).add(number, replies)


def test_noise_is_the_stream_of_its_institution_fold_round_and_name():
    stacks = noised(3, (0, 1, 2))
    for institution in range(3):
        for fold in range(3):
            draw = normal(STREAMS, (3,), "weight-noise", institution, fold, 2, "w")
            torch.testing.assert_close(stacks["w"][institution, fold], 0.5 * draw)


def test_noise_does_not_depend_on_what_else_is_stacked():
    whole = noised(3, (0, 1, 2))
    for name in whole:
        assert torch.equal(noised(3, (2,))[name][:, 0], whole[name][:, 2])
        assert torch.equal(noised(3, (2, 0))[name], whole[name][:, [2, 0]])
        assert torch.equal(noised(1, (0, 1, 2))[name], whole[name][:1])


def test_no_two_tensors_get_the_same_noise():
    stacks = noised(3, (0, 1, 2))
    draws = [tuple(stacks["w"][m, f].tolist()) for m in range(3) for f in range(3)]
    draws += [tuple(noised(1, (0,), width=3)["w"][0, 0].add(1).tolist())]
    assert len(set(draws)) == 10
    again = {"w": torch.zeros(1, 1, 3)}
    add_noise(again, 0.5, 3, (0,))
    assert not torch.equal(again["w"][0, 0], stacks["w"][0, 0])


def test_noise_has_the_given_scale():
    stacks = {"w": torch.zeros(1, 1, 200_000)}
    add_noise(stacks, 0.01, 0, (0,))
    assert float(stacks["w"].std()) == pytest.approx(0.01, rel=0.01)
    assert float(stacks["w"].mean()) == pytest.approx(0, abs=1e-4)


def test_without_scale_nothing_is_drawn(monkeypatch):
    monkeypatch.setattr(torch, "randn", lambda *_, **__: pytest.fail("drew noise of scale 0"))
    stacks = {"w": torch.ones(2, 2, 3)}
    add_noise(stacks, 0.0, 0, (0, 1))
    assert torch.equal(stacks["w"], torch.ones(2, 2, 3))


@pytest.mark.parametrize(
    ("institutions", "fraction", "expected"),
    [(5, 1.0, 5), (5, 0.4, 2), (5, 0.5, 2), (10, 0.25, 2), (5, 0.0, 1), (1, 0.1, 1)],
)
def test_a_fraction_of_the_institutions_and_at_least_one_is_chosen(institutions, fraction, expected):
    for number in range(20):
        assert len(set(choose(institutions, fraction, STREAMS, number))) == expected


def test_rounds_draw_anew_and_every_institution_is_chosen_at_times():
    drawn = np.bincount([place for number in range(400) for place in choose(4, 0.5, STREAMS, number)]) / 400
    assert (np.abs(drawn - 0.5) < 0.1).all()
    assert choose(4, 0.5, STREAMS, 7) == choose(4, 0.5, STREAMS, 7)


def ledger():
    return Ledger({"w": ("features", "hidden"), "rows": ("subjects", "features"), "free": ("steps",)}, {"features": 7})


def record(book, name, shape, subjects=20, **changes):
    options = {"direction": "upload", "round_index": 0, "institution": 0, "subjects": subjects} | changes
    book.record(name, shape, 4, **options)


def test_the_ledger_counts_bytes_by_name_and_direction():
    book = ledger()
    for number in range(3):
        record(book, "w", (7, 5), round_index=number, institution=10)
        record(book, "w", (7, 5), round_index=number, institution=2, times=2)
        record(book, "w", (7, 5), round_index=number, direction="download")
    common = {"stage": "classifier", "name": "w", "axes": "features x hidden", "shape": "7x5", "rounds": 3}
    down = {"direction": "download", "to": "institutions", "institutions": "0"}
    up = {"direction": "upload", "to": "server", "institutions": "2 10"}
    assert book.rows() == (
        common | down | {"tensors": 3, "bytes": 3 * 7 * 5 * 4},
        common | up | {"tensors": 9, "bytes": 9 * 7 * 5 * 4},
    )


def test_a_shape_shows_the_range_of_an_axis_in_which_tensors_differ():
    book = ledger()
    lengths = {0: 98, 1: 127, 2: 110}
    for code, length in lengths.items():
        record(book, "rows", (length, 7), subjects=length, institution=code)
    restored = ledger()
    restored.restore(book.rows())
    record(restored, "rows", (90, 7), subjects=90, institution=3)
    assert [row["shape"] for row in (*book.rows(), *restored.rows())] == ["98..127x7", "90..127x7"]
    assert book.rows()[0]["bytes"] == sum(lengths.values()) * 7 * 4


@pytest.mark.parametrize("settings", [{"weighting": "subjects"}, {"batch": 4}])
def test_settings_that_use_the_number_of_training_subjects_send_it_once(settings):
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4)
    plain = {row["name"] for row in train_fedgcn(inputs, QUICK, Run()).crossings}
    rows = {row["name"]: row for row in train_fedgcn(inputs, replace(QUICK, **settings), Run()).crossings}
    assert rows.keys() - plain == {"training-subjects"}
    sent = rows["training-subjects"]
    assert (sent["direction"], sent["tensors"], sent["bytes"], sent["institutions"]) == ("upload", 3, 12, "0 1 2")


def test_the_bytes_of_a_federated_run_are_those_counted_by_hand():
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4)
    outcome = train_fedgcn(inputs, QUICK, Run())
    rows = {(row["name"], row["direction"]): row for row in outcome.crossings}
    sizes = {"weight-0": 11 * 6, "weight-1": 6 * 3, "weight-2": 3 * 2, "bias-0": 6, "bias-1": 3, "bias-2": 2}
    assert {name for name, _ in rows} == set(sizes)
    for name, size in sizes.items():
        for direction in ("upload", "download"):
            row = rows[name, direction]
            assert row["tensors"] == 3 * 4
            assert row["rounds"] == 4
            assert row["bytes"] == 3 * 4 * size * 4


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("labels", (7,), "labels may not leave an institution: declared are free, rows, w"),
        ("w", (7,), "declared with the axes"),
        ("w", (8, 5), "axis features has 7 entries, found 8"),
        ("w", (7, 20), "axis hidden of 20 entries is as long as the institution's list"),
        ("free", (20,), "as long as the institution's list"),
    ],
)
def test_undeclared_tensors_do_not_cross(name, shape, message):
    book = ledger()
    with pytest.raises(UndeclaredCrossing, match=message):
        record(book, name, shape)
    assert book.rows() == ()


def test_a_declared_subject_axis_crosses_and_is_recorded():
    book = ledger()
    record(book, "rows", (20, 7))
    assert book.rows()[0]["axes"] == "subjects x features"


def test_a_known_axis_may_be_as_long_as_the_list_of_subjects():
    book = ledger()
    record(book, "w", (7, 5), subjects=7)
    assert book.rows()[0]["tensors"] == 1


def test_a_ledger_restores_the_counts_of_an_interrupted_run():
    first, second = ledger(), ledger()
    record(first, "w", (7, 5))
    second.restore(first.rows())
    record(second, "w", (7, 5), round_index=1)
    assert second.rows()[0]["bytes"] == 2 * 140
    assert first.rows()[0]["bytes"] == 140


class CutOffError(Exception):
    """What cuts a training off."""


CASES = {
    "federated, optimiser reset": (train_fedgcn, QUICK),
    "federated, optimiser kept": (train_fedgcn, replace(QUICK, optimiser_state="keep")),
    "federated, half of the institutions": (train_fedgcn, replace(QUICK, fraction=0.5, batch=4)),
    "local": (train_localgcn, ALONE),
}


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("case", list(CASES))
def test_an_interrupted_training_resumes_to_the_same_bytes(case, protocol, number, resumed):
    train, settings = CASES[case]
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4, protocol=protocol)
    expected = train(inputs, settings, Run())
    again, seen = resumed(lambda run: train(inputs, settings, run), number + 1)
    assert seen == list(range(number + 1, 5))
    assert again.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()
    assert again.training_loss.tobytes() == expected.training_loss.tobytes()
    assert again.crossings == expected.crossings


def test_the_ledger_of_a_resumed_training_counts_the_help_for_an_unseen_site_once(resumed):
    inputs = method_inputs(36, 9, split="leave-one-site-out")
    expected = train_fedgcn(inputs, QUICK, Run())
    assert {row["rounds"] for row in expected.crossings if row["name"] == "bias-0"} == {QUICK.rounds}
    again, _ = resumed(lambda run: train_fedgcn(inputs, QUICK, run), 3)
    assert again.crossings == expected.crossings


def test_a_training_interrupted_in_its_second_chunk_keeps_the_first(tmp_path, monkeypatch, caplog):
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4)
    monkeypatch.setattr(Pace, "due", lambda _: True)
    monkeypatch.setattr(training, "STACK_BYTES", 1)
    expected = train_fedgcn(inputs, QUICK, Run())
    seen = []

    def progress(done, *_):
        seen.append(done)
        if len(seen) == 7:
            raise CutOffError

    checkpoint = Checkpoint(checkpoint_path(tmp_path / "predictions.parquet", "0a"), "0a")
    with pytest.raises(CutOffError):
        train_fedgcn(inputs, QUICK, Run(checkpoint=checkpoint, progress=progress))
    reports = []
    caplog.set_level("INFO", PROGRESS)
    resumed = train_fedgcn(inputs, QUICK, Run(checkpoint=checkpoint, progress=lambda *what, **_: reports.append(what)))
    assert seen == [1, 2, 3, 4, 5, 6, 7]
    assert [done for done, *_ in reports] == [7, 8, *range(9, 17)]
    assert {total for _, total, _ in reports} == {16}
    assert [what.split(", ")[1:] for *_, what in reports] == [
        [f"fold {fold}", "round"] for fold in 2 * [2] + 4 * [3] + 4 * [4]
    ]
    assert caplog.messages == ["goes on after round 2 of 4, which an earlier run kept"]
    assert resumed.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()
    assert resumed.crossings == expected.crossings


def test_a_finished_training_resumes_without_training(tmp_path):
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4)
    checkpoint = Checkpoint(checkpoint_path(tmp_path / "predictions.parquet", "0a"), "0a")
    expected = train_fedgcn(inputs, QUICK, Run(checkpoint=checkpoint))
    seen = []
    again = train_fedgcn(inputs, QUICK, Run(checkpoint=checkpoint, progress=lambda *what, **_: seen.append(what)))
    assert seen == []
    assert again.round_scores[..., 1].tobytes() == expected.round_scores[..., 1].tobytes()


@pytest.mark.parametrize("case", list(CASES))
def test_folds_trained_in_chunks_give_the_same_scores(case, monkeypatch):
    train, settings = CASES[case]
    inputs = method_inputs(subjects=40, dimensions=11, institutions=3, folds=4)
    expected = train(inputs, settings, Run(precision="float64"))
    parameters = 11 * 6 + 6 + 6 * 3 + 3 + 3 * 2 + 2
    assert expected.counts["parameters"] == parameters
    chunks = []
    known = training.stack_inputs
    monkeypatch.setattr(training, "STACK_BYTES", 3 * 4 * 3 * parameters * 8)
    monkeypatch.setattr(
        training, "stack_inputs", lambda *args, **named: chunks.append(args[2]) or known(*args, **named)
    )
    found = train(inputs, settings, Run(precision="float64"))
    assert chunks == [(0, 1), (2, 3)]
    np.testing.assert_allclose(found.round_scores[..., 1], expected.round_scores[..., 1], atol=1e-12, rtol=0)
    np.testing.assert_allclose(found.training_loss, expected.training_loss, atol=1e-12, rtol=0)
    assert found.counts == expected.counts
    assert found.crossings == expected.crossings


@pytest.mark.parametrize("train", [train_fedgcn, train_localgcn], ids=["federated", "local"])
def test_sites_left_out_in_chunks_give_the_same_scores(train, monkeypatch):
    inputs = method_inputs(subjects=36, dimensions=9, institutions=3, split="leave-one-site-out")
    settings = QUICK if train is train_fedgcn else ALONE
    expected = train(inputs, settings, Run(precision="float64"))
    monkeypatch.setattr(training, "STACK_BYTES", 1)
    found = train(inputs, settings, Run(precision="float64"))
    np.testing.assert_allclose(found.round_scores[..., 1], expected.round_scores[..., 1], atol=1e-12, rtol=0)
    assert found.crossings == expected.crossings


def only(inputs, institution):
    """Masks: an institution's subjects, and all others."""
    return inputs.institution == institution, inputs.institution != institution


def test_an_unseen_site_is_scored_by_the_federated_global_model():
    inputs = method_inputs(subjects=36, dimensions=9, institutions=3, split="leave-one-site-out")
    settings = replace(QUICK, standardise="none", noise=0.0)
    found = train_fedgcn(inputs, settings, Run(precision="float64")).scores[..., 1]
    for fold in range(3):
        unseen, seen = only(inputs, fold)
        expected = global_model_scores(inputs, fold, seen, settings)
        np.testing.assert_allclose(found[fold, unseen], expected[unseen], atol=1e-8, rtol=0)


def global_model_scores(inputs, fold, seen, settings):
    """Scores (n,) of the loop's federation of the other institutions, tested on all subjects.

    The loop knows no institution without training subjects; so another one holds the unseen subjects too,
    as unlabelled nodes without edges to its own: they change nothing in its training.
    """
    host = int(inputs.institution[np.flatnonzero(seen)[0]])
    merged = replace(
        inputs,
        institution=np.where(seen, inputs.institution, host),
        fold=np.where(seen, 1, 0),
        labels=inputs.labels[[fold]],
    )
    present = sorted(set(merged.institution.tolist()))
    code = {institution: position for position, institution in enumerate(present)}
    merged = replace(
        merged,
        institution=np.array([code[institution] for institution in merged.institution.tolist()]),
        institutions=tuple(inputs.institutions[institution] for institution in present),
        streams=FoldStreams(inputs.streams, fold),
    )
    return train_by_loops(
        merged,
        hidden=settings.hidden,
        graph=True,
        standardise=False,
        rounds=settings.rounds,
        local_epochs=settings.local_epochs,
        learning_rate=settings.learning_rate,
        noise=0.0,
    )[0]


class FoldStreams(Streams):
    """Streams of one fold that is alone and therefore called 0."""

    def __init__(self, streams, fold):
        object.__setattr__(self, "seed", streams.seed)
        object.__setattr__(self, "repeat", streams.repeat)
        object.__setattr__(self, "fold", fold)

    def key(self, purpose, *parts):
        return super().key(purpose, *((self.fold, *parts[1:]) if purpose == "initial-weights" else parts))


@pytest.mark.parametrize("standardise", ["none", "institution"])
def test_an_unseen_site_is_scored_by_the_mean_of_the_local_models_each_with_its_own_scaling(standardise):
    inputs = method_inputs(subjects=36, dimensions=9, institutions=3, split="leave-one-site-out")
    found = train_localgcn(inputs, replace(ALONE, standardise=standardise), Run(precision="float64")).scores[..., 1]
    for fold in range(3):
        unseen, _ = only(inputs, fold)
        by_each = [scores_elsewhere(inputs, fold, teacher, standardise) for teacher in range(3) if teacher != fold]
        np.testing.assert_allclose(found[fold, unseen], np.mean(by_each, axis=0)[unseen], atol=1e-8, rtol=0)


def scores_elsewhere(inputs, fold, teacher, standardise):
    """Scores (n,) of one institution's model alone, tested on the unseen site as nodes without edges to its own."""
    unseen, _ = only(inputs, fold)
    own = inputs.institution == teacher
    features = inputs.features[0].astype(np.float64)
    if standardise == "institution":
        features = (features - features[own].mean(axis=0)) / features[own].std(axis=0)
    kept = np.flatnonzero(unseen | own)
    alone = restricted(replace(inputs, features=(features,)), kept, fold)
    scores = train_by_loops(
        alone,
        hidden=(6, 3),
        graph=True,
        standardise=False,
        rounds=4,
        local_epochs=2,
        learning_rate=0.01,
        exchange=False,
    )
    spread = np.full(len(inputs.subjects), np.nan)
    spread[kept] = scores[0]
    return spread


def restricted(inputs, kept, fold):
    """One institution of the subjects `kept`, one fold."""
    place = np.full(len(inputs.subjects), -1)
    place[kept] = np.arange(len(kept))
    graph = inputs.graphs[0]
    inside = (place[graph.row] >= 0) & (place[graph.column] >= 0)
    return replace(
        inputs,
        subjects=tuple(inputs.subjects[position] for position in kept),
        institutions=("one",),
        institution=np.zeros(len(kept), dtype=np.int64),
        fold=np.where(inputs.fold[kept] == fold, 0, 1),
        labels=inputs.labels[[fold]][:, kept],
        features=(inputs.features[0][kept],),
        graphs=(
            replace(
                graph,
                row=place[graph.row[inside]],
                column=place[graph.column[inside]],
                weight=graph.weight[inside],
                nodes=len(kept),
            ),
        ),
        streams=FoldStreams(inputs.streams, fold),
    )


def test_moments_cross_only_where_an_institution_needs_them():
    folds = train_fedgcn(method_inputs(36, 9), QUICK, Run())
    sites = train_fedgcn(method_inputs(36, 9, split="leave-one-site-out"), QUICK, Run())
    moments = {"feature-mean", "feature-sd"}
    assert moments.isdisjoint(row["name"] for row in folds.crossings)
    assert moments <= {row["name"] for row in sites.crossings}
    assert moments <= set(FEDGCN.crossing.tensors)
