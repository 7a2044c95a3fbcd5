"""The coordinator's page: what of the config and of the state is on it."""

from brainfed.deployment.outcome_page import outcome_outline, write_outcome_page
from study_outcome import SITES, VARIANTS, sent, write_study


def test_the_page_is_written_with_the_number_of_steps(tmp_path):
    place = write_study(tmp_path, folds=2, repeats=1)
    rows, _ = sent(tmp_path, folds=2, repeats=1)
    page = tmp_path / "outcome.html"
    write_outcome_page(place, rows, 1234, page)
    assert "1,234 rounds and sums of all sites" in page.read_text(encoding="utf-8")


def test_the_outline_has_the_sites_variants_and_reference_of_the_config(tmp_path):
    place = write_study(tmp_path, cohort={"condition": "autism"})
    outline = outcome_outline(place, {site: [] for site in SITES}, 7, "")
    (experiment,) = outline.experiments
    assert outline.sites == tuple(SITES) and outline.words.condition == "autism"
    assert [variant.name for variant in experiment.variants] == list(VARIANTS)
    assert [variant.place for variant in experiment.variants] == ["local", "federated", "federated"]
    assert (experiment.reference, experiment.folds, experiment.repeats) == ("ridge-local", 5, 2)
    assert outline.study.masked and outline.study.secret_noise
