"""Noise drawn in pieces, ahead or of a private release is the noise of one draw."""

import threading

import numpy as np
import pytest
import torch
from scipy.stats import kstest

from brainfed.federation import DrawnAhead, Message, WeightNoise, private_normal
from brainfed.federation import _noise as noise_module
from brainfed.federation._noise import GROUP, NOISE, PIECE, WHOLE, add_normal
from brainfed.runtime import Streams

ROWS_OF_256 = PIECE // 256

SHAPES = [
    (),
    (3,),
    (PIECE,),
    (PIECE + 1,),
    (PIECE + GROUP - 1,),
    (PIECE + GROUP,),
    (3 * PIECE + 5,),
    (ROWS_OF_256 + 1, 256),
    (5 * ROWS_OF_256 + 7, 256),
    (2 * PIECE + 1, 3),
    (4 * PIECE // 7, 7),
    (40, 19_900),
    (0, 5),
    (3, PIECE),
    (2, PIECE // 2, 3),
    (1000, 5, 64),
]


@pytest.fixture(autouse=True)
def _pieces_of_all_but_small_weights(monkeypatch):
    monkeypatch.setattr(noise_module, "WHOLE", PIECE)


def by_one_draw(weights, scale, seed):
    noise = torch.randn(weights.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)
    return weights.clone().add_(noise.to(weights), alpha=scale)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pieces_are_one_draw(shape, dtype):
    weights = torch.linspace(-1, 1, torch.Size(shape).numel(), dtype=dtype).reshape(shape)
    wanted = by_one_draw(weights, 0.3, 7)
    add_normal(weights, 0.3, torch.Generator().manual_seed(7))
    assert torch.equal(weights, wanted)


@pytest.mark.parametrize("seed", range(20))
def test_pieces_of_any_width_and_length_are_one_draw(seed):
    drawn = torch.Generator().manual_seed(seed)
    width, length = (int(torch.randint(1, most, (), generator=drawn)) for most in (900, 3 * PIECE))
    weights = torch.zeros(-(-length // width) + 1, width)
    wanted = by_one_draw(weights, 1.0, seed)
    add_normal(weights, 1.0, torch.Generator().manual_seed(seed))
    assert torch.equal(weights, wanted)


def test_weights_that_are_not_in_one_piece_of_memory():
    kept = torch.zeros(64, 5, 2000)
    weights = kept.permute(2, 1, 0)[:, ::2]
    wanted = by_one_draw(weights, 0.1, 3)
    add_normal(weights, 0.1, torch.Generator().manual_seed(3))
    assert torch.equal(weights, wanted)
    assert kept[:, 1].eq(0).all()


def test_weights_as_large_as_those_that_are_drawn_in_pieces(monkeypatch):
    monkeypatch.undo()
    weights = torch.zeros(WHOLE // 256 + 3, 256)
    wanted = by_one_draw(weights, 0.1, 5)
    add_normal(weights, 0.1, torch.Generator().manual_seed(5))
    assert torch.equal(weights, wanted)


def test_the_generator_stands_where_one_draw_leaves_it():
    pieces, whole = (torch.Generator().manual_seed(1) for _ in range(2))
    add_normal(torch.zeros(2 * PIECE + 17), 1.0, pieces)
    torch.randn(2 * PIECE + 17, generator=whole)
    assert torch.equal(torch.randn(40, generator=pieces), torch.randn(40, generator=whole))


STREAMS = Streams(0)

ONE, OTHER = (1, 4, 52, 0, 3, "blocks.1.kernels.temporal"), (1, 4, 52, 0, 4, "blocks.2.norm.bias")

"""Two of the 180,000 draws of FGLBC's network of the default size, four institutions and five folds."""


def test_keys_that_agree_in_32_bits_have_noise_of_their_own():
    keys = [STREAMS.key(NOISE, *parts) for parts in (ONE, OTHER)]
    assert keys[0] != keys[1]
    assert keys[0] % 2**32 == keys[1] % 2**32
    # Torch reads these bits alone, which is why it does not draw the noise.
    torches = [torch.randn(64, generator=torch.Generator().manual_seed(key)) for key in keys]
    assert torch.equal(*torches)
    ours = torch.stack([private_normal(STREAMS, (10_000,), *parts) for parts in (ONE, OTHER)])
    assert abs(float(torch.corrcoef(ours)[0, 1])) < 0.05


def test_a_stream_repeats_its_noise_and_no_part_of_its_key_is_left_out():
    first = private_normal(STREAMS, (3, 2), *ONE)
    assert first.shape == (3, 2)
    assert first.dtype == torch.float64
    assert torch.equal(first, private_normal(STREAMS, (3, 2), *ONE))
    for place, part in enumerate(ONE):
        changed = [*ONE[:place], f"{part}x" if isinstance(part, str) else part + 1, *ONE[place + 1 :]]
        assert not torch.equal(first, private_normal(STREAMS, (3, 2), *changed))
    for streams in (Streams(1), Streams(0, 1)):
        assert not torch.equal(first, private_normal(streams, (3, 2), *ONE))


def test_it_is_standard_normal():
    drawn = private_normal(STREAMS, (100_000,), 0).numpy()
    assert kstest(drawn, "norm").pvalue > 0.01
    assert np.isfinite(drawn).all()


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


def waiting(ahead):
    """Streams and rounds whose numbers are drawn, or will be, and were not taken."""
    return [(stream, number) for stream, _, number in ahead._coming]


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
    assert {number for _, number in waiting(ahead.ahead)} == {4}


def test_threads_start_where_there_is_much_to_draw_and_change_no_byte(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    started, pool = [], noise_module.ThreadPoolExecutor
    monkeypatch.setattr(noise_module, "ThreadPoolExecutor", lambda count: started.append(count) or pool(count))
    few = added(WeightNoise(0.1, Streams(3), FOLDS), [0])
    assert not started
    monkeypatch.setattr(noise_module, "WORTH_THREADS", 1)
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
    assert not waiting(ahead)


def test_one_round_is_drawn_ahead_where_more_do_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    for most, rounds in ((10, 1), (130, 2), (10_000, 3)):  # a draw of 48 bytes takes 64
        monkeypatch.setattr(noise_module, "MOST_BYTES", most)
        ahead = DrawnAhead(ROUNDS)
        ahead.take(lambda _stream, shape, _number: torch.zeros(shape), [((0, 0, "w"), (4, 3))], 0)
        assert waiting(ahead) == [((0, 0, "w"), number) for number in range(1, rounds + 1)]


def test_several_senders_of_one_round_keep_each_other_s_draws():
    streams = Streams(3)
    plain, ahead = WeightNoise(0.1, streams, FOLDS), WeightNoise(0.1, streams, FOLDS, ahead=DrawnAhead(ROUNDS))
    for number in range(ROUNDS):
        for sender in (0, 1):
            assert equal(added(plain, [number], [sender]), added(ahead, [number], [sender]))
    assert not waiting(ahead.ahead)


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
