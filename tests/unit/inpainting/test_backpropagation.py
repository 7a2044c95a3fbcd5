import subprocess
import sys

import torch

from brainfed.inpainting.backpropagation import carried

WITHOUT_SYMPY = """
import sys, torch
from brainfed.inpainting.backpropagation import carried
tensor = torch.ones(2, 3, requires_grad=True)
carried(torch.ones(2, 3), tensor).backward()
print("sympy" in sys.modules)
"""


def test_the_gradient_that_is_carried_on_is_that_of_backward_to_the_byte():
    random = torch.Generator().manual_seed(0)
    weight, rows, gradient = (torch.randn(*shape, generator=random) for shape in ((4, 3), (5, 4), (5, 3)))
    found = []
    for hand_on in (lambda made: made.backward(gradient), lambda made: carried(gradient, made).backward()):
        own = weight.clone().requires_grad_()
        hand_on(torch.tanh(rows @ own))
        found.append(own.grad)
    assert torch.equal(*found) and found[0].abs().sum() > 0


def test_it_imports_no_symbolic_algebra():
    command = [sys.executable, "-c", WITHOUT_SYMPY]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "False"
