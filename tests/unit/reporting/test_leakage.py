"""What models reveal: the chart, the table beside the guarantee, and the section of the page."""

import re

import pandas as pd
import pytest

from brainfed.evaluation._audit import COLUMNS
from brainfed.reporting import ShownVariant, read_experiment, read_scored
from brainfed.reporting.charts._gallery import leakage_chart
from brainfed.reporting.tables import Leak, read_audit, read_leaks
from brainfed.runtime import canonical_json, write_text, write_tsv
from support.reports.chart_rows import panel_of, rows_of
from support.reports.report_project import page_of


def audited(experiment):
    read = read_experiment({"cohort": "toy", **experiment})
    return read_audit(read, read_scored(read))


def test_the_best_method_is_first_and_stands_beside_its_attack_and_its_bytes():
    variants = [ShownVariant(name, "fedgcn", "FedGCN", "federated", topology="federated")
                for name in ("fedgcn", "fedgcn-no-noise")]  # fmt: skip
    chart = leakage_chart([Leak(variants[0], 0.7, 0.6, 0.5, 0.7, 0), Leak(variants[1], 0.8, 0.9, 0.85, 0.95, 10**6)])
    own, attacks, sent = (rows_of(panel_of(chart, place), "method", column)
                          for place, column in ((0, "mean"), (1, "mean"), (2, "shown")))  # fmt: skip
    titles = ["FedGCN (no noise)", "FedGCN"]
    assert [list(rows["method"]) for rows in (own, attacks, sent)] == [titles] * 3
    assert (list(own["mean"]), list(attacks["mean"]), list(sent["shown"])) == (
        [0.8, 0.7],
        [0.9, 0.6],
        ["1.0 MB", "nothing"],
    )
    assert (list(attacks["low"]), list(attacks["high"])) == ([0.85, 0.5], [0.95, 0.7])
    assert chart.to_dict()["title"]["text"] == [
        "FedGCN (no noise), the best-scoring federated method: AUC of the attack 0.90, its interval lies above 0.5"
    ]


def test_without_scores_of_training_subjects_the_chart_says_so():
    assert "no method gives the scores of its training subjects" in str(leakage_chart([]).to_dict())


def test_the_table_has_the_attacks_beside_the_guarantee(experiment):
    found = audited(experiment)
    assert (found.shadows, found.runs) == (1, 8)
    rows = {row.variant.name: [cell.text for cell in row.cells] for row in found.rows}
    table = pd.read_csv(experiment["tables"]["audit"], sep="\t").set_index(["variant", "attack"])
    lira = table.loc[("ridge-central", "lira")]
    assert rows["ridge-central"][1] == f"{lira['auc']:.2f}" and lira["auc"] > 0.65
    assert (rows["ridge-local"][1], {texts[-1] for texts in rows.values()}) == ("0.50", {"none"})
    notes = {row.variant.name: row.cells[-1].note for row in found.rows}
    assert (notes["fedgcn"], notes["ridge-central"]) == ("population graph", "")
    assert "FedGCN" in found.graphs and not found.private


@pytest.mark.parametrize(("held_out", "shown"), [(99, "\u2013"), (100, "25.0 %")])
def test_true_positives_need_a_hundred_people_held_out(experiment, tmp_path, held_out, shown):
    table = pd.read_csv(experiment["tables"]["audit"], sep="\t").assign(
        non_members=held_out, tpr=0.25, tpr_low=0.2, tpr_high=0.3
    )
    experiment["tables"]["audit"] = str(tmp_path / "audit.tsv")
    write_tsv(tmp_path / "audit.tsv", table)
    assert {row.cells[2].text for row in audited(experiment).rows} == {shown}


@pytest.mark.parametrize(("low", "words"), [(0.4, "was not found"), (0.9, "is found with an AUC of 0.95")])
def test_the_page_says_whether_the_positive_control_is_found(experiment, tmp_path, low, words):
    table = pd.read_csv(experiment["tables"]["audit"], sep="\t")
    control = table[table["variant"] == "ridge-central"].assign(variant="ridge-overfitted", auc=0.95, auc_low=low)
    experiment["tables"]["audit"] = str(tmp_path / "audit.tsv")
    write_tsv(tmp_path / "audit.tsv", pd.concat([table, control]))
    assert not audited(experiment).control
    shown = next(one for one in experiment["variants"] if one["name"] == "ridge-central")
    shown["name"] = "ridge-overfitted"
    assert words in audited(experiment).control


def test_the_largest_epsilon_of_any_institution_is_shown(experiment, tmp_path):
    for repeat, spent in enumerate(([1.5, 4.125], [3.0])):
        rows = [{"institution": "a", "epsilon_spent": epsilon, "delta": 1e-5} for epsilon in spent]
        write_text(tmp_path / f"{repeat}.json", canonical_json(rows))
    shown = next(one for one in experiment["variants"] if one["name"] == "ridge-local")
    shown["privacy"] = [str(tmp_path / f"{repeat}.json") for repeat in range(2)]
    found = audited(experiment)
    cell = next(row for row in found.rows if row.variant.name == "ridge-local").cells[-1]
    assert (cell.text, cell.note, found.private) == ("ε = 4.13", "δ = 1e-05", True)


def test_one_repeat_has_the_loss_threshold_alone(experiment, tmp_path):
    table = pd.read_csv(experiment["tables"]["audit"], sep="\t")
    experiment["tables"]["audit"] = str(tmp_path / "audit.tsv")
    write_tsv(tmp_path / "audit.tsv", table[table["attack"] == "loss"])
    found = audited(experiment | {"repeats": 1, "splits": experiment["splits"][:1]})
    assert (found.shadows, {row.cells[1].text for row in found.rows}) == (0, {"–"})
    variants = read_experiment({"cohort": "toy", **experiment}).variants
    leaks = read_leaks(variants, experiment["tables"]["summary"], experiment["tables"]["audit"])
    assert ({leak.attack for leak in leaks}, len(leaks)) == ({"loss"}, len(found.rows))


def test_the_page_says_where_an_attack_finds_the_site(outline, tmp_path):
    for experiment in outline["cohorts"][0]["experiments"]:
        table = pd.read_csv(experiment["tables"]["audit"], sep="\t")
        experiment["tables"]["audit"] = str(tmp_path / f"{experiment['name']}.tsv")
        write_tsv(experiment["tables"]["audit"], table[table["attack"] == "loss"])
        experiment["split"] = {**experiment["split"], "validation": "leave_one_site_out"}
    found = audited(outline["cohorts"][0]["experiments"][0])
    assert (found.shadows, found.whole_sites) == (0, True)
    page = " ".join(page_of(outline).split())
    assert "The loss threshold also finds that a model does not know a site" in page
    assert "figure-leakage" not in page


def test_the_picture_has_the_stronger_attack_of_each_method(experiment, tmp_path):
    table = pd.read_csv(experiment["tables"]["audit"], sep="\t")
    strong = (table["variant"] == "fedgcn") & (table["attack"] == "loss")
    table.loc[strong, ["auc", "auc_low", "auc_high"]] = 0.99, 0.98, 1.0
    write_tsv(tmp_path / "audit.tsv", table)
    variants = read_experiment({"cohort": "toy", **experiment}).variants
    leaks = {
        leak.variant.name: leak
        for leak in read_leaks(variants, experiment["tables"]["summary"], str(tmp_path / "audit.tsv"))
    }
    assert (leaks["fedgcn"].attack, leaks["fedgcn"].auc, leaks["fedgcn"].low) == ("loss", 0.99, 0.98)
    held = table.set_index(["variant", "attack"])["auc"]
    for name, leak in leaks.items():
        assert leak.auc == max(held[name, "lira"], held[name, "loss"]) == held[name, leak.attack]
    assert "lira" in {leak.attack for leak in leaks.values()}
    assert "the stronger attack (LiRA or loss threshold)" in str(leakage_chart(list(leaks.values())).to_dict())


@pytest.mark.parametrize(("high", "shown"), [(0.74, "25.0 %"), (0.76, "\u2013")])
def test_true_positives_without_any_precision_are_not_shown(experiment, tmp_path, high, shown):
    table = pd.read_csv(experiment["tables"]["audit"], sep="\t")
    table = table.assign(non_members=200, tpr=0.25, tpr_low=0.25, tpr_high=high)
    experiment["tables"]["audit"] = str(tmp_path / "audit.tsv")
    write_tsv(tmp_path / "audit.tsv", table)
    assert {row.cells[2].text for row in audited(experiment).rows} == {shown}


def test_bytes_are_those_of_all_stages_both_ways(experiment):
    variants = read_experiment({"cohort": "toy", **experiment}).variants
    leaks = read_leaks(variants, experiment["tables"]["summary"], experiment["tables"]["audit"])
    sent = {leak.variant.name: leak.sent for leak in leaks}
    assert (sent["majority"], sent["fedgcn"], sent["fedni"]) == (0, 2 * 2048, 2048 + 4_000_000)


def test_the_page_shows_what_models_reveal(page):
    text = " ".join(re.sub("<[^>]+>", " ", page[page.index('<section id="leakage">') :]).split())
    assert "what the models reveal of their training subjects" in text
    assert "8 models of each method; up to 1 shadow model a subject." in text
    assert "have no guarantee for a subject, and none is offered" in text
    assert '<figure id="figure-leakage' in page and 'href="#leakage"' in page
    assert "is the largest that an institution spent" not in text
    assert "Membership inference attacks from first principles" in text


def test_a_page_without_an_audit_has_no_such_section(outline, tmp_path):
    empty = tmp_path / "audit.tsv"
    write_tsv(empty, pd.DataFrame(columns=list(COLUMNS)).astype({"auc": float}))
    for experiment in outline["cohorts"][0]["experiments"]:
        experiment["tables"]["audit"] = str(empty)
    page = page_of(outline)
    assert "what the models reveal" not in page and 'href="#leakage"' not in page


def test_a_method_with_public_subjects_has_two_rows_and_its_leak_is_that_of_private_ones(experiment, tmp_path):
    table = pd.read_csv(experiment["tables"]["audit"], sep="\t")
    chosen = table["variant"].iloc[0]
    public = table[(table["variant"] == chosen) & ~table["attack"].str.endswith("-others")]
    public = public.assign(attack=public["attack"] + "-public", auc=0.99, auc_low=0.98, auc_high=1.0)
    before = audited(experiment)
    leaks = read_leaks(read_experiment({"cohort": "toy", **experiment}).variants, experiment["tables"]["summary"],
                       experiment["tables"]["audit"])  # fmt: skip
    experiment["tables"]["audit"] = str(tmp_path / "audit.tsv")
    write_tsv(tmp_path / "audit.tsv", pd.concat([table, public]))
    after = audited(experiment)
    assert not before.parted and after.parted
    rows = {(row.variant.name, row.cells[0].text): row.cells for row in after.rows}
    assert {who for name, who in rows if name == chosen} == {"private", "public"}
    assert {who for name, who in rows if name != chosen} == {"all"}
    # As text: numbers that are missing are equal to nothing.
    assert [str(row.cells) for row in before.rows if row.variant.name == chosen] == [str(rows[chosen, "private"][1:])]
    assert rows[chosen, "public"][4].text == "0.99"
    again = read_leaks(read_experiment({"cohort": "toy", **experiment}).variants, experiment["tables"]["summary"],
                       experiment["tables"]["audit"])  # fmt: skip
    assert [leak.auc for leak in again] == [leak.auc for leak in leaks]
