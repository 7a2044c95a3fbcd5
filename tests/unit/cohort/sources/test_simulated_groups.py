"""Groups of a simulated cohort agree in the diagnosis as asked, and nothing else changes with the agreement."""

import hashlib
import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import simulate_subjects, write_participants
from brainfed.cohort.sources._simulated_scans import (
    OWN,
    WITHIN_NETWORK,
    simulate_atlas,
    simulate_connectome,
    subject_correlation,
)
from brainfed.cohort.sources._simulated_subjects import simulate_phenotypes, simulated_groups
from brainfed.configuration import validate
from brainfed.runtime import UserError
from unit.cohort.sources.test_simulate import SMALL as ALONE
from unit.cohort.sources.test_simulate import STREAMS

GROUPED = replace(ALONE, subjects=1000, groups=36, age_mean=40.0, age_sd=18.0)


def cohort(settings):
    return CohortSettings(source="simulate", simulate=settings)


def people(settings):
    return list(simulate_subjects(cohort(settings), STREAMS).values())


def agreeing(settings):
    """(n,) whether a subject's group has its own diagnosis."""
    groups = simulated_groups(settings)
    return np.array([groups[person.group].diagnosis == person.diagnosis for person in people(settings)])


def test_a_cohort_without_groups_has_the_bytes_of_the_version_before_groups(tmp_path):
    """The version before groups wrote files with these digests."""
    write_participants(tmp_path, cohort(ALONE))
    digests = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in BEFORE}
    assert digests == BEFORE


BEFORE = {
    "participants.tsv": "1d95d32b1290c1330e531bd579c0cae3d162d77adf269e60312eb4396ce4ba4a",
    "truth.json": "5b73474afd7e632e93c77994f62d43dabdb928384665a388a680338f685d193c",
}


def plain_correlation(settings, connectome, person, group):
    """Correlation matrix without effects, as documented: loadings of all, site, group and subject."""
    shape = connectome.loadings.shape
    own = settings.individuality * STREAMS.numpy("simulate", "individual", person.participant_id).standard_normal(shape)
    own = own + settings.site_spread * STREAMS.numpy("simulate", "site", person.site).standard_normal(shape)
    if group is not None:
        own = own + settings.group_spread * STREAMS.numpy("simulate", "group", group).standard_normal(shape)
    loadings = connectome.loadings + WITHIN_NETWORK * own
    covariance = loadings @ loadings.T + OWN * np.eye(settings.regions)
    return covariance / np.sqrt(np.outer(np.diagonal(covariance), np.diagonal(covariance)))


@pytest.mark.parametrize("group", [None, 5])
def test_a_group_adds_a_pattern_of_its_own_to_its_members_only(group):
    settings = replace(GROUPED, effect=0, effect_age=0, effect_sex=0)
    connectome = simulate_connectome(settings, simulate_atlas(settings, STREAMS), STREAMS)
    person = replace(people(settings)[0], group=group)
    found = subject_correlation(settings, connectome, person, STREAMS)
    assert np.allclose(found, plain_correlation(settings, connectome, person, group), atol=1e-12)


@pytest.mark.parametrize("agreement", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_the_group_agrees_with_the_diagnosis_as_often_as_asked(agreement):
    count = int(agreeing(replace(GROUPED, group_agreement=agreement)).sum())
    expected = (1 + agreement) / 2
    assert stats.binomtest(count, GROUPED.subjects, expected).pvalue > 0.01
    if agreement == 1:
        assert count == GROUPED.subjects


def test_a_higher_dose_moves_people_to_the_other_sex_s_group_of_their_age_and_nothing_else():
    """From an agreement of .25 to one of .75 a quarter of the people change sex: (1 + .75) / 2 - (1 + .25) / 2."""
    low, high = (
        simulate_phenotypes(cohort(replace(GROUPED, group_agreement=agreement)), STREAMS) for agreement in (0.25, 0.75)
    )
    pd.testing.assert_frame_equal(low.drop(columns="sex"), high.drop(columns="sex"))
    stayed = int((low["sex"] == high["sex"]).sum())
    assert stats.binomtest(stayed, len(low), 0.75).pvalue > 0.01
    assert (low["diagnosis"] == "patient").sum() == 500


def test_sex_and_age_are_those_of_the_group():
    groups = simulated_groups(GROUPED)
    for person in people(GROUPED):
        low, high = groups[person.group].ages
        assert person.sex == groups[person.group].sex
        assert low - 0.005 <= person.age <= high + 0.005


def test_bands_of_age_keep_apart_and_have_the_mean_and_spread_that_the_cohort_asks_for():
    """18 bands, two groups each; the uniform grid of their centres has a standard deviation of 18 years."""
    groups = simulated_groups(GROUPED)
    centres = np.array([sum(group.ages) / 2 for group in groups])
    assert centres.mean() == pytest.approx(40)
    assert centres.std() == pytest.approx(18)
    bands = sorted({group.ages for group in groups})
    assert len(bands) == 18
    gaps = [later[0] - earlier[1] for earlier, later in pairwise(bands)]
    assert gaps == pytest.approx([bands[0][1] - bands[0][0]] * 17)


def test_sex_and_diagnosis_are_shared_out_evenly_over_groups():
    table = pd.DataFrame([(group.sex, group.diagnosis) for group in simulated_groups(GROUPED)])
    assert table.value_counts().tolist() == [9, 9, 9, 9]


def test_site_age_and_sex_predict_no_diagnosis_however_strongly_groups_do():
    """A linear model of them is within 3 standard errors of one half on unseen subjects."""
    table = simulate_phenotypes(cohort(replace(GROUPED, subjects=2000, group_agreement=1.0)), STREAMS)
    seen = np.column_stack([table["age"] / 18, table["sex"] == "male", table["site"] == "a"]).astype(float)
    patient = (table["diagnosis"] == "patient").to_numpy()
    model = LogisticRegression().fit(seen[:1000], patient[:1000])
    assert abs(model.score(seen[1000:], patient[1000:]) - 0.5) < 3 * 0.5 / np.sqrt(1000)


def test_one_more_subject_leaves_the_groups_of_the_others():
    few, more = (people(replace(GROUPED, subjects=count)) for count in (40, 41))
    assert few == more[:40]


def test_the_truth_names_the_members_of_every_group_and_the_table_does_not(tmp_path):
    settings = replace(GROUPED, subjects=40)
    write_participants(tmp_path, cohort(settings))
    truth = json.loads((tmp_path / "truth.json").read_text())
    expected = {person.participant_id: person.group for person in people(settings)}
    assert {subject: number for number, held in enumerate(truth["groups"]) for subject in held} == expected
    assert truth["settings"]["groups"] == 36
    assert "group" not in pd.read_csv(tmp_path / "participants.tsv", sep="\t")


@pytest.mark.parametrize(("groups", "instead"), [(2, 4), (6, 8), (37, 36)])
def test_numbers_of_groups_that_diagnoses_cannot_divide_are_refused(groups, instead):
    with pytest.raises(
        UserError, match=rf"simulate\.groups: expected a multiple of 4.* found {groups}; write {instead}"
    ):
        validate(CohortSettings, {"source": "simulate", "simulate": {"groups": groups}}, "config: cohorts.c")
