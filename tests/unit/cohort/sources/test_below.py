"""Series somewhere below a folder: found by name, refused where two have it, counted where no row names them."""

from dataclasses import replace

import pytest

from brainfed.checking._files import check_orphans
from brainfed.checking._project import check_cohort
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import files_below, list_cohort
from brainfed.cohort.sources._files import located
from brainfed.configuration import validate
from brainfed.runtime import UserError

SERIES = "1,2,3\n4,6,5\n7,9,8\n"
FILES = ("x/a.csv", "x/deep/b.csv", "c.csv", "y/stranger.csv", "y/notes.txt")


@pytest.fixture
def settings(tmp_path):
    """Three subjects, whose files lie in three folders."""
    rows = ("a,s,20,male,patient", "b,s,20,male,control", "c,s,20,male,patient")
    (tmp_path / "table.csv").write_text("\n".join(("participant_id,site,age,sex,diagnosis", *rows)))
    for number, file in enumerate(FILES):
        path = tmp_path / "series" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SERIES.replace("9", str(number)))
    return CohortSettings(
        source="timeseries",
        phenotype=str(tmp_path / "table.csv"),
        series=f"{tmp_path}/series/**/{{subject}}.csv",
        regions=3,
        min_timepoints=3,
        header=False,
    )


def test_a_file_is_found_in_the_folder_or_below(settings, tmp_path):
    listing = list_cohort("c", settings)
    assert [one.series for one in listing.subjects] == [f"{tmp_path}/series/{file}" for file in FILES[:3]]
    assert listing.unlisted == ("stranger.csv",)
    (found,) = check_orphans("c", listing.subjects, settings)
    assert "1 files belong to no row of the table, the first is stranger.csv" in found.sentence


def test_an_absent_file_is_named_by_its_pattern(settings, tmp_path):
    (tmp_path / "series" / FILES[1]).unlink()
    with pytest.raises(UserError, match=r"expected the series file .*series/\*\*/b\.csv of subject b, found none"):
        list_cohort("c", settings)
    listing = list_cohort("c", replace(settings, on_invalid="drop"))
    assert listing.absences == {"b": "series file absent"}


def test_two_files_of_a_subject_are_refused(settings, tmp_path):
    (tmp_path / "series/y/a.csv").write_text(SERIES)
    expected = r"expected one file a\.csv below .*series, found 2, .*x/a\.csv and .*y/a\.csv; remove all but one"
    with pytest.raises(UserError, match=expected):
        list_cohort("c", settings)
    stops = [found for found in check_cohort("c", settings).findings if found.severity == "stops"]
    assert [found.subjects for found in stops] == [("a",)]


def test_links_to_folders_are_followed_once(settings, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "series/x/a.csv").rename(elsewhere / "a.csv")
    (tmp_path / "series/z").symlink_to(elsewhere)
    (elsewhere / "loop").symlink_to(tmp_path / "series")
    assert list_cohort("c", settings).subjects[0].series == f"{tmp_path}/series/z/a.csv"


def test_other_patterns_read_no_folder(tmp_path):
    (tmp_path / "a.csv").touch()
    assert files_below(f"{tmp_path}/{{subject}}.csv") == {}
    assert located("c", f"{tmp_path}/a.csv", {}) == f"{tmp_path}/a.csv"


@pytest.mark.parametrize("pattern", ["**/{subject}.csv", "s/**/{site}/x.csv", "s/{site}/**/x.csv", "s/**x.csv", "s/**"])
def test_a_pattern_that_finds_nothing_is_refused_when_the_config_is_read(pattern):
    with pytest.raises(UserError, match=r"series: expected \*\* once, as a whole folder right before the name"):
        validate(CohortSettings, {"source": "timeseries", "series": pattern}, "config")
