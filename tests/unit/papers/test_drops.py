"""Mean drops of accuracy under attacks beside those that GAHFL's paper prints."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from brainfed.papers._gahfl import printed_drops
from support.reports.poisoned_variants import VARIANTS, Scored, variant


def said(variants=None, paper="gahfl", cohort="abide"):
    """What the panel prints of our drops and of the paper's."""
    outline = SimpleNamespace(variants=VARIANTS if variants is None else variants, paper=paper)
    return printed_drops(
        SimpleNamespace(outline=outline, cohort=SimpleNamespace(name=cohort), scored=Scored(), institutions=4)
    ).printed


def test_a_method_without_public_subjects_has_no_such_panel():
    others = [replace(each, stages={}) for each in VARIANTS]
    outline = SimpleNamespace(variants=others, paper="gahfl")
    assert printed_drops(SimpleNamespace(outline=outline)) is None
    outline = SimpleNamespace(variants=[variant("gahfl")], paper="gahfl")
    assert printed_drops(SimpleNamespace(outline=outline)) is None


def test_mean_drops_stand_beside_printed_ones_where_both_attacks_are_known():
    assert said() == (
        "Mean drop of accuracy over PAF and OFOM, all test subjects of a fold together: Gahfl .041 (printed .025) and "
        "Fedet .041 (printed .042)."
    )
    assert said([each for each in VARIANTS if each.setting("attack") != "ofom"]) == ""
    assert said(cohort="demo") == ""
    assert said(paper="") == ""


@pytest.mark.parametrize(
    "changed",
    [{"without": "wd"}, {"gcna_training": "l_wd"}, {"defence": "median"}],
)
def test_another_method_than_the_printed_one_has_no_printed_drop(changed):
    own = [each for each in VARIANTS if each.method == "gahfl" and "median" not in each.name]
    assert said(own)
    assert said([replace(each, settings={**each.settings, **changed}) for each in own]) == ""


def test_two_variants_of_one_attack_have_no_printed_drop_as_none_is_the_right_one():
    other = replace(variant("gahfl-fig2-paf"), name="gahfl-median-paf")
    assert "Gahfl" not in said([*VARIANTS[:3], other])
