"""Each defence by hand, one that holds and one that fails."""

import pytest
import torch
from torch import Tensor

from brainfed.federation import Message, RobustnessSettings, defence_of, median, trimmed_mean
from brainfed.federation._defences import geometric_median, krum, multi_krum, norm_clipping
from brainfed.federation.strategies import FedAvg


def stack(*rows: list[float]) -> Tensor:
    """(M, 1, P)."""
    return torch.tensor(rows, dtype=torch.float64)[:, None]


def everybody(models: Tensor) -> Tensor:
    return torch.ones(models.shape[:2], dtype=torch.bool)


def equal(models: Tensor) -> Tensor:
    return torch.full(models.shape[:2], 1 / len(models), dtype=torch.float64)


def test_the_median_is_of_each_number_and_of_those_that_take_part():
    models = torch.tensor([[[1.0, 9.0], [1.0, 1.0]], [[5.0, 2.0], [2.0, 2.0]], [[3.0, 4.0], [7.0, 9.0]]])
    present = torch.tensor([[True, True], [True, True], [True, False]])
    assert median(models, present).tolist() == [[3.0, 4.0], [1.5, 1.5]]
    assert median(models, torch.zeros(3, 2, dtype=torch.bool)).tolist() == [[0, 0], [0, 0]]


def test_a_trimmed_mean_leaves_out_both_ends():
    models = stack([1, 10], [2, 40], [3, 20], [6, 90], [100, 60])
    assert trimmed_mean(models, everybody(models), 0.2).tolist() == [[pytest.approx(11 / 3), 40.0]]
    assert trimmed_mean(models, everybody(models), 0.4).tolist() == [[3.0, 40.0]]
    assert trimmed_mean(models[:2], everybody(models[:2]), 0.4).tolist() == [[1.5, 25.0]]


def test_logits_are_defended_element_by_element():
    logits = torch.randn(5, 2, 4, 3, generator=torch.Generator().manual_seed(0))
    present = torch.ones(5, 2, dtype=torch.bool)
    torch.testing.assert_close(median(logits, present), logits.median(dim=0).values)
    middle = logits.sort(dim=0).values[1:4].mean(dim=0)
    torch.testing.assert_close(trimmed_mean(logits, present, 0.2), middle)


def test_krum_takes_the_model_with_the_nearest_neighbours():
    # m = 5, f = 1: two neighbours. Squared distances to them: 1 + 4, 1 + 1, 1 + 4, 4 + 9, far.
    models = stack([0, 0], [1, 0], [2, 0], [4, 0], [50, 50])
    assert krum(models, everybody(models), 0.2).tolist() == [[1, 0]]
    assert multi_krum(models, everybody(models), 0.2).tolist() == [[1.75, 0]]
    assert multi_krum(models, everybody(models), 0.4).tolist() == [[1, 0]]


def test_krum_of_few_takes_one_of_them():
    models = stack([1, 1], [3, 3])
    assert krum(models, everybody(models), 0.25).tolist() == [[1, 1]]
    assert krum(models[:1], everybody(models[:1]), 0.25).tolist() == [[1, 1]]


def test_the_geometric_median_of_a_triangle_is_its_fermat_point():
    side = 3**0.5 / 2
    models = stack([1, 0], [-0.5, side], [-0.5, -side])
    torch.testing.assert_close(geometric_median(models, equal(models)), torch.zeros(1, 2, dtype=torch.float64))
    line = stack([0, 0], [1, 0], [100, 0])
    torch.testing.assert_close(
        geometric_median(line, equal(line)), torch.tensor([[1.0, 0.0]], dtype=torch.float64), atol=1e-3, rtol=0
    )
    weights = torch.tensor([[0.6], [0.2], [0.2]], dtype=torch.float64)
    assert geometric_median(line, weights).norm() < 1e-3


def test_a_geometric_median_of_equal_models_is_the_model():
    models = stack([2, 3], [2, 3], [2, 3])
    torch.testing.assert_close(geometric_median(models, equal(models)), models[0])


def test_updates_are_clipped_to_their_median_length():
    last = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    models = last + stack([1, 0], [0, 2], [0, -40])
    # Lengths 1, 2 and 40: the last becomes 2 long.
    torch.testing.assert_close(norm_clipping(models, equal(models), last), last + torch.tensor([[1 / 3, 0.0]]))
    still = last.expand(3, 1, 2)
    assert torch.equal(norm_clipping(still, equal(still), last), last)


BENIGN = [[1.0, 2.0], [1.1, 2.1], [0.9, 1.9], [1.0, 2.2]]
RULES = ["median", "trimmed_mean", "krum", "multi_krum", "geometric_median", "norm_clipping"]


def aggregated(defence, *rows, samples=None, last=(1.0, 1.5), **settings):
    """The model (2,) of a server that starts from `last` and receives two tensors (1, 1) an institution."""
    start = {name: torch.tensor([[value]]) for name, value in zip("ab", last, strict=True)}
    rule = defence_of(RobustnessSettings(defence=defence, **settings))
    server = FedAvg(tuple(range(len(rows))), start, defence=rule)
    replies = {
        code: Message(
            {name: torch.tensor([[value]]) for name, value in zip("ab", row, strict=True)},
            torch.tensor([5 if samples is None else samples[code]]),
        )
        for code, row in enumerate(rows)
    }
    server.aggregate(0, replies)
    return torch.tensor([server.tensors[name].item() for name in "ab"])


BENIGN_MEAN = torch.tensor(BENIGN).mean(dim=0)


def test_one_far_upload_breaks_the_mean():
    assert (aggregated("none", *BENIGN, [1e4, -1e4]) - BENIGN_MEAN).norm() > 1000


@pytest.mark.parametrize("defence", RULES)
@pytest.mark.parametrize("far", [1e4, float("inf"), float("nan")])
def test_every_defence_holds_against_one_far_upload(defence, far):
    assert (aggregated(defence, *BENIGN, [far, -far]) - BENIGN_MEAN).norm() < 0.5


@pytest.mark.parametrize("defence", ["krum", "multi_krum"])
def test_krum_fails_against_a_majority_of_equal_attackers(defence):
    poisoned = aggregated(defence, *BENIGN[:2], [9.0, 9.0], [9.0, 9.0], [9.0, 9.0])
    assert (poisoned - torch.tensor([9.0, 9.0])).norm() < 5
    assert (poisoned - BENIGN_MEAN).norm() > 5


def test_ofom_hides_a_model_between_that_the_median_bounds_and_krum_refuses():
    far = [41.0, 42.0]
    hidden = torch.tensor([*BENIGN, far]).mean(dim=0).tolist()
    assert (aggregated("none", *BENIGN, far, hidden) - BENIGN_MEAN).norm() > 5
    for defence in ("median", "krum", "geometric_median"):
        assert (aggregated(defence, *BENIGN, far, hidden) - BENIGN_MEAN).norm() < 0.5
    # Multi-Krum that expects one poisoned model of six keeps the hidden one.
    assert (aggregated("multi_krum", *BENIGN, far, hidden, trim=0.1) - BENIGN_MEAN).norm() > 1


@pytest.mark.parametrize("defence", RULES)
def test_institutions_without_samples_have_no_say_and_without_any_the_model_stays(defence):
    samples = [5, 5, 5, 5, 0]
    with_absent = aggregated(defence, *BENIGN, [70.0, 70.0], samples=samples)
    torch.testing.assert_close(with_absent, aggregated(defence, *BENIGN))
    assert aggregated(defence, *BENIGN, samples=[0] * 4).tolist() == [1.0, 1.5]


def test_without_a_defence_the_server_is_plain():
    assert defence_of(RobustnessSettings()) is None


def test_a_share_to_trim_leaves_some():
    for trim in (0.0, 0.5):
        with pytest.raises(ValueError, match=r"trim: expected a share above 0 and below 0\.5 for defence: krum"):
            RobustnessSettings(defence="krum", trim=trim)
        assert RobustnessSettings(defence="median", trim=trim).trim == trim
