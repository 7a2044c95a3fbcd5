"""Each script of the imaging rules depends on the modules that it runs, and on no other of their room."""

from pathlib import Path

import pytest

from brainfed.runtime.digests import import_closure

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
WRITES = {"shard", "region_series", "region_signal"}
EXTRACTS = {"extract_shard", "extraction", "scan", "confounds", "coverage", "atlas", "region_table"}


@pytest.mark.parametrize(
    ("script", "modules"),
    [
        ("read_series", WRITES | {"read_shard", "roi_series", "region_table"}),
        ("extract_series", WRITES | EXTRACTS),
        ("compute_connectivity", {"series_files", "connectivity", "settings", "standardise", "region_signal"}),
        (
            "fit_connectivity",
            {"series_files", "settings", "connectivity", "tangent", "rfe", "standardise", "region_signal"},
        ),
        ("include_subjects", set()),
    ],
)
def test_a_script_imports_what_it_runs(script, modules):
    closure = import_closure(f"scripts/{script}.py", base=WORKFLOW)
    assert {path.stem for path in closure if path.parent.name == "imaging"} == modules
