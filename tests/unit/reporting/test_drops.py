"""What attacks take from methods: poisoned variants beside their own method without poison."""

from dataclasses import replace

import pytest

from brainfed.evaluation.scores import INSTITUTION, POOLED
from brainfed.reporting.figures.paper.gallery import KINDS
from brainfed.reporting.intervals import Interval
from brainfed.reporting.outline import read_experiment
from brainfed.reporting.tables.robustness.drops import drop_table, poison_finding, read_drops
from brainfed.reporting.variants import ShownVariant
from report_experiments import experiment, variant_outline

SCORES = {
    "gahfl": 0.70,
    "gahfl-fig2-paf": 0.68,
    "gahfl-fig2-ofom": 0.64,
    "gahfl-median": 0.69,
    "gahfl-median-paf": 0.69,
    "fedet": 0.66,
    "fedet-fig2-paf": 0.60,
    "fedet-fig2-ofom": 0.64,
}


class Scored:
    """One score a variant, the same for accuracy and AUC, with intervals of .01 to both sides."""

    def interval(self, variant, metric):
        return Interval(SCORES[variant], SCORES[variant] - 0.01, SCORES[variant] + 0.01, 5)

    def beside(self, variant, other, metric):
        return self.interval(variant, metric)

    def difference(self, variant, other, metric, scope=INSTITUTION):
        gap = SCORES[variant] - SCORES[other] - (0.001 if scope == POOLED else 0)
        return Interval(gap, gap - 0.01, gap + 0.01, 5)


def variant(name):
    attack = next((word for word in ("paf", "ofom") if name.endswith(word)), "none")
    settings = {
        "attack": attack,
        "attacked": 0.5 if attack == "ofom" else 0.25,
        "defence": "median" if "median" in name else "none",
    }
    method = name.split("-")[0]
    return ShownVariant(name, method, method.title(), "federated", settings, stages={"public": {"ratio": 0.3}})


VARIANTS = [variant(name) for name in SCORES]


@pytest.fixture
def drops():
    return read_drops(VARIANTS, Scored(), 4)


def table_of(variants=None, paper="gahfl", cohort="abide"):
    return drop_table(VARIANTS if variants is None else variants, Scored(), 4, paper, cohort)


def test_a_poisoned_variant_stands_beside_the_same_defence_without_poison(drops):
    found = {one.variant.name: (one.clean.name, one.poisoned, one.change["accuracy"].mean) for one in drops}
    assert found == {
        "gahfl-fig2-paf": ("gahfl", 1, pytest.approx(-0.02)),
        "gahfl-fig2-ofom": ("gahfl", 2, pytest.approx(-0.06)),
        "gahfl-median-paf": ("gahfl-median", 1, pytest.approx(0)),
        "fedet-fig2-paf": ("fedet", 1, pytest.approx(-0.06)),
        "fedet-fig2-ofom": ("fedet", 2, pytest.approx(-0.02)),
    }


def test_without_its_own_clean_variant_nothing_is_compared():
    other = replace(variant("gahfl"), stages={"public": {"ratio": 0.4}})
    assert read_drops([other, variant("gahfl-fig2-paf")], Scored(), 4) == []
    table = table_of([other, variant("gahfl-fig2-paf")])
    assert (table.rows, table.printed, table.alone) == ([], "", ["Gahfl (Fig. 2 PAF, poisoned)"])
    assert table_of([other]) is None


def test_the_share_that_is_trimmed_counts_only_under_a_defence_that_trims():
    clean, poisoned = variant("gahfl"), variant("gahfl-fig2-paf")
    other = replace(poisoned, settings={**poisoned.settings, "trim": 0.4})
    assert len(read_drops([clean, other], Scored(), 4)) == 1
    trims = [replace(each, settings={**each.settings, "defence": "krum"}) for each in (clean, other)]
    assert read_drops(trims, Scored(), 4) == []


def test_mean_drops_stand_beside_printed_ones_where_both_attacks_are_known():
    table = table_of()
    assert table.printed == (
        "Mean drop of accuracy over PAF and OFOM, all test subjects of a fold together: Gahfl .041 (printed .025) and "
        "Fedet .041 (printed .042)."
    )
    row = next(row for row in table.rows if row.variant.name == "gahfl-fig2-ofom")
    assert [cell.text for cell in row.cells[:3]] == ["ofom", "2 of 4", "\u2013"]
    assert table_of([each for each in VARIANTS if each.setting("attack") != "ofom"]).printed == ""
    assert table_of(cohort="demo").printed == ""
    assert table_of(paper="").printed == ""


@pytest.mark.parametrize(
    "changed",
    [{"without": "wd"}, {"gcna_training": "l_wd"}, {"defence": "median"}],
)
def test_another_method_than_the_printed_one_has_no_printed_drop(changed):
    own = [each for each in VARIANTS if each.method == "gahfl" and "median" not in each.name]
    assert table_of(own).printed
    assert table_of([replace(each, settings={**each.settings, **changed}) for each in own]).printed == ""


def test_two_variants_of_one_attack_have_no_printed_drop_as_none_is_the_right_one():
    other = replace(variant("gahfl-fig2-paf"), name="gahfl-median-paf")
    assert "Gahfl" not in table_of([*VARIANTS[:3], other]).printed


def test_the_finding_is_of_the_fewest_and_the_most_poisoned_institutions(drops):
    assert poison_finding(drops, 4) == (
        "1 of 4 institutions poisoned: accuracy \u22120.06 for Fedet (Fig. 2 PAF) to 0.00 for Gahfl (median PAF); 2 "
        "of 4 institutions poisoned: accuracy \u22120.06 for Gahfl (Fig. 2 OFOM) to \u22120.02 for Fedet (Fig. 2 OFOM)"
    )
    assert poison_finding([], 4) == "No method stands beside its poisoned variant"


def test_a_method_at_chance_has_nothing_to_lose(drops):
    idle = [
        replace(one, before={"auc": Interval(0.51, 0.49, 0.53, 5)}) if one.variant.method == "fedet" else one
        for one in drops
    ]
    found = poison_finding(idle, 4)
    assert found.endswith("; at chance without poison: Fedet") and "for Fedet" not in found
    assert poison_finding([one for one in idle if one.at_chance], 4) == "At chance without poison: Fedet"


def test_the_figure_of_a_sweep_of_poison_states_what_poison_takes_away(tmp_path):
    rows = [
        (
            variant_outline(
                tmp_path, f"fedmlp-paf-attacked{share}", "fedmlp", settings={"attack": "paf", "attacked": share}
            ),
            0.66 - share / 5,
            0.7 - share / 5,
        )
        for share in (0.0, 0.25, 0.5)
    ]
    outline = experiment(
        tmp_path, "line", rows, name="robustness", axes=["attacked"], reference="fedmlp-paf-attacked0.0"
    )
    figure = KINDS["line"](read_experiment(outline))
    texts = [text.get_text() for text in figure.texts] + [figure.get_suptitle()]
    assert any(
        "2 of 5 institutions poisoned: accuracy \u22120.050 for FedMLP (PAF); 3 of 5" in text for text in texts
    ), texts
