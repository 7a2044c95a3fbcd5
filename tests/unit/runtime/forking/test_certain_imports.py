"""What a script is certain to import, and nothing else."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from brainfed.runtime.forking import server
from brainfed.runtime.forking.imports import HERE, certain_imports

SCRIPTS = [
    HERE / "scripts" / f"{name}.py" for name in ("build_graph", "draw_connectivity", "fuse_graph", "write_report")
]


def imports_of(tmp_path: Path, text: str) -> set[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    return set(certain_imports(script))


def test_statements_at_the_top_and_in_the_one_block_count(tmp_path: Path) -> None:
    text = "import os\nimport numpy\nwith job(snakemake) as running:\n    from scipy.stats import norm\n"
    assert imports_of(tmp_path, text) == {"numpy", "scipy.stats"}


def test_statements_that_may_not_run_do_not_count(tmp_path: Path) -> None:
    text = "if True:\n        import numpy\ndef later():\n        import scipy\n# import pandas\nx = 'import torch'\n"
    assert imports_of(tmp_path, text) == set()


def test_imports_of_modules_of_the_workflow_count_and_those_inside_its_functions_do_not(tmp_path: Path) -> None:
    found = imports_of(tmp_path, "from brainfed.runtime.jobs.job import run_job\n")
    assert "torch" not in found and "threadpoolctl" not in found
    assert "torch" in imports_of(tmp_path, "from brainfed.models.gcn import GCN\n")


def test_what_reads_tables_is_imported_before_the_first_of_them(tmp_path: Path) -> None:
    found = imports_of(tmp_path, "from brainfed.runtime.artefacts import read_table\n")
    assert server.LAYERS[0] <= found and "torch" not in found


def test_an_entry_point_in_the_parameters_counts(tmp_path: Path) -> None:
    text = "snakemake = loads(b'\\x8c\\x05entry\\x94\\x8c\\x20brainfed.methods.gcn.train:train_fedgcn\\x94')\n"
    assert "torch" in imports_of(tmp_path, text)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_imports_what_is_certain(script: Path, tmp_path: Path) -> None:
    """Of all its statements, those in functions of what it imports included, none runs but those found."""
    statements = [
        line.strip() for line in script.read_text().splitlines() if line.lstrip().startswith(("from ", "import "))
    ]
    text = "\n".join(statement for statement in statements if not statement.endswith("("))
    (tmp_path / "imports.py").write_text(text + "\nimport sys\nprint(*sys.modules)\n")
    done = subprocess.run([sys.executable, tmp_path / "imports.py"], capture_output=True, text=True, check=True)
    assert certain_imports(tmp_path / "imports.py") <= set(done.stdout.split())


@pytest.mark.parametrize(("cuda", "left"), [("None", {"numpy", "torch"}), ("'13.0'", {"numpy"})])
def test_torch_is_not_forked_where_it_computes_on_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuda: str, left: set[str]
) -> None:
    (tmp_path / "version.py").write_text(f"debug = False\ncuda: Optional[str] = {cuda}\nhip = None\n")
    spec = ModuleSpec("torch", None)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(server.importlib.util, "find_spec", lambda _: spec)
    assert server._without_cuda(frozenset({"numpy", "torch"})) == left
