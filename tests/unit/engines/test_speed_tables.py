"""The tables of benchmarks/training_speed.py and inpainting_speed.py: each kind of variant has a row; rounds add up."""

import math
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import inpainting_speed
import matrix_rate
import training_speed
from training_speed import UNCOUNTED

SHOWN = ("ridge-local", "logistic-federated", "centralgcn", "fedni")


@pytest.fixture(autouse=True)
def _as_many_threads_afterwards():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def printed(script, arguments, monkeypatch, capsys):
    """The words of each line that a script prints, where the product that it measures against is a small one."""
    monkeypatch.setattr(matrix_rate, "CPU_SIZE", 64)
    monkeypatch.setattr(sys, "argv", [script.__name__, *arguments])
    script.main()
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_a_variant_of_each_kind_has_a_row(monkeypatch, capsys):
    lines = printed(training_speed, [*SHOWN, "--features", "24", "--rounds", "2"], monkeypatch, capsys)
    rows = {line[0]: [float(number) for number in line[1:]] for line in lines[2:]}
    assert rows.keys() == {*SHOWN}
    for variant, (gemm, rate, share, share_of_a_round, seconds) in rows.items():
        assert gemm > 0, variant
        assert seconds >= 0, variant
        assert [math.isnan(each) for each in (rate, share, share_of_a_round)] == [variant in UNCOUNTED] * 3


@pytest.mark.parametrize(
    "method", ["fedni", pytest.param("fedsage", marks=pytest.mark.full("The table is the same for each generator."))]
)
def test_a_generator_has_a_row(method, monkeypatch, capsys):
    lines = printed(inpainting_speed, ["--method", method, "--features", "24", "--rounds", "2"], monkeypatch, capsys)
    numbers = [float(number) for number in lines[-1]]
    assert len(numbers) == 5
    assert all(math.isfinite(number) for number in numbers)
    assert numbers[0] > 0


def test_other_numbers_of_rounds_repeat_all_laps_but_the_first():
    laps = [5.0, 1.0, 2.0, 9.0, 6.0, 3.0, 3.0, 3.0]
    assert inpainting_speed.seconds_of(laps, 4, 4) == 5 + 3 * 2 + 6 + 3 * 3
    assert inpainting_speed.seconds_of(laps, 4, 10) == 5 + 9 * 2 + 6 + 9 * 3
