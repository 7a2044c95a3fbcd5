"""The example of the guide to a new stage: its files as printed, in a copy of the workflow, from scans to scores."""

import re

import numpy as np
import pytest

from brainfed.runtime import read_arrays
from workflow.project import REPOSITORY, SIMULATE, Project, new_project

pytestmark = [pytest.mark.full("Two stages are written and run as a document says."), pytest.mark.workflow]

GUIDE = (REPOSITORY / "docs" / "how-to" / "adding-a-stage.md").read_text(encoding="utf-8")
LIBRARY = "brainfed"
COHORT = {"source": "simulate", "atlas": "twenty", "shards": 2, "simulate": SIMULATE}
INCLUDED = re.search(r"`(include: .*?)`", GUIDE)[1]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    """The simulated cohort after a run of two variants that share one stage."""
    project = new_project(tmp_path_factory.mktemp("amplitudes"), subjects=0)
    project.own_workflow()
    for name, text in re.findall(r"^`([\w./]+)`[^\n]*:\n\n```python\n(.*?)```", GUIDE, re.MULTILINE | re.DOTALL):
        path = project.folder / "workflow" / LIBRARY / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (project.folder / "workflow" / LIBRARY / "methods/amplitudes/__init__.py").write_text('"""Amplitudes."""\n')
    project.edit("Snakefile", 'include: "rules/public.smk"', f'{INCLUDED}\ninclude: "rules/public.smk"')
    configure(project)
    assert project.planned()["compute_amplitudes"] == 1
    project.snakemake("--cores", "1", "tables")
    return project


def configure(project: Project, *, logarithm: bool = True) -> None:
    """Two variants; `logarithm` is the setting of the first."""
    variants = {
        "first": {"method": "ridge-amplitudes", "amplitudes": {"logarithm": logarithm}},
        "second": {"method": "ridge-amplitudes", "alphas": [1.0]},
    }
    compared = {"methods": {"variants": ["ridge-central", *variants], "reference": "ridge-central"}}
    project.configure(cohorts={"made": COHORT}, variants=variants, experiments=compared)


def test_the_stage_holds_the_deviations_of_all_series(finished):
    results = finished.folder / "results" / "made"
    (path,) = results.glob("amplitudes/log-*/all.safetensors")
    found = read_arrays(path)
    shards = [read_arrays(shard) for shard in sorted(results.glob("timeseries/twenty/shard-*.safetensors"))]
    series = {subject: array for shard in shards for subject, array in shard.arrays.items()}
    expected = [np.log(series[subject].astype(np.float64).std(axis=0)) for subject in sorted(series)]
    assert list(found.subjects) == sorted(series)
    assert found.arrays["features"] == pytest.approx(np.array(expected), rel=1e-5)


def test_both_variants_are_scored(finished):
    rows = (finished.folder / "results/made/tables/methods.tsv").read_text().splitlines()
    assert {row.split("\t")[0] for row in rows[1:]} == {"ridge-central", "first", "second"}


def test_a_setting_computes_one_stage_and_trains_its_variant(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    configure(project, logarithm=False)
    assert project.planned() == {"compute_amplitudes": 1, "train_method": 1, "score_experiment": 1}
    configure(project)
    assert not project.planned()


def test_an_edit_of_the_computation_runs_it_again_and_one_of_a_docstring_does_not(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    file = f"{LIBRARY}/imaging/amplitudes/_amplitudes.py"
    project.edit(file, "0 in a region without signal", "zero in a region without signal")
    assert not project.planned()
    project.edit(file, "series.std(axis=0, dtype=np.float64)", "series.std(axis=0, dtype=np.float64) * 2")
    assert project.planned() == {"compute_amplitudes": 1, "train_method": 2, "score_experiment": 1}
