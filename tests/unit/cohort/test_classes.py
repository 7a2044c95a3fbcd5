"""A cohort with three named diagnoses: its config, its participants, its split, what is said of it."""

import pandas as pd
import pytest

from brainfed.checking._files import read_roster, remarks
from brainfed.cohort import DIAGNOSIS_WORDS, class_words
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.quality import classes_by_site
from brainfed.cohort.settings import CodeSettings, CohortSettings, SplitSettings
from brainfed.cohort.splits import split
from brainfed.configuration import validate
from brainfed.runtime import Streams, UserError

CODES = {"1": "AD", "2": "MCI", "3": "CN", "9": "excluded"}
SETTINGS = CohortSettings(
    source="timeseries", codes=CodeSettings(diagnosis=CODES), classes=("CN", "MCI", "AD"), series="{file}"
)


def table(folder, diagnoses, sites="ab"):
    rows = [f"s{number:03d},{sites[number % len(sites)]},30,male,{code}" for number, code in enumerate(diagnoses)]
    path = folder / "table.csv"
    path.write_text("\n".join(["participant_id,site,age,sex,diagnosis", *rows]))
    return path


def complaint(**changes):
    values = {"source": "timeseries", "classes": ["CN", "MCI", "AD"], "codes": {"diagnosis": CODES}}
    with pytest.raises(UserError) as error:
        validate(CohortSettings, values | changes, "cohorts.ours")
    return str(error.value)


def test_the_order_of_the_names_gives_the_codes(tmp_path):
    people = ingest(table(tmp_path, [3, 2, 1, 9, 2]), SETTINGS, {})
    assert people["diagnosis"].astype("float").fillna(-1).tolist() == [0, 1, 2, -1, 1]
    assert SETTINGS.class_names == ("CN", "MCI", "AD")


def test_codes_may_be_numbers_in_the_config():
    values = {"source": "timeseries", "classes": ["CN", "AD"], "codes": {"diagnosis": {1: "AD", 3: "CN"}}}
    assert validate(CohortSettings, values, "ours").class_names == ("CN", "AD")


def test_without_names_there_are_patients_and_controls():
    assert CohortSettings(source="timeseries").class_names == ("control", "patient")
    assert class_words("diagnosis") is DIAGNOSIS_WORDS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"codes": {"diagnosis": {"1": "AD", "2": "MIC", "3": "CN"}}},
            "codes.diagnosis.2: expected one of CN, MCI, AD",
        ),
        (
            {"codes": {"diagnosis": {"1": "AD", "2": "MCI"}}},
            "expected a code that means CN, found none; write what the table has for it",
        ),
        (
            {"codes": {}},
            "expected a code that means AD, found none; write what the table has for it, as `codes: {diag",
        ),
        ({"classes": ["CN", "CN"]}, "two or more different names"),
        ({"classes": ["CN", "excluded"]}, "the name of a diagnosis, found 'excluded'"),
        ({"target": "sex"}, "expected target diagnosis, found sex"),
        ({"source": "simulate"}, "which has patients and controls"),
        ({"classes": []}, "codes.diagnosis.1: expected one of control, patient, unlabelled, excluded, found 'AD'"),
    ],
)
def test_names_that_do_not_fit_are_refused(changes, words):
    assert words in complaint(**changes)


def test_folds_hold_the_shares_of_all_classes(tmp_path):
    people = ingest(table(tmp_path, [1, 2, 2, 3] * 40), SETTINGS, {})
    included = pd.DataFrame({"subject": people["subject"], "included": True, "twin_group": people["subject"]})
    drawn = split(included, people, SplitSettings(count=2, folds=4), Streams(1), "diagnosis", SETTINGS.classes).merge(
        people, on="subject"
    )
    counts = drawn.groupby(["institution", "fold", "diagnosis"]).size().unstack()
    assert counts.shape == (8, 3)
    assert (counts.max() - counts.min()).max() <= 4
    assert counts.to_numpy().min() >= 3


def test_an_institution_needs_every_class_in_every_fold(tmp_path):
    people = ingest(table(tmp_path, [2, 3] * 20 + [1, 1]), SETTINGS, {})
    included = pd.DataFrame({"subject": people["subject"], "included": True, "twin_group": people["subject"]})
    with pytest.raises(UserError, match="at least 4 different AD subjects for 4 folds"):
        split(included, people, SplitSettings(count=1, folds=4), Streams(1), "diagnosis", SETTINGS.classes)


def test_the_check_names_a_site_of_one_class_and_a_cohort_of_one(tmp_path):
    settings = CohortSettings(
        **{**vars(SETTINGS), "phenotype": str(table(tmp_path, [1, 2, 1, 3])), "on_invalid": "drop"}
    )
    _, participants, _ = read_roster("ours", settings, "place")
    told = [finding.sentence for finding in remarks(participants, settings)]
    assert any("site a: all 2 subjects are AD subjects" in sentence for sentence in told)
    settings = CohortSettings(**{**vars(settings), "phenotype": str(table(tmp_path, [2, 2]))})
    _, participants, _ = read_roster("ours", settings, "place")
    (told,) = [finding.sentence for finding in remarks(participants, settings)]
    assert "expected CN, MCI and AD subjects, found MCI subjects only" in told


def test_words_of_three_classes():
    words = class_words("diagnosis", SETTINGS.classes)
    assert words.listed == "CN, MCI and AD subjects"
    assert words.short == {0: "CN", 1: "MCI", 2: "AD"}
    assert [(code, named.many) for code, named in words.contrasts][2] == (2, {0: "all others", 1: "AD subjects"})
    assert DIAGNOSIS_WORDS.contrasts == ((1, DIAGNOSIS_WORDS),)
    assert DIAGNOSIS_WORDS.listed == "patients and controls"


def test_a_site_that_decides_the_class_of_three_has_a_v_of_one():
    site, diagnosis = pd.Series(list("aabbcc")), pd.Series([0, 0, 1, 1, 2, 2])
    found = classes_by_site(diagnosis, site)
    assert found.v == pytest.approx(1)
    assert (found.one_class, found.guessed, found.chance) == (3, 1, pytest.approx(1 / 3))
