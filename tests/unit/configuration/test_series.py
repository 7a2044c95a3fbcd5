"""Region series in a config: one file for all splits, repeats and protocols; refused where there are none."""

from dataclasses import replace

import pytest

from brainfed.checking._people import Checked, Person
from brainfed.checking._project import needed_bytes
from brainfed.configuration import load_plan
from brainfed.configuration.layout import Layout
from brainfed.configuration.prune import kept_folders
from brainfed.runtime import UserError
from support.samples.series_method import LISTENER, register

COHORTS = {"ours": {"source": "simulate"}}
TABLES = {"source": "freesurfer", "freesurfer": {"tables": ["a.tsv"]}, "phenotype": "p.csv"}
SERIES = {"source": "timeseries", "series": "{subject}.csv", "phenotype": "p.csv"}


@pytest.fixture(autouse=True)
def listener(monkeypatch):
    """A method that reads region series."""
    register(monkeypatch)


def planned(definition=None, **config):
    experiments = {"methods": {"variants": ["majority", "own"], "reference": "majority"}}
    own = {"own": {"method": "listener", **(definition or {})}}
    return load_plan({"project": "p", "cohorts": COHORTS, "experiments": experiments, "variants": own} | config)


def series(plan):
    (stage,) = (one.stage("series") for one in plan.experiments["methods"].variants if one.name == "own")
    return stage


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_all_splits_share_one_file_that_depends_on_no_other_stage(protocol, tmp_path):
    plan = planned(protocol=protocol)
    stage = series(plan)
    assert (stage.split, stage.by_fold, stage.parents) == ("", False, ())
    assert stage.name == series(planned(split={"count": 7}, features={"connectivity": "tangent"})).name
    assert stage.name.startswith("zscore-")
    variant = plan.experiments["methods"].variants[1]
    read = Layout(plan, {}).method_inputs(variant, plan.experiments["methods"].regime.name, "ours", 1)
    assert read["series"] == [f"results/ours/series/{stage.name}/all.safetensors"]
    assert set(read) == {"split", "participants", "series"}
    assert tmp_path / "ours/series" / stage.name in set(kept_folders(plan, tmp_path))


def test_series_scaled_by_run_are_another_stage():
    other = series(planned({"series": {"scale": "zscore_runs"}}))
    assert other.name.startswith("zscore-runs-")
    assert other == series(planned(series={"scale": "zscore_runs"}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"scale": "zscor"}, "did you mean 'zscore'"), ({"scal": "zscore"}, "unknown key 'scal'; did you mean 'scale'")],
)
def test_a_wrong_setting_is_one_sentence(settings, words):
    with pytest.raises(UserError, match=words):
        planned({"series": settings})


def test_settings_of_other_stages_are_refused():
    with pytest.raises(UserError, match="method 'listener' reads no features; remove the key"):
        planned({"features": {"fisher_z": True}})


def test_a_cohort_of_tables_has_no_series_and_one_with_tables_beside_them_has():
    words = (
        r"experiments\.methods: expected variants with morphometry features for cohort 'ours', whose source is "
        "'freesurfer' and which has no region series, found 'own' of method 'listener'"
    )
    with pytest.raises(UserError, match=words):
        planned(cohorts={"ours": TABLES}, features={"kind": "morphometry"})
    both = SERIES | {"freesurfer": {"tables": ["a.tsv"]}}
    assert series(planned(cohorts={"ours": both})).name == series(planned()).name


def test_a_cohort_of_public_graphs_has_no_series():
    graphs = {"source": "tudataset", "tudataset": {"names": ["MUTAG"]}, "target": "class", "classes": ["no", "yes"]}
    with pytest.raises(UserError, match=r"expected variants that classify graphs for cohort 'ours'.*found 'own'"):
        planned(cohorts={"ours": graphs})


@pytest.mark.parametrize(
    ("cohort", "features", "listed"), [(TABLES, "morphometry", False), (SERIES, "connectivity", True)]
)
def test_an_experiment_without_a_list_has_such_methods_where_there_are_series(cohort, features, listed):
    plan = planned(cohorts={"ours": cohort}, features={"kind": features}, experiments={"shipped": {}})
    names = [variant.name for variant in plan.experiments["shipped"].variants]
    assert "ridge-central" in names and ("listener" in names) == listed


def test_the_check_counts_the_series_twice():
    people = tuple(Person(f"s{number}", "one", 1, f"s{number}", 100 + number) for number in range(3))
    plan, checked = planned(), Checked((), people, ("one",), 20)
    values = 4 * (100 + 101 + 102) * 20
    (experiment,) = (one for one in plan.experiments.values() if one.default)
    assert needed_bytes(checked, [experiment]) == 2 * values
    silent = replace(experiment, variants=experiment.variants[:1])
    assert needed_bytes(checked, [silent]) == values


def test_a_method_reads_series_or_another_stage():
    with pytest.raises(ValueError, match=r"listener: expected series alone .*'features'"):
        replace(LISTENER, needs=("series", "features"))
