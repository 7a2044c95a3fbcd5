"""Impossible cohort settings are refused with one sentence when the config is read."""

import pytest

from brainfed.cohort.settings import CohortSettings, ExtractionSettings, SimulateSettings, TUDatasetSettings
from brainfed.cohort.settings._sources import SimulatedSite
from brainfed.configuration import validate
from brainfed.runtime import UserError


def complaint(**keys):
    with pytest.raises(UserError) as caught:
        validate(CohortSettings, {"source": "simulate", **keys}, "config: cohorts.c")
    return str(caught.value)


@pytest.mark.parametrize("edge", ["high_pass", "low_pass"])
def test_a_filter_edge_of_zero_is_refused(edge):
    expected = (
        f"config: cohorts.c: extraction.{edge}: expected a frequency above 0 Hz, found 0; "
        "write none for no such filter."
    )
    assert complaint(extraction={edge: 0}) == expected


@pytest.mark.parametrize("band", [(0.1, 0.01), (0.05, 0.05)])
def test_a_band_that_passes_nothing_is_refused(band):
    high_pass, low_pass = band
    found = complaint(extraction={"high_pass": high_pass, "low_pass": low_pass})
    assert f"expected high_pass below low_pass, found {high_pass:g} and {low_pass:g} Hz" in found


@pytest.mark.parametrize("word", ["none", None])
def test_a_filter_is_turned_off_by_a_word(word):
    settings = validate(CohortSettings, {"source": "nifti", "extraction": {"high_pass": word}}, "config")
    assert settings.extraction == ExtractionSettings(high_pass=None)


@pytest.mark.parametrize("tr", [0, -2.0])
def test_a_repetition_time_of_zero_or_less_is_refused(tr):
    assert f"tr.UCLA: expected a repetition time above 0 s, found {tr:g}" in complaint(tr={"NYU": 2.0, "UCLA": tr})


def test_a_simulation_without_sites_is_refused():
    assert "simulate.sites: expected at least one site, found none" in complaint(simulate={"sites": {}})


def test_a_simulation_without_subjects_at_any_site_is_refused():
    sites = {"a": {"share": 0}, "b": {"share": 0}}
    assert "expected a share above 0 at one site or more, found 0 at all 2" in complaint(simulate={"sites": sites})
    assert SimulateSettings(sites={"a": SimulatedSite(share=0.0), "b": SimulatedSite()}).sites["b"].share == 1


@pytest.mark.parametrize(("key", "value", "least"), [("volumes", 9, 10), ("tr", 0, 0.1), ("share", -1, 0)])
def test_an_impossible_simulated_site_is_refused(key, value, least):
    found = complaint(simulate={"sites": {"a": {key: value}}})
    assert f"simulate.sites.a.{key}: expected at least {least:g}, found {value}" in found


@pytest.mark.parametrize(("names", "one"), [(("MUTAG",), True), (("MUTAG", "BZR"), False)])
def test_several_data_sets_of_graphs_have_a_task_each(names, one):
    graphs = CohortSettings(
        source="tudataset", target="class", classes=("a", "b"), tudataset=TUDatasetSettings(names=names)
    )
    assert graphs.one_task == one
    assert CohortSettings(source="timeseries", phenotype="p.csv", series="{file}").one_task


@pytest.mark.parametrize("spelled", ["{}", "./{}", "{}/", ".//{}", "./././{}//"])
def test_every_spelling_of_a_path_is_the_same_setting(spelled):
    def settings(spelling):
        data, up = spelling.format("data"), spelling.format("../data")
        return validate(
            CohortSettings,
            {
                "source": "simulate",
                "phenotype": [f"{data}/a.csv", up],
                "series": f"{data}/{{subject}}.1D",
                "confounds": f"{data}/**/c.tsv",
                "parcellation": data,
                "labels": data,
                "bids": {"derivatives": data},
                "freesurfer": {"tables": [data]},
                "tudataset": {"folder": data},
            },
            "config: cohorts.c",
        )

    assert settings(spelled) == settings("{}")
    assert settings(spelled).phenotype == ("data/a.csv", "../data")
