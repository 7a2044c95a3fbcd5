"""What a script is certain to import, and nothing else; hundreds of jobs pay for each import with seconds."""

import json
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from brainfed.forking import server
from brainfed.forking.server import HERE, certain_imports
from brainfed.methods import METHODS, inpainter_of


def imports_of(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(text)
    return set(certain_imports(script))


def test_statements_at_the_top_and_in_the_one_block_count(tmp_path):
    text = "import os\nimport numpy\nwith job(snakemake) as running:\n    from scipy.stats import norm\n"
    assert imports_of(tmp_path, text) == {"numpy", "scipy.stats"}


def test_statements_that_may_not_run_do_not_count(tmp_path):
    text = "if True:\n        import numpy\ndef later():\n        import scipy\n# import pandas\nx = 'import torch'\n"
    assert imports_of(tmp_path, text) == set()


def test_imports_of_modules_of_the_workflow_count_and_those_inside_its_functions_do_not(tmp_path):
    found = imports_of(tmp_path, "from brainfed.runtime.jobs import run_job\n")
    assert "torch" not in found and "threadpoolctl" not in found
    assert "torch" in imports_of(tmp_path, "from brainfed.models import GCN\n")


def test_a_name_from_a_door_leads_to_its_module_and_to_no_other(tmp_path):
    assert imports_of(tmp_path, "from brainfed.runtime import UserError\n") == {"lazy_loader"}
    several = "from brainfed.runtime import (\n    UserError,  # light\n    read_table as read,\n)\n"
    assert server.LAYERS[0] <= imports_of(tmp_path, several)
    entry = "x = 'brainfed.models:GCN'\n"
    assert "torch" in imports_of(tmp_path, entry)


def test_what_reads_tables_is_imported_before_the_first_of_them(tmp_path):
    found = imports_of(tmp_path, "from brainfed.runtime import read_table\n")
    assert server.LAYERS[0] <= found and "torch" not in found


def test_an_entry_point_in_the_parameters_counts(tmp_path):
    text = "snakemake = loads(b'\\x8c\\x05entry\\x94\\x8c\\x20brainfed.methods.gcn.train:train_fedgcn\\x94')\n"
    assert "torch" in imports_of(tmp_path, text)


# With empty modules in the place of all other packages: what these import is not asked, and takes seconds.
IMPORTED = """
import json, os, sys
from importlib.machinery import ModuleSpec
from unittest.mock import MagicMock

class Finder:
    def find_spec(self, name, path, target=None):
        root = name.partition(".")[0]
        return None if root in ("brainfed", "lazy_loader", *sys.stdlib_module_names) else ModuleSpec(name, self)

    def create_module(self, spec):
        made = MagicMock(name=spec.name, __name__=spec.name, __path__=[])
        made.Module = made.nn.Module = type("Module", (), {})
        return made

    def exec_module(self, module):
        pass

sys.meta_path.insert(0, Finder())
for path, text in json.loads(sys.argv[1]).items():
    if os.fork() == 0:
        exec(text, {})
        names = [name for name, module in sys.modules.items() if isinstance(module, MagicMock)]
        print(json.dumps([path, names]), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0, path
"""


@pytest.mark.parametrize(
    "names",
    [
        ["build_graph", "draw_connectivity", "fuse_graph", "write_report"],
        pytest.param(["*"], marks=pytest.mark.full("All scripts import all of the library.")),
    ],
)
def test_a_script_imports_what_is_certain(names):
    scripts = [script for name in names for script in (HERE / "scripts").glob(f"{name}.py")]
    texts = {str(script): "\n".join(map(str.strip, statements_of(script))) for script in scripts}
    command = [sys.executable, "-c", IMPORTED, json.dumps(texts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    assert found.keys() == texts.keys()
    assert [
        path for path, imported in found.items() if not certain_imports(Path(path)) <= {*imported, "lazy_loader"}
    ] == []


def statements_of(script):
    lines = script.read_text().splitlines()
    return [line for line in lines if line.lstrip().startswith(("from ", "import ")) and not line.endswith("(")]


LINEAR = ("majority", "phenotype", "motion", "ridge", "svm", "logistic")
UNUSED = {"torch_geometric", "nilearn", "nibabel", "statsmodels", "matplotlib", "networkx", "pydantic", "opacus"}
BY_A_JOB = """
import json, sys
from brainfed.runtime import resolve

exec(sys.argv[1])
found = []
for entries in json.loads(sys.argv[2]):
    for entry in entries:
        resolve(entry)
    found.append([*sys.modules])
print(json.dumps(found))
"""


def by_statements(groups, tmp_path):
    """What training jobs of some entry points import, and those before them."""
    script = (HERE / "scripts" / "train_method.py").read_text()
    entries = [[f"# {entry}\n" for group in groups[: place + 1] for entry in group] for place in range(len(groups))]
    return [imports_of(tmp_path, script + "".join(lines)) for lines in entries]


def by_jobs(groups, _):
    """The same with what other packages import."""
    statements = "\n".join(map(str.strip, statements_of(HERE / "scripts" / "train_method.py")))
    command = [sys.executable, "-c", BY_A_JOB, statements, json.dumps(groups)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [set(names) for names in json.loads(done.stdout)]


@pytest.mark.parametrize(
    "look", [by_statements, pytest.param(by_jobs, marks=pytest.mark.full("It imports all that trains."))]
)
def test_a_training_job_imports_nothing_that_it_does_not_use(look, tmp_path):
    linear = [METHODS[name].entry for name in LINEAR]
    graphs = [method.entry for method in METHODS.values() if method.needs == ("connectomes",)]
    rest = [method.entry for name, method in METHODS.items() if name not in LINEAR and method.entry not in graphs]
    generators = [inpainter.train for method in METHODS.values() if (inpainter := inpainter_of(method))]
    found = look([linear, rest, generators, graphs], tmp_path)
    for_linear, for_methods, for_generators, for_graphs = (
        {name.partition(".")[0] for name in names} for names in found
    )
    assert "sklearn" in for_linear and "torch" not in for_linear
    assert "torch" in for_methods
    assert not UNUSED & for_generators
    assert UNUSED & for_graphs <= {"torch_geometric", "networkx"}, "GIN's convolutions, the minimum cut"


@pytest.mark.parametrize(("cuda", "left"), [("None", {"numpy", "torch"}), ("'13.0'", {"numpy"})])
def test_torch_is_not_forked_where_it_computes_on_gpus(tmp_path, monkeypatch, cuda, left):
    (tmp_path / "version.py").write_text(f"debug = False\ncuda: Optional[str] = {cuda}\nhip = None\n")
    spec = ModuleSpec("torch", None)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(server.importlib.util, "find_spec", lambda _: spec)
    assert server._without_cuda(frozenset({"numpy", "torch"})) == left
