"""The examples of the guide run: a method, which records what crosses, and a panel of the report."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import jinja2
import numpy as np
import pytest

from brainfed.configuration import validate
from brainfed.configuration.stages.registry import kinds_of
from brainfed.methods import METHODS
from brainfed.reporting import ShownVariant
from brainfed.reporting._papers import templates_of
from brainfed.runtime.jobs import Run
from brainfed.samples import check
from support.samples.method_inputs import method_inputs

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "adding-a-method.md"
NAMES = ("brainfed.methods.mine", "brainfed.methods.mine.declaration", "brainfed.methods.mine.train")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def guide(monkeypatch):
    """The guide's two modules."""
    declaration, training, _ = blocks("python")
    for name, source in zip(NAMES, ["", declaration, training], strict=True):
        module = ModuleType(name)
        monkeypatch.setitem(sys.modules, name, module)
        exec(compile(source, str(GUIDE), "exec"), module.__dict__)
    return sys.modules[NAMES[1]], sys.modules[NAMES[2]]


@pytest.mark.parametrize("name", METHODS)
def test_quick_settings_are_settings_of_the_method(name):
    method = METHODS[name]
    validate(method.settings, dict(method.quick), name)
    assert method.variants


@pytest.mark.parametrize("split", ["random", "leave-one-site-out"])
def test_the_example_scores_every_tested_subject(guide, split):
    declaration, training = guide
    inputs = method_inputs(60, 9, split=split)
    outcome = training.train(inputs, declaration.MyMethodSettings(), Run())
    check(inputs, outcome)
    assert len(np.unique(outcome.scores[np.isfinite(outcome.scores)])) > 2
    assert {row["name"] for row in outcome.crossings} == set(declaration.MYMETHOD.crossing.tensors)


def test_the_example_panel_lists_the_variants_with_its_setting(monkeypatch):
    (template,) = blocks("html")
    monkeypatch.setattr(jinja2, "PackageLoader", lambda *_: jinja2.DictLoader({"small-groups.html.j2": template}))
    module = ModuleType("brainfed.papers.mine")
    exec(compile(blocks("python")[2], str(GUIDE), "exec"), module.__dict__)
    (panel,) = module.PAPER.panels
    variants = [
        ShownVariant("mymethod", "mymethod", "MyMethod", "baseline", {"least": 5}),
        ShownVariant("ridge", "ridge", "Ridge", "linear"),
    ]
    known = [SimpleNamespace(outline=SimpleNamespace(variants=shown)) for shown in (variants, variants[1:])]
    assert [panel.content(one) for one in known] == [["MyMethod"], []]
    page = jinja2.Environment(loader=templates_of([module.PAPER])).get_template(panel.template)
    assert "<p>MyMethod</p>" in page.render(content=panel.content(known[0]))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"family": "grpah"}, "family: expected one of baseline, linear, graph, federated, found 'grpah'"),
        ({"topology": "federatd"}, "topology: expected one of local, federated, central, setting, found 'federatd'"),
        ({"phenotypes": ("sex", "site")}, "phenotypes: expected one of age, sex, mean_fd, found 'site'"),
        ({"topology": "setting"}, "topology: expected a setting named training"),
        ({"needs": ("series", "graph")}, "expected series alone"),
    ],
)
def test_a_declaration_with_a_word_that_means_nothing_is_refused(changes, sentence):
    with pytest.raises(ValueError, match=f"^fedmlp: .*{sentence}"):
        replace(METHODS["fedmlp"], **changes)


def test_a_stage_that_no_kind_declares_is_refused():
    with pytest.raises(ValueError, match=r"^fedmlp: needs: expected names of stages \(features, .*\), found grpah$"):
        kinds_of(replace(METHODS["fedmlp"], needs=("features", "grpah")))
