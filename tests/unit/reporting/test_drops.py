"""What attacks take from methods: poisoned variants beside their own method without poison."""

from dataclasses import replace

import pytest

from brainfed.reporting import Interval
from brainfed.reporting.tables import drop_table, poison_finding, read_drops
from support.reports.paper_experiments import drawn_words
from support.reports.poisoned_variants import VARIANTS, Scored, variant
from support.reports.report_experiments import experiment, read, variant_outline


@pytest.fixture
def drops():
    return read_drops(VARIANTS, Scored(), 4)


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
    table = drop_table([other, variant("gahfl-fig2-paf")], Scored(), 4)
    assert (table.rows, table.alone) == ([], ["Gahfl (Fig. 2 PAF, poisoned)"])
    assert drop_table([other], Scored(), 4) is None


def test_a_row_has_attack_institutions_and_defence():
    row = next(row for row in drop_table(VARIANTS, Scored(), 4).rows if row.variant.name == "gahfl-fig2-ofom")
    assert [cell.text for cell in row.cells[:3]] == ["ofom", "2 of 4", "\u2013"]


def test_the_share_that_is_trimmed_counts_only_under_a_defence_that_trims():
    clean, poisoned = variant("gahfl"), variant("gahfl-fig2-paf")
    other = replace(poisoned, settings={**poisoned.settings, "trim": 0.4})
    assert len(read_drops([clean, other], Scored(), 4)) == 1
    trims = [replace(each, settings={**each.settings, "defence": "krum"}) for each in (clean, other)]
    assert read_drops(trims, Scored(), 4) == []


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
    said = drawn_words(read(outline))
    assert "2 of 5 institutions poisoned: accuracy \u22120.050 for FedMLP (PAF); 3 of 5" in said
