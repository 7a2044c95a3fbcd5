"""Noise that is drawn in advance is the noise that would be drawn when it is needed."""

import threading

import pytest
import torch

from brainfed.federation.message import Message
from brainfed.federation.privacy import drawn_ahead, weight_noise
from brainfed.federation.privacy.drawn_ahead import DrawnAhead
from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.runtime.streams import Streams

ROUNDS, FOLDS = 5, (0, 2)


def replies(institutions):
    return {
        code: Message({"w": torch.zeros(len(FOLDS), 4, 3), "b": torch.zeros(len(FOLDS), 3)}) for code in institutions
    }


def added(noise, numbers, institutions=(0, 1, 4)):
    """Tensors after the noise of these rounds, each on zeros."""
    found = []
    for number in numbers:
        messages = replies(institutions)
        noise.add(number, messages)
        found += [tensor for message in messages.values() for tensor in message.tensors.values()]
    return found


def equal(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("numbers", [range(ROUNDS), range(2, ROUNDS), (0, 3, 4), (0, 0, 1)])
def test_noise_drawn_ahead_has_the_same_bytes(numbers):
    streams = Streams(3)
    plain, ahead = WeightNoise(0.1, streams, FOLDS), WeightNoise(0.1, streams, FOLDS, ahead=DrawnAhead(ROUNDS))
    assert equal(added(plain, numbers), added(ahead, numbers))


def test_institutions_that_change_from_round_to_round_get_their_own_noise():
    streams = Streams(3)
    plain, ahead = WeightNoise(0.1, streams, FOLDS), WeightNoise(0.1, streams, FOLDS, ahead=DrawnAhead(ROUNDS))
    for number, chosen in enumerate([(0, 1), (1, 2), (0,), (0, 1, 2), (2,)]):
        assert equal(added(plain, [number], chosen), added(ahead, [number], chosen))
    assert {number for _, number in ahead.ahead.waiting} == {4}


def test_threads_start_where_there_is_much_to_draw_and_change_no_byte(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    started, pool = [], weight_noise.ThreadPoolExecutor
    monkeypatch.setattr(weight_noise, "ThreadPoolExecutor", lambda count: started.append(count) or pool(count))
    few = added(WeightNoise(0.1, Streams(3), FOLDS), [0])
    assert not started
    monkeypatch.setattr(weight_noise, "WORTH_THREADS", 1)
    assert equal(added(WeightNoise(0.1, Streams(3), FOLDS), [0]), few)
    assert started == [3]


@pytest.mark.parametrize("secret", ["", "of a site"])
@pytest.mark.parametrize("ahead", [False, True])
def test_the_scale_is_the_standard_deviation_whoever_draws(secret, ahead):
    streams = Streams(3, secret=secret)

    def drawn(scale):
        noise = WeightNoise(scale, streams, FOLDS, ahead=DrawnAhead(ROUNDS) if ahead else None)
        return torch.cat([tensor.flatten() for tensor in added(noise, [0, 1], range(40))])

    unit = drawn(1.0)
    assert unit.std() == pytest.approx(1, abs=0.05)
    torch.testing.assert_close(drawn(0.1), 0.1 * unit)


def test_nothing_is_drawn_for_rounds_after_the_last_and_each_draw_is_used():
    drawn = []

    def draw(stream, shape, number):
        drawn.append((stream, number, threading.current_thread() is threading.main_thread()))
        return torch.zeros(shape)

    ahead = DrawnAhead(ROUNDS)
    for number in range(ROUNDS):
        ahead.take(draw, [((0, 0, "w"), (4, 3)), ((1, 0, "w"), (4, 3))], number)
    assert sorted(drawn) == [((code, 0, "w"), number, False) for code in (0, 1) for number in range(ROUNDS)]
    assert not ahead.waiting


def test_one_round_is_drawn_ahead_where_more_do_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for most, rounds in ((10, 1), (130, 2), (10_000, 3)):  # a draw of 48 bytes takes 64
        monkeypatch.setattr(drawn_ahead, "MOST_BYTES", most)
        ahead = DrawnAhead(ROUNDS)
        ahead.take(lambda _stream, shape, _number: torch.zeros(shape), [((0, 0, "w"), (4, 3))], 0)
        assert ahead.waiting == [((0, 0, "w"), number) for number in range(1, rounds + 1)]


def test_several_senders_of_one_round_keep_each_other_s_draws():
    streams = Streams(3)
    plain, ahead = WeightNoise(0.1, streams, FOLDS), WeightNoise(0.1, streams, FOLDS, ahead=DrawnAhead(ROUNDS))
    for number in range(ROUNDS):
        for sender in (0, 1):
            assert equal(added(plain, [number], [sender]), added(ahead, [number], [sender]))
    assert not ahead.ahead.waiting


@pytest.mark.gpu
def test_page_locked_memory_that_is_used_again_holds_the_same_noise():
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    streams, shape = Streams(3), (1, 1000, 1000)
    plain, ahead = WeightNoise(0.1, streams, (0,)), WeightNoise(0.1, streams, (0,), ahead=DrawnAhead(20))
    for number in range(20):
        found = []
        for noise in (plain, ahead):
            weights = torch.zeros(shape, device="cuda:0")
            noise.add(number, {0: Message({"w": weights})})
            found.append(weights)
        assert torch.equal(*found)


def test_a_draw_that_fails_ends_the_training():
    def draw(*_):
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        DrawnAhead(ROUNDS).take(draw, [((0, 0, "w"), (3,))], 0)


def test_a_processor_draws_when_it_needs_the_numbers():
    assert DrawnAhead.on("cpu", 3) is None
    assert DrawnAhead.on("cuda:0", 3) is not None
    assert DrawnAhead.on("cuda:0", 3, fraction=0.5) is None
