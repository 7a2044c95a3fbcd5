"""A user edits, swaps, replaces, re-dates and deletes what a run depends on: exactly the right jobs are planned.

`benchmarks/hostile_edits.py` runs them too.
"""

import ast
import json
import re
from itertools import combinations
from pathlib import Path

import pytest

from brainfed.runtime.records._made import SUFFIX, parts_of
from workflow.hostile_cases import CASES, Case
from workflow.hostile_project import hostile_project, planned_jobs
from workflow.project import REPOSITORY, Project

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Project:
    project = hostile_project(tmp_path_factory.mktemp("hostile"))
    project.snakemake("--cores", "2")
    return project


EVERY_KIND = pytest.mark.full("test_rerun.py has an edit of every kind; these are a hundred, after a whole run.")


@EVERY_KIND
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_exactly_the_touched_jobs_of_an_edit_are_planned(case: Case, finished: Project, tmp_path: Path):
    project = finished.copy(tmp_path / "project")
    case.edit(project)
    jobs, said = planned_jobs(project, case.environment, case.target)
    assert jobs == case.runs, said[-2000:]
    assert case.says in said


@EVERY_KIND
def test_no_two_parameters_of_a_job_can_trade_values_unseen(finished: Project):
    rules, pairs = set(), 0
    for given, rule in snakemake_s_own_records(finished):
        values = ast.literal_eval(given)
        rules.add("simulate_scans" if rule.startswith("simulate_scans") else rule)
        for one, other in combinations(values, 2):
            if values[one] != values[other]:
                traded = values | {one: values[other], other: values[one]}
                pairs += 1
                assert parts_of(traded) != parts_of(values)
                assert repr(traded) != given
    assert len(rules) == 27
    assert pairs > 500


@EVERY_KIND
def test_snakemake_itself_compares_one_named_mapping_of_every_job(finished: Project):
    given = [params for params, _ in snakemake_s_own_records(finished)]
    assert len(given) > 60
    assert all(one.startswith("{'code': '") for one in given)


def snakemake_s_own_records(project: Project) -> list[tuple[str, str]]:
    """The one parameter of every job, as Snakemake compares it, and the job's rule."""
    files = [path for path in (project.folder / ".snakemake" / "metadata").rglob("*") if path.is_file()]
    records = [json.loads(path.read_text()) for path in files]
    return [(given, record["rule"]) for record in records for (given,) in [record["params"]]]


def test_every_rule_has_one_named_mapping_of_parameters_or_none():
    found = 0
    for file in sorted((REPOSITORY / "workflow" / "rules").glob("*.smk")):
        lines = file.read_text().splitlines()
        for at, line in enumerate(lines):
            if line.strip() == "params:":
                inner = line.index("params:") + 4
                rest = lines[at + 1 :]
                own = [one for one in rest[: _end(rest, inner)] if len(one) - len(one.lstrip()) == inner]
                found += 1
                assert own == [f"{' ' * inner}given=named(", f"{' ' * inner}),"], (file.name, at)
    assert found >= 30


def test_every_rule_that_draws_anew_in_each_repeat_is_given_the_repeat():
    files = sorted((REPOSITORY / "workflow" / "rules").glob("*.smk"))
    rules = [rule for file in files for rule in re.split(r"^(?:use )?rule ", file.read_text(), flags=re.MULTILINE)]
    drawing = [rule for rule in rules if "seed=PROJECT.seed," in rule and "{wildcards.repeat}" in rule]
    assert len(drawing) >= 7
    assert [rule.split()[0] for rule in drawing if "repeat=lambda wc: int(wc.repeat)," not in rule] == []


@pytest.mark.parametrize("name", ["seed", "repeat", "threads", "by_run"])
def test_a_parameter_of_several_rules_has_one_value(name):
    rules = "".join(file.read_text() for file in (REPOSITORY / "workflow" / "rules").glob("*.smk"))
    values = re.findall(rf"^ {{12}}{name}=(.*),$", rules, flags=re.MULTILINE)
    assert len(values) > 3
    assert len(set(values)) == 1


def _end(lines: list[str], inner: int) -> int:
    """Where a block of at least this indentation ends."""
    return next(
        (at for at, line in enumerate(lines) if line.strip() and len(line) - len(line.lstrip()) < inner), len(lines)
    )


@EVERY_KIND
def test_results_without_a_record_are_named_in_one_sentence(finished: Project, tmp_path: Path):
    project = finished.copy(tmp_path / "project")
    for path in (project.folder / "results").rglob(f".*{SUFFIX}"):
        path.unlink()
    said = project.snakemake("-n").stderr
    assert "no record lies beside them. BRAINFED_ADOPT=1 in the environment keeps such results as they are." in said


@EVERY_KIND
def test_results_that_are_adopted_stay_adopted_and_the_report_says_so(finished: Project, tmp_path: Path):
    project = finished.copy(tmp_path / "project")
    for path in (project.folder / "results" / "lab" / "methods").rglob(f".*{SUFFIX}"):
        path.unlink()
    done = project.snakemake("--cores", "1", environment={"BRAINFED_ADOPT": "1"})
    assert "3 result(s) kept as they are because BRAINFED_ADOPT is set" in done.stderr
    assert not planned_jobs(project, {})[0]
    page = (project.folder / "results" / "reports" / "hostile.html").read_text()
    assert page.count("were kept on request (BRAINFED_ADOPT)") == 2
