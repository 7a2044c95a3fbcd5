"""Inputs that labs really have, each with one mistake: the sentence for the user, and the results of other subjects."""

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from brainfed.checking import check_project
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.quality import include, list_issues
from brainfed.cohort.settings import CohortSettings, SplitSettings
from brainfed.cohort.sources import list_cohort
from brainfed.cohort.splits import split
from brainfed.configuration import validate
from brainfed.runtime import Streams, UserError, read_arrays, read_table
from support.broken.broken_inputs import image_cohort, numbers, series_cohort, voxels, write_image, write_series
from support.broken.broken_series import FILE, SERIES
from support.broken.broken_tables import TABLES
from support.files.run_of_cohort import measured_scans, parts_of, write_part

BROKEN = [*TABLES, *SERIES]


@dataclass
class Work:
    """Results of a cohort's jobs: sentences of those that failed, subjects with a series, problems of the others."""

    sentences: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)
    split: pd.DataFrame | None = None
    issues: pd.DataFrame | None = None


def work(cohort, on_invalid="error"):
    """Everything from listing to the split, shard by shard, as the workflow's jobs do it."""
    settings = validate(CohortSettings, cohort.settings | {"on_invalid": on_invalid}, "c")
    done = Work()
    try:
        _work(cohort, settings, done)
    except UserError as error:
        done.sentences.append(str(error))
    return done


def _work(cohort, settings, done):
    listing = list_cohort("c", settings)
    files = {name: parts_of(cohort.folder, name) for name in listing.shards}
    for name, out in files.items():
        try:
            write_part(listing, listing.members(name), settings, out)
        except UserError as error:
            done.sentences.append(str(error))
            continue
        done.written |= set(read_arrays(out.series).arrays)
        problems = read_table(out.quality).set_index("subject")["problem"]
        done.problems |= problems[problems != ""].to_dict()
    done.problems |= listing.absences
    if done.sentences:
        return
    participants = ingest(listing.tables, settings, listing.absences)
    quality, coverage = (
        pd.concat([read_table(getattr(out, kind)) for out in files.values()]) for kind in ("quality", "coverage")
    )
    measured = measured_scans(participants, quality, coverage, settings)
    included = include(measured, settings)
    done.issues = list_issues(measured, included, coverage, settings) if settings.on_invalid == "error" else None
    done.split = split(included, participants, SplitSettings(**cohort.split), Streams(1))


def everybody(cohort):
    return {row[0] for row in cohort.rows()[1:]}


def by_name(broken):
    return broken.name


@pytest.mark.parametrize("make", [series_cohort, image_cohort])
def test_a_good_cohort_has_nothing_wrong(tmp_path, make):
    cohort = make(tmp_path)
    assert check_project(cohort.configure()) == []
    done = work(cohort)
    assert (done.sentences, done.problems, done.written) == ([], {}, everybody(cohort))


@pytest.mark.parametrize("broken", BROKEN, ids=by_name)
def test_check_and_job_name_the_mistake_and_the_shards_of_others_stay(cohort, broken):
    broken.make(cohort)
    if broken.checked:
        stops = [found for found in check_project(cohort.configure()) if found.severity == "stops"]
        assert any(re.search(broken.checked, found.sentence) for found in stops), stops
        assert not broken.subject or [found.subjects for found in stops] == [(broken.subject,)]
    done = work(cohort)
    (sentence,) = set(done.sentences)
    assert re.search(broken.sentence, sentence)
    assert "Traceback" not in sentence
    if broken.subject and done.written:
        listing = list_cohort("c", validate(CohortSettings, cohort.settings, "c"))
        (shard,) = {one.shard for one in listing.subjects if one.subject == broken.subject}
        assert done.written == {one.subject for one in listing.subjects if one.shard != shard}


@pytest.mark.parametrize("broken", [one for one in BROKEN if one.subject], ids=by_name)
def test_the_subject_of_the_mistake_alone_may_be_dropped(cohort, broken):
    broken.make(cohort)
    cohort.settings |= {"on_invalid": "drop", "shards": 1}
    done = work(cohort, "drop")
    assert done.sentences == []
    assert done.written == everybody(cohort) - {broken.subject}
    assert set(done.problems) == {broken.subject}
    assert set(done.split["subject"]) == done.written
    found = check_project(cohort.configure())
    assert not [one for one in found if one.severity == "stops"]
    if broken.checked:
        assert [one.subjects for one in found if one.severity == "drops"] == [(broken.subject,)]


def test_decimal_commas_are_read_or_named(cohort):
    cohort.change("s03", "age", "22,5")
    sentences = work(cohort).sentences
    found = [one.sentence for one in check_project(cohort.configure()) if one.severity == "stops"]
    assert found == sentences
    assert all("line 4, subject s03" in sentence and "decimal comma" in sentence for sentence in sentences)


def test_duplicates_are_noticed_and_kept_together(cohort):
    shutil.copy(cohort.series("s03"), cohort.series("s07"))
    (found,) = check_project(cohort.configure())
    assert (found.severity, found.subjects) == ("notes", ("s03", "s07"))
    done = work(cohort)
    assert done.issues.loc[done.issues["kind"] == "identical series", "subject"].tolist() == ["s03", "s07"]
    assert done.split.set_index("subject").loc[["s03", "s07"], "fold"].nunique() == 1


def test_two_rows_of_one_file_are_duplicates(cohort):
    header, *rows = cohort.rows()
    files = {"s07": "s03"}
    cohort.write_rows([[*header, "file"], *([*row, files.get(row[0], row[0])] for row in rows)])
    cohort.settings |= {"columns": {"file": "file"}, "series": cohort.settings["series"].replace("subject", "file")}
    found = check_project(cohort.configure())
    assert {one.severity for one in found} == {"notes"}
    assert any(re.search(r"s03\.1D: expected one subject, found 2 \(s03, s07\)", one.sentence) for one in found)
    assert any(re.search(r"1 files belong to no row .*s07\.1D", one.sentence) for one in found)
    assert work(cohort).split.set_index("subject").loc[["s03", "s07"], "fold"].nunique() == 1


def test_a_file_without_a_row_is_noted(cohort):
    write_series(cohort.series("s99"), numbers("s99"))
    (found,) = check_project(cohort.configure())
    assert found.severity == "notes"
    assert re.search(r"1 files belong to no row of the table, the first is .*s99\.1D; add rows", found.sentence)
    assert work(cohort).sentences == []


def test_a_site_of_one_class_is_noted_and_kept(cohort):
    for subject in ("s01", "s02", "s05", "s06"):
        cohort.change(subject, "site", "c")
    (found,) = check_project(cohort.configure())
    assert (found.severity, "site c: all 4 subjects are patients" in found.sentence) == ("notes", True)
    assert "one class" in set(work(cohort).issues["kind"])


def test_constant_regions_are_kept_as_an_issue(cohort):
    values = numbers("s03")
    values[:, 1] = 7
    write_series(cohort.series("s03"), values)
    done = work(cohort)
    assert done.sentences == []
    assert done.issues[["subject", "kind"]].to_numpy().tolist() == [["s03", "constant regions"]]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(cohort):
    cohort.series("s03").chmod(0)
    for sentence in (*work(cohort).sentences, *(one.sentence for one in check_project(cohort.configure()))):
        assert re.search(FILE + ".*Permission denied", sentence)


def test_every_wrong_row_and_file_is_listed_at_once(tmp_path):
    cohort = image_cohort(tmp_path)
    cohort.series("s01").write_bytes(cohort.series("s01").read_bytes()[:999])
    write_image(cohort.series("s05"), voxels("s05")[..., 0])
    cohort.change("s02", "sex", "?")
    cohort.change("s04", "age", "-1")
    cohort.change("s06", "age", "-2")
    found = check_project(cohort.configure())
    assert [one.subjects for one in found if one.severity == "stops"] == [("s02",), ("s04", "s06"), ("s01",), ("s05",)]
    assert found[1].sentence.endswith("The same in s06.")


def test_paths_are_of_the_working_directory(cohort, monkeypatch):
    monkeypatch.chdir(cohort.folder)
    cohort.settings |= {"phenotype": "participants.csv", "series": "series/{subject}.1D"}
    assert check_project(cohort.configure()) == []
    assert Path("participants.csv").exists()
