"""FedSage+'s count loss, layers and dropout."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from brainfed.inpainting.fedsage.draws import Draws
from brainfed.inpainting.fedsage.losses import count_loss
from brainfed.models.fedsage_generator import GeneratorShape, MissingNeighbourGenerator
from reference.fedsage import smooth_l1
from support.samples.fedsage_inputs import cohort


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
