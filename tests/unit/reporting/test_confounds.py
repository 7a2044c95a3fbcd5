"""The paragraphs on confounds and quality say what was measured, and cannot contradict themselves."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort import DIAGNOSIS_WORDS
from brainfed.cohort.quality import ClassesBySite, GroupDifference, SiteDifferences, classes_by_site
from brainfed.cohort.settings import FlagSettings
from brainfed.reporting.tables import SiteRow, confound_sentences, find_confounds
from brainfed.reporting.tables._confounds import Confounds
from brainfed.reporting.text import quality_words

P = (0.0001, 0.03, 0.049, 0.051, 0.4, 0.9987, 1.0)
ACCURACY = (0.2, 0.3, 0.33, 0.5, 0.84, 1.0)
NO_SITES = pd.DataFrame()


def trace_of(accuracy):
    return SiteRow("over everybody", accuracy, 0.3, accuracy, accuracy, 1, "4", "120", 0, 120)


def paragraphs():
    """One for every combination of what can be measured."""
    summaries = [None, *(SiteDifferences(explained, p, NO_SITES) for explained in (0.0, 0.3) for p in P)]
    traces = [None, *map(trace_of, ACCURACY)]
    motions = [None, *(GroupDifference(0.2, 0.21, -0.05, 0.03, p, -0.1) for p in P[::3])]
    tables = [None, *(ClassesBySite(v, p, 0.6, 0.5, 4, alone) for v, p, alone in ((0.0, 1.0, 0), (0.4, 0.001, 1)))]
    for summary, trace, motion, table in itertools.product(summaries, traces, motions, tables):
        compared = ((motion, DIAGNOSIS_WORDS),) if motion else ()
        found = Confounds("connectivity", table, trace, summary, compared, summary)
        yield found, " ".join(confound_sentences(found))


def test_no_paragraph_says_that_sites_do_not_differ_where_they_are_identified():
    identified = 0
    for found, text in paragraphs():
        above = found.identified is not None and found.identified.above_chance
        identified += above
        assert ("A method can therefore learn the site in place of the diagnosis" in text) == above
        assert ("no better than by naming the largest site" in text) == (found.identified is not None and not above)
        assert not re.search(r"\b(do|does) not differ|no difference|alike|the same at every site", text)
    assert identified > 100


def test_mean_connectivity_never_stands_alone():
    """Where the site is identified, the identification comes first and the one number is called one number."""
    for found, text in paragraphs():
        if found.summary is not None and found.identified is not None and found.identified.above_chance:
            before, _, after = text.partition("mean connectivity")
            assert "names the site from a summary of connectivity" in before
            assert "one number a subject, which can hide what many connections show together" in after


def test_no_p_is_printed_as_nought_or_one():
    for _, text in paragraphs():
        assert not re.search(r"p\s[=<>]\s(0|1|1\.0+|0\.0+|\.0+)(?![0-9.])", text)


def test_an_accuracy_within_guessing_identifies_nothing():
    """Two standard errors of guessing 0.3 among 120 are 0.084."""
    assert not trace_of(0.38).above_chance
    assert trace_of(0.39).above_chance


def test_sites_and_diagnoses_by_hand():
    """9 of 10 patients at A, 3 of 10 at B: chi-square 7.5 among 20, so V = 0.612; 16 of 20 are guessed by site."""
    site = pd.Series(["A"] * 10 + ["B"] * 10 + ["A", None])
    diagnosis = pd.Series([1] * 9 + [0] + [1] * 3 + [0] * 7 + [-1, 1])
    found = classes_by_site(diagnosis, site)
    assert found.v == pytest.approx(np.sqrt(7.5 / 20))
    assert (found.guessed, found.chance, found.sites, found.one_class) == (0.8, 0.6, 2, 0)
    assert classes_by_site(diagnosis, pd.Series(["A"] * 22)) is None


def test_the_paragraph_has_site_by_diagnosis_and_the_identification():
    random = np.random.default_rng(0)
    kept = pd.DataFrame(
        {
            "site": ["A", "B"] * 30,
            "diagnosis": [0, 1, 0, 0] * 15,
            "mean_fd": random.uniform(0.1, 0.4, 60),
            "mean_fc": random.normal(0.2, 0.05, 60),
        }
    )
    trace = SiteRow("over everybody", 0.84, 0.5, 0.84, 0.84, 1, "2", "60", 0, 60)
    text = " ".join(confound_sentences(find_confounds(kept, [trace], morphometry=False)))
    assert text.startswith("Site and diagnosis: guessing each site’s more frequent diagnosis is right for 75")
    assert "for 84\u00a0% of the subjects at sites with 5 or more, where naming" in text
    assert "Motion and diagnosis: mean FD 0." in text


def test_the_difference_in_motion_is_of_patients_minus_controls():
    motion = ((GroupDifference(0.2, 0.25, -0.08, -0.02, 0.01, -0.4), DIAGNOSIS_WORDS),)
    (text,) = confound_sentences(Confounds("connectivity", motion=motion))
    assert "0.200 mm in patients and 0.250 mm in controls, a difference of −0.050 mm (95 % interval −0.080 to" in text


UNKNOWN = ("mean_fd", "mean_fc", "tr", "tsnr", "timepoints", "coverage", "typicality", "typicality_z")


@pytest.mark.parametrize(
    ("related", "said"),
    [
        (0, "Connectivity does not go with motion (QC-FC): none of 1,000 connections do"),
        (1, "Connectivity hardly goes with motion (QC-FC): 0.1 % of 1,000 connections"),
        (500, "Connectivity goes with motion (QC-FC): 50 % of 1,000 connections"),
    ],
)
def test_how_many_connections_go_with_motion(related, said):
    """Those that do have p = 1e-9; the others' p is 1, so that none of them is a discovery."""
    people = pd.DataFrame({"subject": ["a", "b"], "included": True, "diagnosis": [1, 0], "site": "x"})
    people = people.assign(**dict.fromkeys(UNKNOWN, np.nan))
    p = np.where(np.arange(1000) < related, 1e-9, 1.0)
    connections = pd.DataFrame({"r": 0.1, "p": p, "within_r": 0.1, "within_p": p})
    assert any(sentence.startswith(said) for sentence in quality_words(people, connections, FlagSettings()))
