"""Listing of a cohort's subjects: excluded and unlabelled ones, several tables, files without a row."""

from dataclasses import replace

import pytest

from brainfed.checking._files import check_orphans
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings
from brainfed.cohort.sources import list_cohort, unlisted_files
from brainfed.runtime import UserError

HEADER = "participant_id,site,age,sex,diagnosis"
CODES = CodeSettings(
    diagnosis={"0": "control", "1": "patient", "2": "patient", "9": "excluded", "pending": "unlabelled"},
    site={"1": "Peking"},
)


def cohort(folder, rows, files=None, **changes):
    (folder / "table.csv").write_text("\n".join((HEADER, *rows)))
    (folder / "series").mkdir(exist_ok=True)
    for subject in [row.partition(",")[0] for row in rows] if files is None else files:
        (folder / "series" / f"{subject}.1D").touch()
    settings = CohortSettings(
        source="timeseries",
        phenotype=str(folder / "table.csv"),
        series=str(folder / "series" / "{subject}.1D"),
        regions=3,
        codes=CODES,
    )
    return replace(settings, **changes)


ROWS = ("a,1,20,male,0", "b,1,20,male,2", "c,2,20,male,pending", "d,3,20,male,9", "e,2,20,male,")


def test_several_diagnoses_become_two_and_others_are_unlabelled_or_leave(tmp_path):
    settings = cohort(tmp_path, ROWS)
    listing = list_cohort("c", settings)
    assert listing.absences == {"d": "excluded by diagnosis"}
    assert [listed.labelled for listed in listing.subjects] == [True, True, False, False, False]
    people = ingest(listing.tables, settings, listing.absences).set_index("subject")
    assert people["diagnosis"].isna().to_dict() == {"a": False, "b": False, "c": True, "d": True, "e": True}
    assert people.loc[["a", "b"], "diagnosis"].tolist() == [0, 1]


def test_files_of_ignored_rows_are_not_strangers(tmp_path):
    chosen = {"site": ("1",), "sex": ("male",)}
    settings = cohort(tmp_path, (*ROWS, "x,1,20,neither,0"), files=("a", "b", "c", "d", "e", "x", "z"))
    settings = replace(settings, rows=chosen)
    listing = list_cohort("c", settings)
    assert listing.with_series == ("a", "b")
    assert listing.unlisted == ("z.1D",)
    (found,) = check_orphans("c", listing.subjects, settings)
    assert "1 files belong to no row of the table, the first is z.1D" in found.sentence


def test_site_codes_are_names_and_others_stay(tmp_path):
    listing = list_cohort("c", cohort(tmp_path, ROWS))
    assert [listed.site for listed in listing.subjects] == ["Peking", "Peking", "2", "3", "2"]


def test_sites_with_a_labelled_subject_are_scored(tmp_path):
    assert list_cohort("c", cohort(tmp_path, ROWS)).labelled_sites == ("Peking",)


def test_an_excluded_subject_needs_no_file(tmp_path):
    listing = list_cohort("c", cohort(tmp_path, ROWS, files=("a", "b", "c", "e")))
    assert listing.with_series == ("a", "b", "c", "e")


def test_codes_that_exclude_all_subjects_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"found 1 that codes\.diagnosis excludes"):
        list_cohort("c", cohort(tmp_path, ("d,3,20,male,9",)))


def test_a_list_of_tables_is_one_cohort(tmp_path):
    settings = cohort(tmp_path, ROWS)
    (tmp_path / "more.csv").write_text(f"{HEADER}\nz,2,30,female,1\n")
    (tmp_path / "series" / "z.1D").touch()
    settings = replace(settings, phenotype=(str(tmp_path / "table.csv"), str(tmp_path / "more.csv")))
    listing = list_cohort("c", settings)
    assert [listed.subject for listed in listing.subjects] == ["a", "b", "c", "d", "e", "z"]
    assert listing.tables == settings.phenotype
    assert len(ingest(list(listing.tables), settings, {})) == 6


def test_an_absent_table_of_a_list_is_named(tmp_path):
    settings = cohort(tmp_path, ROWS)
    settings = replace(settings, phenotype=(str(tmp_path / "table.csv"), str(tmp_path / "nowhere.csv")))
    with pytest.raises(UserError, match=r"expected the phenotype file .*nowhere\.csv, found none"):
        list_cohort("c", settings)


def test_files_without_a_row_are_counted_and_other_files_are_not(tmp_path):
    settings = cohort(tmp_path, ROWS)
    for name in ("x.1D", "0.1D", "notes.txt"):
        (tmp_path / "series" / name).touch()
    assert list_cohort("c", settings).unlisted == ("0.1D", "x.1D")


@pytest.mark.parametrize("pattern", ["{site}/{subject}.1D", "series/all.1D", "nowhere/{subject}.1D"])
def test_one_folder_is_listed_or_none(tmp_path, monkeypatch, pattern):
    monkeypatch.chdir(tmp_path)
    cohort(tmp_path, ROWS)
    assert unlisted_files(pattern, [], {}) == ()


def test_ids_that_lost_their_zeros_are_recognised_by_the_files(tmp_path):
    settings = cohort(tmp_path, ("42,1,20,male,0", "43,1,20,male,1"), files=("0000042", "0000043"))
    with pytest.raises(UserError, match=r"2 files that no row names .* 0000042\.1D, whose ids have leading zeros"):
        list_cohort("c", settings)
    padded = replace(settings, series=settings.series.replace("{subject}", "{subject:0>7}"))
    assert list_cohort("c", padded).with_series == ("42", "43")


class TestSexAsTarget:
    def people(self, folder, **changes):
        rows = ("a,1,20,male,0", "b,1,20,female,1", "c,2,20,,1", "d,1,20,male,9")
        settings = cohort(folder, rows, target="sex", **changes)
        listing = list_cohort("c", settings)
        return listing, ingest(listing.tables, settings, listing.absences).set_index("subject")

    def test_is_the_target_and_no_phenotype(self, tmp_path):
        _, people = self.people(tmp_path)
        assert people.loc[["a", "b"], "diagnosis"].tolist() == [1, 0]
        assert people["sex"].isna().all()

    def test_makes_subjects_without_a_sex_unlabelled_and_keeps_exclusions(self, tmp_path):
        listing, people = self.people(tmp_path)
        assert listing.absences == {"d": "excluded by diagnosis"}
        assert [listed.labelled for listed in listing.subjects] == [True, True, False, False]
        assert people["diagnosis"].isna().tolist() == [False, False, True, True]

    def test_needs_no_diagnosis(self, tmp_path):
        _, people = self.people(tmp_path, columns=ColumnSettings(diagnosis=None))
        assert people.loc[["a", "b", "d"], "diagnosis"].tolist() == [1, 0, 1]


def test_the_target_diagnosis_needs_a_column_and_two_classes():
    with pytest.raises(ValueError, match=r"columns\.diagnosis: the target is the diagnosis"):
        CohortSettings(source="timeseries", columns=ColumnSettings(diagnosis=None))
    with pytest.raises(ValueError, match=r"codes\.diagnosis: expected a code that means control"):
        CohortSettings(source="timeseries", codes=CodeSettings(diagnosis={"1": "patient"}))
