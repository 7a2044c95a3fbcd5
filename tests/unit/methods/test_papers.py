"""What the families bring to the report: known names, templates that exist, and a drawing for each kind of figure."""

import pytest

from brainfed.configuration import PAPER_FIGURES
from brainfed.methods import METHODS, SHIPPED_VARIANTS
from brainfed.papers import BESIDE, FIGURES, PAPERS
from brainfed.reporting._papers import templates_of, works_of
from brainfed.reporting.charts._of_papers import KINDS

NAMES = [paper.name for paper in PAPERS]


@pytest.mark.parametrize("paper", PAPERS, ids=NAMES)
def test_a_paper_names_methods_that_exist(paper):
    assert {name for cited in paper.cites for name in cited.methods} <= set(METHODS)


def test_methods_stand_beside_variants_that_exist():
    assert {name for own, others in BESIDE.items() for name in (own, *others)} <= set(SHIPPED_VARIANTS)


@pytest.mark.parametrize("paper", PAPERS, ids=NAMES)
def test_every_panel_has_a_template_of_its_family(paper):
    for panel in paper.panels:
        assert panel.template.startswith(f"{paper.name}/")
        assert templates_of(PAPERS).get_source(None, panel.template)[0].strip()
    names = {panel.template.removeprefix(f"{paper.name}/") for panel in paper.panels}
    assert set(paper.templates.list_templates() if paper.templates else ()) == names


def test_every_kind_of_figure_of_a_config_is_drawn_by_one_place():
    assert set(KINDS) & set(FIGURES) == set()
    assert {*KINDS, *FIGURES} == set(PAPER_FIGURES)


def test_works_follow_the_methods_that_were_run():
    def authors(*methods):
        return [work.text.split(" ")[0] for work in works_of(PAPERS, methods)]

    assert authors("ridge") == ["Peng"]
    assert authors("fedni-centroids", "fedsage-plus") == ["Peng", "Domingo-Ferrer", "Zhang"]
    assert authors("gcfl") == authors("selftrain") == ["Peng", "Xie"]
    assert authors("fedgnn", "fglbc") == ["Peng", "Chen", "Gadgil"]
    assert authors("gahfl", "fedgems", "fedet") == ["Peng", "Hu", "Cheng", "Cho"]


def test_fedni_stands_beside_what_its_paper_compares_and_a_linear_model():
    assert BESIDE == {"fedni": ("fedgcn", "fedsage-plus", "fedmlp", "ridge-central")}
