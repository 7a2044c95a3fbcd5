"""A kind of stage is declared once; plan, sweeps, names of files, prune, check, manual and report follow."""

from dataclasses import dataclass, replace
from types import MappingProxyType, SimpleNamespace

import pytest
import yaml

from brainfed.configuration import load_plan
from brainfed.configuration._outline import variant_outline
from brainfed.configuration.layout import Layout, stage_pattern
from brainfed.configuration.manual import manual
from brainfed.configuration.planning import _experiments as experiments
from brainfed.configuration.prune import kept_folders, stage_folders
from brainfed.configuration.stages import registry
from brainfed.configuration.stages._stage import StageKind
from brainfed.configuration.stages.registry import kinds_of
from brainfed.methods import METHODS
from brainfed.runtime import UserError, setting

CONFIG = """
project: study
cohorts:
  ours: {source: simulate}
split: {count: 2, folds: 3, repeats: 2}
variants:
  loop: {method: looped, echo: {depth: [1, 2]}}
experiments:
  methods: {variants: [ridge-central, fedgcn, loop]}
"""


@dataclass(frozen=True)
class EchoSettings:
    """Settings of a stage that no release has."""

    depth: int = setting(3, "How deep.", minimum=1)


class Echo(StageKind):
    name = key = folder = role = shown = "echo"
    settings = EchoSettings
    parents = ("features", "graph")
    reads = "echoes"
    manual = "keys of echo | 3 | None."

    def slug(self, stage):
        return f"echo-{stage.settings.depth}"

    def numbers(self, stage, subjects, regions):
        return subjects * stage.settings.depth


@pytest.fixture
def echo(monkeypatch):
    """One more kind of stage, and a method that needs it."""
    looped = replace(METHODS["fedgcn"], name="looped", needs=("features", "echo"), variants={})
    methods = MappingProxyType({**METHODS, "looped": looped})
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, Echo()))
    monkeypatch.setattr(experiments, "METHODS", methods)
    return load_plan(yaml.safe_load(CONFIG))


def found(plan, name):
    return next(one for one in plan.experiments["methods"].variants if one.name == name)


def test_a_new_kind_is_swept_named_and_planned_after_its_parents(echo):
    shallow, deep = found(echo, "loop-depth1"), found(echo, "loop-depth2")
    assert list(deep.stages) == ["features", "graph", "echo"]
    assert set(echo.stages["echo"]) == {shallow.stages["echo"].name, deep.stages["echo"].name}
    assert deep.stages["echo"].name.startswith("echo-2-")
    assert deep.stages["echo"].parents == (deep.stages["features"], deep.stages["graph"])
    assert deep.stages["graph"] == found(echo, "fedgcn").stages["graph"]
    assert deep.stage_settings()["echo"] == {"depth": 2}
    assert found(echo, "fedgcn").stage_settings()["echo"] == {}


def test_its_settings_are_refused_where_no_method_reads_them_or_where_they_are_wrong(echo):
    config = yaml.safe_load(CONFIG)
    for definition, words in (
        ({"method": "fedgcn", "echo": {"depth": 1}}, "method 'fedgcn' reads no echo; remove the key"),
        ({"method": "looped", "echo": {"deth": 1}}, "unknown key 'deth'; did you mean 'depth'"),
        ({"method": "looped", "echo": {"depth": 0}}, "depth: expected at least 1, found 0"),
    ):
        with pytest.raises(UserError, match=words):
            load_plan(config | {"variants": config["variants"] | {"wrong": definition}})


def test_its_files_are_inputs_of_its_method_and_its_parents_files_its_own(echo):
    layout, deep = Layout(echo, {}), found(echo, "loop-depth2")
    name, graph = deep.stages["echo"].name, deep.stages["graph"].name
    read = layout.method_inputs(deep, echo.experiments["methods"].regime.name, "ours", 1)
    assert read["echo"] == [f"results/ours/echo/{name}/repeat-1/all.safetensors"]
    assert "graphs" not in read
    own = layout.stage_inputs(deep.stages["echo"], "ours", 0, "all")
    assert list(own) == ["split", "participants", "features", "graph"]
    assert own["graph"] == f"results/ours/graphs/{graph}/repeat-0/all.safetensors"
    assert stage_pattern("echo") == "results/{cohort}/echo/{echo}/repeat-{repeat}/{part}.safetensors"


def test_a_job_reads_it_as_another_kind_where_it_says_so_and_never_two_stages_as_one(monkeypatch, echo):
    layout, deep = Layout(echo, {}), found(echo, "loop-depth2")
    regime = echo.experiments["methods"].regime.name
    monkeypatch.setattr(Echo, "read_as", "graphs")
    assert layout.method_inputs(deep, regime, "ours", 1)["graphs"] == layout.files_of(deep.stages["echo"], "ours", 1)
    monkeypatch.setattr(Echo, "read_as", "features")
    with pytest.raises(ValueError, match=r"looped: expected stages of different kinds, found \('features', 'echo'\)"):
        layout.method_inputs(deep, regime, "ours", 1)


def test_kinds_that_are_not_shipped_follow_their_parents():
    last, first = Echo(), Echo()
    last.name, last.parents, first.name, first.parents = "another", ("echo-of-graph",), "echo-of-graph", ("graph",)
    kinds = {kind.name: kind for kind in (last, first, *registry.KINDS)}
    names = [kind.name for kind in registry._after_parents(kinds)]
    assert names[: len(registry.ORDER)] == list(registry.ORDER)
    assert names.index("graph") < names.index("echo-of-graph") < names.index("another")


def test_prune_knows_its_folders(echo, tmp_path):
    assert stage_folders()[-4:] == ["echo", "splits", "methods", "models"]
    kept = {path.relative_to(tmp_path).as_posix() for path in kept_folders(echo, tmp_path)}
    assert {f"ours/echo/{name}" for name in echo.stages["echo"]} <= kept


def test_a_report_shows_its_files_and_the_manual_its_key(echo):
    experiment = echo.experiments["methods"]
    outline = variant_outline(Layout(echo, {}), "ours", experiment, found(echo, "loop-depth1"))
    name = found(echo, "loop-depth1").stages["echo"].name
    assert outline["echo"] == [f"results/ours/echo/{name}/repeat-{repeat}/all.safetensors" for repeat in (0, 1)]
    assert outline["preparation"]["echo"][0] == f"results/ours/echo/{name}/repeat-0/all-timing.json"
    assert "| `echo` | keys of echo | 3 | None. |" in manual()


def test_a_method_rests_on_what_it_needs_and_on_what_that_is_made_of():
    names = {method.name: [kind.name for kind in kinds_of(method)] for method in METHODS.values()}
    assert (names["majority"], names["fedmlp"]) == ([], ["features"])
    assert names["centralgcn"] == ["features", "graph"]
    assert names["fedni"] == names["fedsage-plus"] == ["features", "graph", "inpainting", "fused"]


def test_kinds_stand_after_their_parents_with_names_keys_and_folders_of_their_own():
    for number, kind in enumerate(registry.KINDS):
        assert {parent.name for parent in registry.KINDS[:number]} >= set(kind.parents)
    for attribute in ("name", "key", "folder", "role"):
        assert len({getattr(kind, attribute) for kind in registry.KINDS}) == len(registry.KINDS)


class Half(StageKind):
    """Neither a folder nor the class of its settings."""

    name = key = role = manual = "half"

    def slug(self, stage):
        return "half"


def test_a_kind_that_lacks_what_has_no_default_is_refused_where_it_is_found(monkeypatch):
    monkeypatch.setattr(registry, "import_module", lambda name: SimpleNamespace(HALF=Half()))
    with pytest.raises(ValueError, match=r"^Half: expected a value for .*, found none for folder, settings$"):
        list(registry._declared())


def test_a_parent_that_is_no_kind_is_refused():
    child = type("Child", (Echo,), {"name": "child", "parents": ("features", "grpah")})()
    with pytest.raises(ValueError, match=r"^child: parents: expected names of stages \(features, .*\), found grpah$"):
        registry._after_parents({kind.name: kind for kind in (*registry.KINDS, child)})
