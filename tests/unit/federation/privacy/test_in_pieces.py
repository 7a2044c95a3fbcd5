"""Noise that is drawn in pieces is the noise of one draw, to the last bit."""

import pytest
import torch

from brainfed.federation.privacy import in_pieces
from brainfed.federation.privacy.in_pieces import GROUP, PIECE, WHOLE, add_normal

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
    monkeypatch.setattr(in_pieces, "WHOLE", PIECE)


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
