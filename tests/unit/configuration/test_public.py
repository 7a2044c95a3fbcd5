"""Public subjects in a config: one file a split, ratio and repeat, which variants and protocols share."""

from dataclasses import replace

import pytest

from brainfed.configuration import load_plan
from brainfed.configuration.layout import Layout
from brainfed.configuration.prune import kept_folders
from brainfed.runtime import UserError
from support.samples.series_method import LISTENER, SHARER, register


@pytest.fixture(autouse=True)
def sharer(monkeypatch):
    """Methods that read region series, of which one reads public subjects."""
    register(monkeypatch)


def planned(variants=None, **config):
    own = variants or {"own": {"method": "sharer"}}
    experiments = {"methods": {"variants": ["majority", *own], "reference": "majority"}}
    content = {"project": "p", "cohorts": {"ours": {"source": "simulate"}}, "experiments": experiments, "variants": own}
    return load_plan(content | config)


def stages(plan):
    return {one.name: one.stage("public") for one in plan.experiments["methods"].variants if one.stage("public")}


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
def test_all_folds_and_both_protocols_share_one_file_a_repeat(protocol, tmp_path):
    plan = planned(protocol=protocol)
    (stage,) = stages(plan).values()
    experiment = plan.experiments["methods"]
    assert (stage.split, stage.protocol, stage.by_fold, stage.parents) == (experiment.regime.split, "", False, ())
    assert stage.name == stages(planned())["own"].name and stage.name.startswith("30-percent-")
    read = Layout(plan, {}).method_inputs(experiment.variants[1], experiment.regime.name, "ours", 1)
    assert read["public"] == [f"results/ours/public/{stage.name}/repeat-1/all.parquet"]
    assert set(read) == {"split", "participants", "series", "public"}
    assert tmp_path / "ours/public" / stage.name in set(kept_folders(plan, tmp_path))


def test_a_ratio_is_swept_and_the_projects_is_the_default():
    found = stages(planned({"own": {"method": "sharer", "public": {"ratio": [0.2, 0.3, 0.4]}}}))
    assert list(found) == ["own-ratio0.2", "own-ratio0.3", "own-ratio0.4"]
    names = [stage.name for stage in found.values()]
    assert (len(set(names)), [name.split("-")[0] for name in names]) == (3, ["20", "30", "40"])
    assert stages(planned(public={"ratio": 0.4}))["own"].name == names[2]


def test_another_split_has_other_public_subjects_and_other_series_the_same():
    usual = stages(planned())["own"].name
    assert usual != stages(planned(split={"count": 7}))["own"].name
    assert usual == stages(planned({"own": {"method": "sharer", "series": {"scale": "zscore_runs"}}}))["own"].name


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ratio": 0}, r"variants\.own\.public: ratio: expected at least 0\.01, found 0"),
        ({"ratio": 1}, r"ratio: expected at most 0\.99, found 1"),
        ({"share": 0.2}, r"unknown key 'share'.*Allowed here: ratio"),
    ],
)
def test_a_wrong_setting_is_one_sentence(settings, words):
    with pytest.raises(UserError, match=words):
        planned({"own": {"method": "sharer", "public": settings}})


def test_a_method_without_public_subjects_refuses_their_settings():
    with pytest.raises(UserError, match="method 'listener' reads no public; remove the key"):
        planned({"own": {"method": "listener", "public": {"ratio": 0.2}}})


@pytest.mark.parametrize("needs", [("public",), ("features", "public"), ("series", "public", "graph")])
def test_public_subjects_are_subjects_with_series(needs):
    with pytest.raises(ValueError, match="sharer: expected series and public, and no other stage, found"):
        replace(SHARER, needs=needs)
    assert replace(LISTENER, needs=("series", "public")).needs == SHARER.needs
