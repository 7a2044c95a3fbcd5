"""The example of the guide runs, and records what crosses."""

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from brainfed.runtime.jobs.run import Run
from brainfed.samples.results import check
from method_inputs import method_inputs

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "adding-a-method.md"
NAMES = ("brainfed.methods.mine", "brainfed.methods.mine.mymethod", "brainfed.methods.mine.train")


@pytest.fixture
def guide(monkeypatch):
    """The guide's two modules."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    for name, source in zip(NAMES, ["", *blocks], strict=True):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, str(GUIDE), "exec"), module.__dict__)
    return sys.modules[NAMES[1]], sys.modules[NAMES[2]]


@pytest.mark.parametrize("split", ["random", "leave-one-site-out"])
def test_the_example_scores_every_tested_subject(guide, split):
    declaration, training = guide
    inputs = method_inputs(60, 9, split=split)
    outcome = training.train(inputs, declaration.MyMethodSettings(), Run())
    check(inputs, outcome)
    assert len(np.unique(outcome.scores[np.isfinite(outcome.scores)])) > 2
    assert {row["name"] for row in outcome.crossings} == set(declaration.METHOD.shared_tensors)
