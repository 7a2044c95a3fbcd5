"""Unambiguous tables are read in every form that programs save; others are refused with one sentence."""

import math
from dataclasses import replace

import pytest

from brainfed.cohort.phenotype.participant import read_participant
from brainfed.cohort.phenotype.table import read_phenotype_table
from brainfed.cohort.settings.cohort import CodeSettings, ColumnSettings
from brainfed.runtime.errors import UserError

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


def ages(rows, columns=COLUMNS):
    return [read_participant(row.table, row, columns, CodeSettings()).age for row in rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
def test_byte_order_marks_and_line_ends_of_any_spreadsheet_are_accepted(tmp_path, encoding, ends):
    text = ends.join((HEADER, "s1,Zürich,20.5,male,patient", ""))
    (row,) = read(tmp_path, text.encode(encoding))
    assert (row.subject, row.cells["site"], row.line) == ("s1", "Zürich", 2)


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
    assert read_participant("t", rows[0], columns, CodeSettings()).mean_fd == 0.125
    assert math.isnan(read_participant("t", rows[1], columns, CodeSettings()).mean_fd)


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
    ("second", "words"), [("s1,a,20,male,patient", "which are equal"), ("s1,a,21,male,patient", "differ in 'age'")]
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
