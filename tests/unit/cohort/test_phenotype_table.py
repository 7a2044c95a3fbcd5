"""Unambiguous tables are read in every form that programs save; others are refused with one sentence."""

import json
import math
import unicodedata
from dataclasses import replace

import pytest

from brainfed.cohort.phenotype import read_participant
from brainfed.cohort.phenotype._table import read_phenotype_table
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings
from brainfed.runtime import UserError

HEADER = "participant_id,site,age,sex,diagnosis"
COLUMNS = ColumnSettings()


def write(folder, content, name="table.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def read(folder, content, columns=COLUMNS, missing=()):
    return read_phenotype_table(write(folder, content), columns, missing)


def complaint(folder, content, columns=COLUMNS):
    with pytest.raises(UserError) as caught:
        read(folder, content, columns)
    return str(caught.value)


def cohort(columns):
    return CohortSettings(source="timeseries", columns=columns)


def ages(rows, columns=COLUMNS):
    return [read_participant(row, cohort(columns)).age for row in rows]


def test_leading_zeros_of_ids_stay_and_distinguish_two_subjects(tmp_path):
    rows = read(tmp_path, f"{HEADER}\n0010042,a,20,male,patient\n10042,a,20,male,patient\n")
    assert [row.subject for row in rows] == ["0010042", "10042"]


@pytest.mark.parametrize("written", ["AGE_AT_SCAN", "AGE_AT_SCAN "])
def test_trailing_blanks_of_a_header_do_not_count(tmp_path, written):
    columns = ColumnSettings(age=written)
    rows = read(tmp_path, "participant_id,site,AGE_AT_SCAN ,sex, diagnosis\ns1,a,20.5 ,male, patient\n", columns)
    assert ages(rows, columns) == [20.5]


def test_separators_inside_quoted_names_do_not_split_a_header(tmp_path):
    (row,) = read(tmp_path, f'{HEADER},"a;b;c;d;e;f"\ns1,"Paris, Nord",20,male,patient,\n')
    assert row.cells["site"] == "Paris, Nord"


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read_where_no_number_has_a_point(tmp_path, separator):
    columns = ColumnSettings(mean_fd="fd")
    text = f"{HEADER},fd\ns1,a,20!5,male,patient,0!125\ns2,a,30,male,control,\n".replace(",", separator)
    rows = read(tmp_path, text.replace("!", ","), columns)
    assert ages(rows, columns) == [20.5, 30.0]
    assert read_participant(rows[0], cohort(columns)).mean_fd == 0.125
    assert math.isnan(read_participant(rows[1], cohort(columns)).mean_fd)


def test_a_table_with_points_and_commas_is_refused_at_its_comma(tmp_path):
    rows = read(
        tmp_path, f"{HEADER}\ns1,a,20!5,male,patient\ns2,a,30.5,male,control".replace(",", ";").replace("!", ",")
    )
    with pytest.raises(UserError, match=r"line 2, subject s1: .*found '20,5'; it has a decimal comma, write a point"):
        ages(rows)


def test_codes_with_commas_are_left_as_they_are(tmp_path):
    (row,) = read(tmp_path, "participant_id;site;age;sex;diagnosis\n1,5;3,4;20,5;male;patient\n")
    assert (row.subject, row.cells["site"], row.cells["age"]) == ("1,5", "3,4", "20.5")


def test_bytes_of_an_unknown_encoding_are_accepted_in_unread_columns(tmp_path):
    (row,) = read(tmp_path, f"{HEADER},note\ns1,a,20,male,patient,Z\xfcrich\n".encode("latin-1"))
    assert row.subject == "s1"


def test_a_cell_of_an_unknown_encoding_is_named(tmp_path):
    said = complaint(tmp_path, f"{HEADER}\ns1,a,20,male,patient\ns2,Z\xfcrich,20,male,patient".encode("latin-1"))
    assert "line 3: expected UTF-8 text in column 'site', found 'Zürich' in another encoding" in said


@pytest.mark.parametrize("content", [b"PK\x03\x04rest of a zip", b"\xd0\xcf\x11\xe0rest of an old workbook"])
def test_an_excel_workbook_is_refused_as_one(tmp_path, content):
    assert "found an Excel workbook; save the sheet as `CSV UTF-8`" in complaint(tmp_path, content)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", b"  \r\n"])
def test_an_empty_file_is_refused_as_empty(tmp_path, content):
    assert "found an empty file" in complaint(tmp_path, content)


def test_blank_lines_before_the_header_are_refused(tmp_path):
    assert "expected a header in the first line" in complaint(tmp_path, f"\n{HEADER}\ns1,a,20,male,patient\n")


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("s1,a,20,male,patient", "which are equal; remove one"),
        ("s1,a,21,male,patient", "differ in 'age'"),
        ("s1,a,20,male,control", "'diagnosis' (patient, control)"),
    ],
)
def test_a_subject_in_two_rows_is_refused_with_the_difference(tmp_path, second, words):
    said = complaint(tmp_path, f"{HEADER}\ns1,a,20,male,patient\n{second}\n")
    assert "found 's1' in lines 2 and 3" in said
    assert words in said


def test_an_open_quote_is_refused_with_a_sentence(tmp_path):
    text = f'{HEADER}\ns1,a,20,male,"patient\n' + "s2,a,20,male,control\n" * 10_000
    assert "is a quote missing" in complaint(tmp_path, text)


def test_a_missing_column_is_named_with_the_nearest_one(tmp_path):
    said = complaint(tmp_path, "participant_id,site,Age in years,sex,diagnosis\ns1,a,20,male,patient")
    assert "expected a column 'age', found none" in said


class TestSeveralTables:
    ADHD = ColumnSettings(subject="ScanDir ID", subject_fallback="ID", site="Site")

    def tables(self, folder, second="ID,Site,age,sex,diagnosis\n2,x,20,male,control\n"):
        first = write(folder, "ScanDir ID,Site,age,sex,diagnosis\n3,y,20,male,patient\n1,y,21,male,control\n", "a.csv")
        return [first, write(folder, second, "b.csv")]

    def test_are_one_list_of_subjects_each_from_its_table(self, tmp_path):
        tables = self.tables(tmp_path)
        rows = read_phenotype_table(tables, self.ADHD)
        assert [row.subject for row in rows] == ["1", "2", "3"]
        assert [row.table for row in rows] == [str(tables[index]) for index in (0, 1, 0)]

    def test_may_have_separators_of_their_own(self, tmp_path):
        tables = self.tables(tmp_path, "ID\tSite\tage\tsex\tdiagnosis\n2\tx\t20,5\tmale\tcontrol\n")
        assert ages(read_phenotype_table(tables, self.ADHD), self.ADHD) == [21.0, 20.5, 20.0]

    def test_name_the_table_that_lacks_a_column(self, tmp_path):
        with pytest.raises(UserError, match=r"b\.csv: expected a column 'Site', found none; did you mean 'site'\?"):
            read_phenotype_table(self.tables(tmp_path, "ID,site,age,sex,diagnosis\n2,x,20,male,control\n"), self.ADHD)

    def test_name_both_tables_of_a_subject(self, tmp_path):
        with pytest.raises(UserError, match=r"a\.csv: .*found '3' in line 2 and in .*b\.csv, line 2, which differ in"):
            read_phenotype_table(self.tables(tmp_path, "ID,Site,age,sex,diagnosis\n3,x,20,male,control\n"), self.ADHD)

    def test_need_an_id_each(self, tmp_path):
        with pytest.raises(UserError, match=r"b\.csv: expected a column 'ScanDir ID', found none"):
            read_phenotype_table(self.tables(tmp_path, "Site,age,sex,diagnosis\nx,20,male,control\n"), self.ADHD)

    def test_may_each_name_the_id_in_another_column(self, tmp_path):
        columns = replace(self.ADHD, subject_fallback=("ID", "ScanDirID"))
        third = write(tmp_path, "ScanDirID,Site,age,sex,diagnosis\n9,z,22,male,control\n", "c.csv")
        rows = read_phenotype_table([*self.tables(tmp_path), third], columns)
        assert [row.subject for row in rows] == ["1", "2", "3", "9"]

    def test_one_table_alone_has_both_columns_of_the_id(self, tmp_path):
        with pytest.raises(UserError, match=r"a\.csv: expected a column 'ID', found none"):
            read_phenotype_table(self.tables(tmp_path)[0], self.ADHD)


def described(folder, **entry):
    (folder / "table.json").write_text(json.dumps({"age": entry}))


@pytest.mark.parametrize(
    ("name", "entry", "unit"),
    [
        ("age", {"Units": "months"}, "months"),
        ("age", {"units": "Day"}, "days"),
        ("age", {"Description": "age in completed weeks at birth"}, "weeks"),
        ("age", {"Description": "Age at scan (months)"}, "months"),
        ("AGE_MONTHS", {}, "months"),
        ("AgeMonths", {}, "months"),
        ("ageInWeeks", {}, "weeks"),
        ("age", {"Units": "years", "Description": "at the visit after 6 months"}, None),
        ("age", {"Description": "age at the day of the scan, in years"}, None),
        ("age", {"Description": "age 12 months after the first scan"}, None),
        ("average_age", {}, None),
    ],
)
def test_ages_in_another_unit_are_refused_until_the_config_names_it(tmp_path, name, entry, unit):
    described(tmp_path, **entry)
    content, columns = HEADER.replace("age", name) + "\ns1,a,24,male,patient\n", ColumnSettings(age=name)
    if unit is None:
        assert ages(read(tmp_path, content, columns), columns) == [24]
        return
    sentence = complaint(tmp_path, content, columns)
    assert "expected ages in years" in sentence
    assert f"set `columns.age_unit: {unit}`, or years" in sentence
    years = {"months": 24 / 12, "weeks": 24 * 7 / 365.25, "days": 24 / 365.25}[unit]
    for given, expected in ((unit, years), ("years", 24)):
        columns = replace(columns, age_unit=given)
        assert ages(read(tmp_path, content, columns), columns) == [pytest.approx(expected, rel=1e-12)]


@pytest.mark.parametrize("code", ["NULL", "#N/A", "None", "<NA>", "n/a", ""])
@pytest.mark.parametrize("column", ["site", "age", "sex", "diagnosis"])
def test_a_missing_code_is_missing_in_every_column_unless_it_is_a_known_code(tmp_path, code, column):
    cells = {"site": "a", "age": "20", "sex": "male", "diagnosis": "patient"} | {column: code}
    content = f"{HEADER}\ns1,{','.join(cells.values())}\n"
    (row,) = read(tmp_path, content)
    assert row.cells[column] is None
    if column in ("sex", "diagnosis"):
        codes = replace(CodeSettings(), **{column: {code: "control" if column == "diagnosis" else "male"}})
        (row,) = read_phenotype_table(write(tmp_path, content), COLUMNS, codes=codes)
        assert row.cells[column] == code


def test_a_site_that_is_a_missing_code_is_refused_by_its_code(tmp_path):
    with pytest.raises(UserError, match=r"expected a site in column 'site', found 'NULL', which means missing; fill"):
        ages(read(tmp_path, HEADER + "\ns1,NULL,20,male,patient\n"))


def test_a_table_without_sites_names_its_remedy_and_never_another_meaning(tmp_path):
    content = "participant_id,age,sex,diagnosis\ns1,20,male,patient\n"
    sentence = complaint(tmp_path, content)
    assert "did you mean" not in sentence
    assert "Set columns.site to the name that the table has, or to null if all subjects come from one site." in sentence
    columns = ColumnSettings(site=None)
    (row,) = read(tmp_path, content, columns)
    assert read_participant(row, cohort(columns)).site == "single-site"


@pytest.mark.parametrize(
    ("header", "missing", "hint"),
    [
        ("participant_id,SITE_ID,age,sex,diagnosis", "site", "SITE_ID"),
        ("participant_id,site,Age,sex,diagnosis", "age", "Age"),
        ("participant_id,site,stage,language,sex,diagnosis", "age", None),
        ("participant_id,situation,age,sex,diagnosis", "site", None),
        ("participant_id,site,age,sex,prognosis", "diagnosis", None),
        ("participant_id,site,age,sex,diagnose", "diagnosis", "diagnose"),
    ],
)
def test_a_hint_is_another_spelling_of_the_column(tmp_path, header, missing, hint):
    sentence = complaint(tmp_path, f"{header}\n" + ",".join("x" * len(header.split(","))) + "\n")
    assert f"expected a column {missing!r}" in sentence
    assert (f"did you mean {hint!r}?" in sentence) if hint else ("did you mean" not in sentence)


def test_hospitals_that_number_alike_are_told_apart_by_a_prefix(tmp_path):
    tables = [
        write(tmp_path, f"{HEADER}\n01,{site},20,male,patient\n02,{site},21,male,control\n", f"{site}.csv")
        for site in "AB"
    ]
    with pytest.raises(UserError, match=r"differ in 'site' .A, B.; .*set `columns.subject_prefix: site`, else remove"):
        read_phenotype_table(tables, COLUMNS)
    rows = read_phenotype_table(tables, replace(COLUMNS, subject_prefix="site"))
    assert [(row.subject, row.file_id) for row in rows] == [
        ("A-01", "01"), ("A-02", "02"), ("B-01", "01"), ("B-02", "02"),
    ]  # fmt: skip


def test_a_row_a_session_names_rows(tmp_path):
    header = HEADER.replace("site", "site,session_id")
    content = f"{header}\ns1,a,ses-1,20,male,patient\ns1,a,ses-2,21,male,patient\n"
    assert "differ in 'session_id' (ses-1, ses-2); if the table has several rows a subject, choose one with " in (
        complaint(tmp_path, content)
    )
    assert "`rows: {session_id: [ses-1]}`" in complaint(tmp_path, content)
    rows = read_phenotype_table(write(tmp_path, content), COLUMNS, wanted={"session_id": ["ses-1"]})
    assert [row.subject for row in rows] == ["s1"]


@pytest.mark.parametrize("separator", ["|", " ", "   "])
def test_bars_and_blanks_separate_cells(tmp_path, separator):
    content = f"{HEADER}\ns1,Paris,20.5,male,patient\n".replace(",", separator)
    (row,) = read(tmp_path, content)
    assert (row.subject, row.cells["site"], row.cells["age"]) == ("s1", "Paris", "20.5")


def test_blanks_in_names_are_no_separators(tmp_path):
    content = "participant id,site of the scan,age,sex,diagnosis\ns 1,a,20,male,patient\n"
    (row,) = read(tmp_path, content, ColumnSettings(subject="participant id", site="site of the scan"))
    assert row.subject == "s 1"


def test_ids_that_all_end_in_a_point_and_zero_lose_it(tmp_path):
    lines = [f"{number}.0,a,20,male,patient" for number in (50003, 50004)]
    assert [row.subject for row in read(tmp_path, "\n".join([HEADER, *lines]))] == ["50003", "50004"]
    assert [row.subject for row in read(tmp_path, "\n".join([HEADER, *lines, "v1.0,a,20,male,patient"]))] == [
        "50003.0", "50004.0", "v1.0",
    ]  # fmt: skip


def test_composed_and_decomposed_letters_are_one(tmp_path):
    content = HEADER.replace("site", "Geb\u00e4ude") + "\ns\u00fc,Z\u00fcrich,20,male,patient\n"
    for form in ("NFC", "NFD"):
        (row,) = read(tmp_path, unicodedata.normalize(form, content), ColumnSettings(site="Geb\u00e4ude"))
        assert (row.subject, row.cells["Geb\u00e4ude"]) == ("s\u00fc", "Z\u00fcrich")


def test_a_table_without_permission_is_one_sentence(tmp_path, monkeypatch):
    table = write(tmp_path, HEADER)

    def refused(_):
        raise PermissionError(13, "Permission denied", str(table))

    monkeypatch.setattr("pathlib.Path.read_bytes", refused)
    with pytest.raises(
        UserError, match=r"table\.csv: expected a table that can be read, found none \(Permission denied"
    ):
        read_phenotype_table(table, COLUMNS)
