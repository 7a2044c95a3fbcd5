import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from brainfed.inpainting.fedni import carried

TESTS = str(Path(__file__).resolve().parents[2])
TRAINED = """
import sys
from dataclasses import replace
from brainfed.inpainting import InpaintingSettings
from brainfed.inpainting.fedni import training as fedni
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.runtime.jobs import Run
from support.samples.fedsage_inputs import QUICK, cohort
from support.samples.inpainting_inputs import inpainting_inputs
fedsage.train(cohort(), QUICK, Run())
fedsage.train(cohort(), replace(QUICK, exchange="raw"), Run())
fedni.train(inpainting_inputs(), InpaintingSettings(rounds=1, local_epochs=2), Run())
print("sympy" in sys.modules)
"""


@pytest.mark.parametrize("rows", [0, 5])
@pytest.mark.parametrize("content", ["numbers", "not all finite"])
def test_the_gradient_that_is_carried_on_is_that_of_backward_to_the_byte(rows, content):
    random = torch.Generator().manual_seed(0)
    weight, inputs, gradient = (torch.randn(*shape, generator=random) for shape in ((4, 3), (rows, 4), (rows, 3)))
    if content != "numbers" and rows:
        gradient[0, 0], gradient[1, 1] = torch.nan, torch.inf
    found = []
    for hand_on in (lambda made: made.backward(gradient), lambda made: carried(gradient, made).backward()):
        own = weight.clone().requires_grad_()
        hand_on(torch.tanh(inputs @ own))
        found.append(own.grad)
    torch.testing.assert_close(*found, rtol=0, atol=0, equal_nan=True)
    assert bool(found[0].any()) == (rows > 0)


@pytest.mark.full("A new interpreter trains three generators, and what it guards is the time of an import.")
def test_generators_are_trained_without_symbolic_algebra():
    command = [sys.executable, "-c", TRAINED]
    environment = {**os.environ, "PYTHONPATH": TESTS}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.strip().splitlines()[-1] == "False"
