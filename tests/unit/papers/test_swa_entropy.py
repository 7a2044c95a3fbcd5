"""Entropy of a server's weights: 1 for a plain mean, also where an institution takes no part."""

from math import log

import pandas as pd
import pytest

from brainfed.papers._fglbc import shares_of_mean
from brainfed.reporting import ShownVariant


@pytest.fixture
def variant(tmp_path):
    def made(weights):
        """Of {fold: weights of the institutions}."""
        rows = [(fold, f"i{place}", 1, each) for fold, own in weights.items() for place, each in enumerate(own)]
        path = tmp_path / "history.parquet"
        pd.DataFrame(rows, columns=["fold", "institution", "round", "weight"]).to_parquet(path)
        return shares_of_mean(ShownVariant("fglbc", "fglbc", "FGLBC", "federated", histories=(str(path),)))

    return made


def test_a_plain_mean_has_an_entropy_of_one(variant):
    found = variant({0: [0.25] * 4, 1: [0.25] * 4})
    assert found.entropy == pytest.approx(1)
    assert found.least == pytest.approx(1)
    assert (found.largest, found.equal) == (0.25, 0.25)


def test_an_institution_that_takes_no_part_does_not_lower_it(variant):
    """Leave-one-site-out: in each fold one institution has no training subjects."""
    found = variant({left: [0.0 if place == left else 1 / 3 for place in range(4)] for left in range(4)})
    assert found.entropy == pytest.approx(1)
    assert found.equal == pytest.approx(1 / 3)


def test_other_weights_have_less(variant):
    found = variant({0: [0.5, 0.5], 1: [0.75, 0.25]})
    uneven = -(0.75 * log(0.75) + 0.25 * log(0.25)) / log(2)
    assert found.entropy == pytest.approx((1 + uneven) / 2)
    assert found.least == pytest.approx(uneven)
    assert found.largest == 0.75


def test_one_institution_has_no_weights(variant):
    assert variant({0: [1.0]}) is None
