"""The page on a study between sites: its numbers, its words, what is missing, and names that are no HTML."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from brainfed.reporting import Interval, places
from brainfed.reporting.charts import IntervalRow, by_site_chart
from brainfed.sites._outcome import read_results, score_table, site_table
from brainfed.sites._outcome_page import outcome_screen, render_outcome
from brainfed.sites._scores import by_run, of_all
from support.reports.chart_rows import rows_of
from support.reports.report_project import words_of
from support.sites.study_outcome import FOLDS, REPEATS, SITES, VARIANTS, outline_of, sent


def results(outline, number=0):
    return read_results(outline, outline.experiments[number])


def facts(outline):
    return {fact.title: fact.text for fact in outcome_screen(outline, results(outline)).facts}


@pytest.fixture(scope="module")
def outline(tmp_path_factory):
    return outline_of(tmp_path_factory.mktemp("study"), cohort={"condition": "autism"})


@pytest.fixture(scope="module")
def one_class(tmp_path_factory):
    """Madrid tests patients alone."""
    return outline_of(tmp_path_factory.mktemp("study"), {**SITES, "madrid": (0, 22)})


def test_the_table_has_all_sites_together_with_the_corrected_interval(outline):
    table = score_table(results(outline), outline.words)
    folds = outline.counts["fedtangent"]
    value, runs = of_all(folds, "balanced_accuracy"), list(by_run(folds, "balanced_accuracy").values())
    assert len(runs) == FOLDS * REPEATS
    reach = stats.t.ppf(0.975, len(runs) - 1) * np.sqrt((1 / len(runs) + 1 / (FOLDS - 1)) * np.var(runs, ddof=1))
    row = next(row for row in table.rows if row.variant.name == "fedtangent")
    assert row.cells[0].value == value
    assert row.cells[0].note == f"{value - reach:.2f} to {value + reach:.2f}"
    assert [head.title for head in table.heads] == [
        "balanced accuracy", "balanced accuracy", "accuracy", "sensitivity", "specificity", "AUC"
    ]  # fmt: skip


def test_bounds_of_a_share_stay_between_none_and_all(outline):
    for one in results(outline).variants:
        for found in [*one.values.values(), one.across]:
            assert 0 <= found.low <= found.mean <= found.high <= 1


def test_the_best_value_is_marked_once(outline):
    rows = score_table(results(outline), outline.words).rows
    assert [row.variant.name for row in rows if row.cells[0].marked] == ["fedtangent"]


def test_differences_by_site_are_those_of_the_numbers(outline):
    result = results(outline)
    table = site_table(result, outline.words)
    assert [head.title for head in table.heads] == ["all sites together", *SITES]
    assert table.heads[1].note == "25 patients, 20 controls"
    reference, other = result.variants[0], result.variants[2]
    assert all(not cell.note for cell in table.rows[0].cells)
    for cell, site in zip(table.rows[2].cells[1:], SITES, strict=True):
        difference = other.at_sites[site] - reference.at_sites[site]
        assert float(cell.note.replace("\u2212", "-")) == pytest.approx(difference, abs=0.0051)
    found = result.difference(other, reference)
    pairs = [by_run(one.folds, "balanced_accuracy") for one in (other, reference)]
    differences = [pairs[0][run] - pairs[1][run] for run in pairs[0]]
    reach = stats.t.ppf(0.975, 9) * np.sqrt((1 / 10 + 1 / 4) * np.var(differences, ddof=1))
    assert found.mean == pytest.approx(other.score.mean - reference.score.mean)
    assert (found.low, found.high) == pytest.approx((found.mean - reach, found.mean + reach))


def test_the_first_screen_answers_in_two_sentences_with_numbers(outline):
    found, result = outcome_screen(outline, results(outline)), results(outline)
    assert found.question == "Can three institutions predict autism from brain scans without sharing them?"
    best, alone = result.variants[2], result.variants[0]
    assert found.answer == (
        "Trained by all sites without sharing them (federated), FedTangent has a balanced accuracy of "
        f"{best.score}; Ridge (local), trained by each site alone, {alone.score}. Guessing has 0.50, and 1 is perfect."
    )


def test_the_facts_say_on_whom_how_sure_and_what_is_known_of_other_sites(outline):
    found = facts(outline)
    assert found["On whom"].startswith(
        "125 tested people at 3 sites (62 patients, 63 controls): berlin 45, madrid 50, oslo 30. Everybody is tested "
        "twice, by a model that did not train on them: 10 tests of 25 people"
    )
    assert found["What was compared"] == (
        "Three methods at the same 3 sites and on the same people: Ridge (local); Ridge, federated; FedTangent."
    )
    assert "FedTangent scored highest of 2 federated methods on the same tests" in found["How sure"]
    assert "Three sites are too few to say what another site would reach" in found["At other sites"]
    assert re.search(r"recognises \d+\u00a0% of the patients and \d+\u00a0% of the controls", found["How useful"])


def test_the_page_says_what_it_cannot_know_and_how_the_study_ran(outline):
    text = words_of(render_outcome(outline))
    for said in (
        "Methods cannot be compared person by person here: predictions stay at the sites",
        "it is not the AUC of all people together",
        "Student’s t, 2 degrees of freedom",
        "With 3 sites it reaches 4.3 standard errors",
        "Nothing: all 30 folds of sites have a row.",
        "412 rounds and sums of all sites",
        "Masked: where a method needs the sum alone",
        "federation/left-this-site.tsv",
        "5-fold cross-validation inside every site, 2 repeats",
    ):
        assert said in text
    assert "nan" not in text.lower()


def test_a_site_without_a_class_has_a_dash_with_a_reason_and_counts_in_the_total(one_class):
    result = results(one_class)
    row = site_table(result, one_class.words).rows[1]
    assert [row.cells[2].text, row.cells[2].note] == ["\u2013", "no controls"]
    assert result.variants[1].across.runs == 2
    folds = one_class.counts[VARIANTS[1]]
    without = [fold for fold in folds if fold.site != "madrid"]
    assert result.variants[1].values["accuracy"].mean == of_all(folds, "accuracy") != of_all(without, "accuracy")
    text = words_of(render_outcome(one_class))
    assert "A dash: madrid tested no subjects of some class" in text
    assert "Two sites are too few" in text and "1 degree of freedom" in text
    assert "nan" not in text.lower()


def test_small_folds_are_counted_as_left_out(tmp_path):
    outline = outline_of(tmp_path, {**SITES, "oslo": (6, 6)}, repeats=1)
    result = results(outline)
    assert (result.missing, result.expected) == (5, 15)
    text = words_of(render_outcome(outline))
    assert "5 of 15 folds of sites have no row: a site does not send counts of fewer than 5 tested people" in text
    assert "oslo: 5 of 5 folds" in text
    assert site_table(result, outline.words).rows[0].cells[3].note == "no row"


def test_a_variant_without_rows_has_a_row_of_dashes(tmp_path):
    rows, _ = sent(tmp_path, repeats=1)
    kept = {site: [row for row in own if row["variant"] != "fedtangent"] for site, own in rows.items()}
    outline = outline_of(tmp_path, repeats=1, scores=kept)
    result = results(outline)
    cells = score_table(result, outline.words).rows[2].cells
    assert {cell.text for cell in cells} == {"\u2013"} and cells[0].note == "no row"
    assert result.missing == 0
    text = words_of(render_outcome(outline))
    assert "Ridge, federated has a balanced accuracy of" in text and "nan" not in text.lower()


def test_a_study_without_any_row_says_so(tmp_path):
    outline = outline_of(tmp_path, scores={site: [] for site in SITES})
    text = words_of(render_outcome(outline))
    assert "no site sent a row, as none has a fold with 5 tested people or more" in text
    assert "30 of 30 folds of sites have no row" in text and "nan" not in text.lower()


def test_few_tests_have_no_interval(tmp_path):
    outline = outline_of(tmp_path, folds=3, repeats=1)
    assert facts(outline)["How sure"].startswith(
        "There is no interval over tests, for other people of these sites: 3 tests are too few."
    )
    result = results(outline)
    assert not any(row.cells[0].note for row in score_table(result, outline.words).rows)
    page = render_outcome(outline)
    assert "3 tests (folds of all repeats) are too few to show their spread" in words_of(page)
    assert "Filled dot: all sites. Below it" in words_of(page) and "together with the 95 % interval" not in page


def test_names_of_classes_are_text_and_no_html(tmp_path):
    names = ("CN", "<script>alert(1)</script>", "A&D")
    codes = {str(code): name for code, name in enumerate(names)}
    sites = {site: (*classes, 15) for site, classes in SITES.items()}
    cohort = {"classes": list(names), "codes": {"diagnosis": codes}}
    page = render_outcome(outline_of(tmp_path, sites, folds=2, repeats=1, names=names, cohort=cohort))
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "A&amp;D" in page
    assert "sensitivity" not in words_of(page) and "Guessing has 0.33" in words_of(page)


def test_the_page_loads_nothing(outline):
    page = render_outcome(outline)
    outside = re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)=["']https?:""", outside)
    assert page.count("<h1") == 1 and page.rstrip().endswith("</html>")


def test_the_picture_has_a_mark_for_each_site_with_a_number(one_class):
    result = results(one_class)
    rows = [IntervalRow(one.variant, one.score) for one in result.variants]
    at_sites = [{"berlin": 0.99, "oslo": 0.11}, {"berlin": 0.6}, {}]
    chart = by_site_chart(rows, at_sites, places(), 2)
    scales = [
        layer["encoding"]["x"]["scale"]["domain"]
        for layer in chart.to_dict()["layer"]
        if "scale" in layer.get("encoding", {}).get("x", {})
    ]
    assert len(scales) == 1 and scales[0][0] < 0.11 and scales[0][1] > 0.99
    dots = rows_of(chart, "site", "mean", "method")
    assert dots[["site", "mean"]].to_numpy().tolist() == [["berlin", 0.99], ["oslo", 0.11], ["berlin", 0.6]]
    assert rows_of(chart)["method"].tolist() == [one.variant.title for one in result.variants]
    alone = by_site_chart([IntervalRow(rows[0].variant, Interval(0.5, 0.4, 0.6, 9))], [{}], places(), 2)
    assert len(rows_of(alone)) == 1


def test_several_experiments_have_a_section_each(tmp_path):
    second = {"variants": list(VARIANTS[1:]), "reference": "fedtangent", "title": "Joint ones"}
    experiments = {"methods": {"variants": list(VARIANTS), "reference": "ridge-local"}, "joint": second}
    page = render_outcome(outline_of(tmp_path, folds=2, repeats=1, experiments=experiments))
    assert 'id="results-methods"' in page and 'href="#results-joint"' in page and 'id="results-joint"' in page
    assert "the difference from the reference FedTangent" in words_of(page)
    ids = re.findall(r'\sid="([^"]+)"', re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))
    assert len(ids) == len(set(ids))


@pytest.fixture(scope="module")
def left_out(outline):
    """The same study, each site tested in one fold by what the others trained."""
    experiment = replace(outline.experiments[0], unseen=True, folds=len(SITES))
    counts = {
        name: [replace(fold, run=(fold.run[0], list(SITES).index(fold.site))) for fold in folds if fold.run[1] == 0]
        for name, folds in outline.counts.items()
    }
    return replace(outline, experiments=(experiment,), counts=counts)


def test_sites_left_out_have_an_interval_over_sites_alone(left_out):
    result = results(left_out)
    assert result.missing == 0 and result.expected == len(SITES) * REPEATS
    for one in result.variants:
        assert not any(found.known for found in one.values.values())
        assert one.across.known and one.across.runs == len(SITES)
    assert not result.difference(result.variants[2], result.variants[0]).known


def test_the_page_says_that_sites_were_left_out(left_out):
    page = words_of(render_outcome(left_out))
    assert "Can models of other sites predict autism from brain scans at a site that took no part?" in page
    assert "tested at one that took no part, Ridge, federated has a balanced accuracy of" in page
    assert "each site left out in turn, 2 repeats" in page
    assert "each site is tested by models that never saw it" in page
    assert "Nadeau" not in page and "without sharing them" not in page
    assert f"Nothing: all {len(SITES) * REPEATS} folds of sites have a row" in page
