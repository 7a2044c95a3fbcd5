"""What the coordinator compares of a site's config: all that decides a result, and nothing of the site's own files."""

import json
from dataclasses import asdict

import pytest

from brainfed.runtime import UserError, canonical_json
from brainfed.sites.study import A_SITES_OWN, check_introduction, introduction, settings_of, study_digest
from support.sites.study_config import planned

COHORT = "cohorts.rest."


def plan_of(**cohort):
    return planned({"cohorts": {"rest": cohort}, "study": {"site": "oslo"}})


def compare(**cohort):
    """The coordinator's judgement of a site that changes its cohort, as the words arrive."""
    study = planned()
    check_introduction("oslo", json.loads(json.dumps(introduction(plan_of(**cohort), 0.0))), introduction(study, 0.0))


def leaves(values, above=""):
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"exclude": {"mean_fd": 0.5}, "columns": {"mean_fd": "fd"}}, "exclude.mean_fd"),
        ({"unlabelled": "keep"}, "unlabelled"),
        ({"on_invalid": "drop"}, "on_invalid"),
        ({"confound_columns": ["white_matter"]}, "confound_columns"),
        ({"regions": 100}, "regions"),
        ({"min_timepoints": 60}, "min_timepoints"),
        ({"extraction": {"high_pass": 0.02}}, "extraction.high_pass"),
        ({"bids": {"confounds": {"global_signal": "basic"}}}, "bids.confounds.global_signal"),
        ({"bids": {"space": "native"}}, "bids.space"),
        ({"flag": {"alike": 0.95}}, "flag.alike"),
        ({"freesurfer": {"measures": ["thickness"]}}, "freesurfer.measures"),
    ],
)
def test_a_site_that_changes_the_study_is_refused(changes, key):
    with pytest.raises(UserError, match=f"site 'oslo': expected {COHORT}{key}: .*, as in the study, found"):
        compare(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"phenotype": ["a.csv", "b.csv"], "series": "data/{subject}.csv", "labels": "regions.tsv", "header": True},
        {"columns": {"subject": "ScanDir ID", "mean_fd": "fd"}, "missing": ["-999"], "rows": {"VISCODE": ["bl"]}},
        {"codes": {"sex": {"0": "female", "1": "male"}, "site": {"1": "oslo"}}},
        {"shards": 2, "tr": {"oslo": 2.0}, "confounds": "data/{subject}.tsv", "fetch": "make data"},
        {"bids": {"derivatives": "data/fmriprep", "task": "resting", "sessions": ["01"], "export": True}},
        {"freesurfer": {"tables": ["aseg.csv"], "id": "sub-{subject}"}},
    ],
)
def test_a_site_has_paths_names_and_codes_of_its_own(changes):
    compare(**changes)
    assert study_digest(plan_of(**changes)) == study_digest(planned())


def test_every_setting_of_a_cohort_is_compared_or_named_as_a_sites_own():
    """A new setting is compared, unless it is named; a name that is no setting is a mistake."""
    plan = plan_of()
    everything = set(leaves(asdict(plan.project.cohorts["rest"])))
    own = {key for key in everything if any(key == name or key.startswith(f"{name}.") for name in A_SITES_OWN)}
    assert {key.removeprefix(COHORT) for key in settings_of(plan) if key.startswith(COHORT)} == everything - own
    assert {name for name in A_SITES_OWN if not any(key == name or key.startswith(f"{name}.") for key in own)} == set()


def test_settings_are_equal_after_a_journey_as_json():
    settings = settings_of(plan_of(exclude={"min_kept_seconds": 240}, confound_columns=["csf"]))
    assert json.loads(canonical_json(settings)) == settings
