"""The coordinator's page: what of the config and of the state is on it."""

import json
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace

import pytest

from brainfed.sites._outcome_page import outcome_outline, said_time
from support.sites.study_outcome import SITES, VARIANTS, sent, write_study


def test_the_end_has_its_time_zone():
    ended = datetime(2026, 11, 24, 19, 40, 5, 7, timezone(timedelta(hours=1)))
    assert said_time(ended) == "24 November 2026, 19:40 (UTC+01:00)"


def test_the_outline_has_the_sites_variants_and_reference_of_the_config(tmp_path):
    place = write_study(tmp_path, cohort={"condition": "autism"})
    outline = outcome_outline(place, {site: [] for site in SITES}, 7, "")
    (experiment,) = outline.experiments
    assert outline.sites == tuple(SITES) and outline.words.condition == "autism"
    assert [variant.name for variant in experiment.variants] == list(VARIANTS)
    assert [variant.place for variant in experiment.variants] == ["local", "federated", "federated"]
    assert (experiment.reference, experiment.folds, experiment.repeats) == ("ridge-local", 5, 2)
    assert outline.study.secure_sums and outline.study.noise == "secret"


def test_a_study_that_ends_leaves_the_page_and_names_it(tmp_path, monkeypatch, capsys):
    """Flower is left out: the study's run is a function that writes what the sites sent."""
    pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")
    from brainfed.sites import _outcome_page as page
    from brainfed.sites import coordinate as module
    from brainfed.sites.flower import make_certificate, make_key_pair

    monkeypatch.chdir(tmp_path)
    place = write_study(tmp_path, folds=2, repeats=1)
    rows, _ = sent(tmp_path, folds=2, repeats=1)
    federation = tmp_path / "federation"
    (federation / "keys").mkdir(parents=True)
    make_certificate(federation / "certificate.pem", federation / "certificate-key.pem", ["hub.example.org"])
    for site in SITES:
        make_key_pair(tmp_path / "private" / site, federation / "keys" / f"{site}.pub")
    (federation / "outcome.html").write_text("of an earlier end")

    def ends(*_):
        assert not (federation / "outcome.html").exists()
        (federation / "outcome.json").write_text(json.dumps({"steps": 1234, "scores": rows}))

    run = SimpleNamespace(process=SimpleNamespace(poll=None))
    for name, stub in {
        "start_superlink": lambda *_: None, "start_run": lambda *_: run,
        "together": lambda: nullcontext([]), "_follow": ends,
    }.items():  # fmt: skip
        monkeypatch.setattr(module, name, stub)
    monkeypatch.setattr(page, "vega", lambda: "")
    module.coordinate(place.config)
    shown = (federation / "outcome.html").read_text(encoding="utf-8")
    assert "Can three institutions predict" in shown
    assert "1,234 rounds and sums of all sites" in shown
    assert "Exact numbers of 13 different sets of each site’s people were added up" in shown
    assert "privacy budget" not in shown
    assert capsys.readouterr().err.splitlines()[-1] == f"the page to read: {federation / 'outcome.html'}"
