"""Imports of a training job before its first round: seconds that each of hundreds of jobs pays."""

import json
import subprocess
import sys
from pathlib import Path

import brainfed
from brainfed.methods.inpainter import inpainter_of
from brainfed.methods.registry import METHODS

LINEAR = ("majority", "phenotype", "motion", "ridge", "svm", "logistic")
SCRIPT = Path(brainfed.__file__).parents[1] / "scripts" / "train_method.py"
UNUSED = ("torch_geometric", "nilearn", "nibabel", "statsmodels", "matplotlib", "networkx", "pydantic", "opacus")

IMPORTS = """
import ast, json, sys
from brainfed.runtime.entry import resolve

script = ast.parse(open(sys.argv[1]).read())
statements = [node for node in ast.walk(script) if isinstance(node, (ast.Import, ast.ImportFrom))]
exec(compile(ast.Module(statements, []), sys.argv[1], "exec"))
imported = []
for entries in json.loads(sys.argv[2]):
    for entry in entries:
        resolve(entry)
    imported.append(sorted({name.partition(".")[0] for name in sys.modules}))
print(json.dumps(imported))
"""


def test_a_training_job_imports_nothing_that_it_does_not_use():
    linear = [METHODS[name].entry for name in LINEAR]
    graphs = [method.entry for method in METHODS.values() if method.needs == ("connectomes",)]
    rest = [method.entry for name, method in METHODS.items() if name not in LINEAR and method.entry not in graphs]
    generators = [inpainter.train for method in METHODS.values() if (inpainter := inpainter_of(method))]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS, SCRIPT, json.dumps([linear, rest, generators, graphs])],
        capture_output=True,
        text=True,
        check=True,
    )
    for_linear, for_methods, for_generators, for_graphs = map(set, json.loads(done.stdout))
    assert "torch" not in for_linear
    assert "torch" in for_methods
    assert not set(UNUSED) & for_generators
    assert set(UNUSED) & for_graphs <= {"torch_geometric", "networkx"}, "GIN's convolutions, the minimum cut"
