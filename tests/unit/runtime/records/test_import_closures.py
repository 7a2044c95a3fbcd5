"""Each script of the imaging rules depends on the modules that it runs, and on no other of their room."""

from pathlib import Path

import pytest

from brainfed.methods.inpainter import inpainter_of
from brainfed.methods.registry import METHODS
from brainfed.runtime.records.digests import import_closure

WORKFLOW = Path(__file__).resolve().parents[4] / "workflow"
WRITES = {"series/shard", "series/region_series", "series/region_signal"}
READS = {"scans/region_table"} | {
    f"series/{name}" for name in ("read_shard", "roi_series", "text", "header", "arrays", "matlab_5", "orientation")
}
MEASURES = {f"morphometry/{name}" for name in ("freesurfer_table", "freesurfer_stats", "measure_names", "features")}
EXTRACTS = {f"extraction/{name}" for name in ("extract_shard", "extraction", "confounds", "temporal_snr")} | {
    f"scans/{name}"
    for name in (
        *("scan", "intact", "brain_mask", "space", "coverage", "repetition_time"),
        *("atlas", "probabilistic_atlas", "region_table", "region_means", "label_means", "map_means"),
    )
}
EXTRACTS_RUNS = {f"extraction/{name}" for name in ("bids_extraction", "fmriprep_confounds", "join_runs")}
CONNECTS = {"settings", "connectivity", "series/files", "series/standardise", "series/region_signal"}
COVARIES = {f"tangent/{name}" for name in ("covariances", "shrunk_correlation", "symmetric")} | {
    f"series/{name}" for name in ("files", "standardise", "region_signal")
}
TANGENT = COVARIES | {"tangent/reference", "tangent/vectors"}
FITS = {f"fitted/{name}" for name in ("combat", "rfe")}
COMPARES = CONNECTS | {"quality/typicality"}


@pytest.mark.parametrize(
    ("script", "modules"),
    [
        ("read_series", WRITES | READS),
        ("extract_series", WRITES | EXTRACTS),
        ("extract_runs", WRITES | EXTRACTS | EXTRACTS_RUNS),
        ("ingest_phenotypes", set()),
        ("compute_connectivity", CONNECTS),
        ("compute_covariances", COVARIES),
        ("compute_tangent", TANGENT),
        ("fit_connectivity", TANGENT | FITS | {"settings"}),
        ("read_measures", WRITES | MEASURES | {"morphometry/measures"}),
        ("compute_morphometry", set()),
        ("build_connectomes", set()),
        ("join_series", {f"series/{name}" for name in ("joined", "settings", "files", "standardise", "region_signal")}),
        ("choose_public", set()),
        ("include_subjects", set()),
        ("list_issues", set()),
        ("measure_scans", COMPARES),
        ("measure_quality", set()),
        ("relate_motion", COMPARES | {"quality/qc_fc"}),
    ],
)
def test_a_script_imports_the_modules_that_it_runs(script, modules):
    files = closure_of(f"scripts/{script}.py")
    assert {file.removeprefix("imaging/") for file in files if file.startswith("imaging/")} == modules


def test_an_edit_of_the_bids_listing_extracts_nothing_anew():
    for script in ("extract_runs", "extract_series", "ingest_phenotypes", "simulate_scans"):
        assert not {"cohort/sources/bids/listing", "cohort/sources/bids/tree"} & closure_of(f"scripts/{script}.py")


def closure_of(*roots):
    package = WORKFLOW / "brainfed"
    files = (path for path in import_closure(*roots, base=WORKFLOW) if path.is_relative_to(package))
    return {path.relative_to(package).with_suffix("").as_posix() for path in files}


@pytest.mark.parametrize("name", ["majority", "ridge", "fedgcn"])
def test_an_edit_of_inpainting_reruns_no_method_that_has_none(name):
    closure = closure_of("scripts/train_method.py", METHODS[name].entry)
    assert {file for file in closure if file.startswith("inpainting/")} == {"inpainting/fusing/fused"}


def test_an_edit_of_inpainting_builds_no_graph_and_scores_nothing_anew():
    for script in ("build_graph", "compute_connectivity", "split_subjects", "score_experiment"):
        assert not {file for file in closure_of(f"scripts/{script}.py") if file.startswith("inpainting/")}


def test_an_edit_of_drawing_or_fusing_trains_no_fedni_generator_anew():
    trains = closure_of("scripts/train_generator.py", inpainter_of(METHODS["fedni"]).train)
    asks = closure_of("scripts/fuse_graph.py", inpainter_of(METHODS["fedni"]).load)
    assert {"inpainting/fusing/fuse", "inpainting/fusing/allotment", "inpainting/fedni/drawing"} <= asks - trains
    assert {"inpainting/fedni/training", "inpainting/fedni/clients"} <= trains - asks


def test_an_edit_of_one_inpainter_trains_no_generator_of_the_other():
    fedni = closure_of("scripts/train_generator.py", inpainter_of(METHODS["fedni"]).train)
    assert not {file for file in fedni if "fedsage" in file}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_an_edit_of_a_paper_trains_nothing_anew(name):
    closure = closure_of("scripts/train_method.py", METHODS[name].entry)
    assert not {file for file in closure if file.startswith("reporting/") or "paper" in file}


def test_an_edit_of_a_panel_draws_nothing_anew():
    """A figure that repeats one of a paper has its family's numbers, and no drawing reads a panel or its templates."""
    for script in ("draw_experiment", "draw_paper_figure", "draw_leakage", "draw_clusters", "draw_patterns"):
        closure = closure_of(f"scripts/{script}.py")
        assert not {file for file in closure if "panel" in file or file.endswith("paper/paper")}
    assert "methods/fedni/paper/panels" in closure_of("scripts/write_report.py")
    papers = {file for file in closure_of("scripts/draw_experiment.py") if file.startswith("methods/")}
    assert papers == {"methods/papers/beside", "methods/fedni/paper/compared"}
