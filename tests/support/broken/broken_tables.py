"""Broken phenotype tables, and tables that do not fit their files."""

import shutil
from pathlib import Path

from support.broken.broken_inputs import HEADER, Broken, Cohort


def cell(column, value, subject="s03"):
    return lambda cohort: cohort.change(subject, column, value)


def append(*row):
    return lambda cohort: cohort.write_rows([*cohort.rows(), row])


def text(content):
    def write(cohort: Cohort) -> None:
        cohort.table.write_bytes(content if isinstance(content, bytes) else content.encode())

    return write


def setting(**changes):
    return lambda cohort: cohort.settings.update(changes)


def without_column(cohort: Cohort) -> None:
    at = HEADER.index("diagnosis")
    cohort.write_rows([row[:at] + row[at + 1 :] for row in cohort.rows()])


def in_latin_1(cohort: Cohort) -> None:
    cohort.table.write_bytes(cohort.table.read_text().replace(",a,", ",Zürich,").encode("latin-1"))


def all_controls(cohort: Cohort) -> None:
    for row in cohort.rows()[1:]:
        cohort.change(row[0], "diagnosis", "control")


def no_diagnosis(cohort: Cohort) -> None:
    for row in cohort.rows()[1:]:
        cohort.change(row[0], "diagnosis", "")


def one_patient(cohort: Cohort) -> None:
    all_controls(cohort)
    cohort.change("s03", "diagnosis", "patient")


def many_folds(cohort: Cohort) -> None:
    cohort.split |= {"folds": 7}


def site_of_its_own(cohort: Cohort) -> None:
    cohort.change("s03", "site", "lonely")
    cohort.split = {"institutions": "sites", "folds": 2, "repeats": 1}


def no_such_site_in_a_group(cohort: Cohort) -> None:
    cohort.split = {"institutions": "site_groups", "groups": {"one": ["a", "B"]}, "folds": 2, "repeats": 1}


def another_id(cohort: Cohort) -> None:
    """The table says s3, the file s03."""
    cohort.change("s03", "participant_id", "s3")


def folder_in_its_place(cohort: Cohort) -> None:
    cohort.series("s03").unlink()
    cohort.series("s03").mkdir()


def no_file(cohort: Cohort) -> None:
    cohort.series("s03").unlink()


def no_files(cohort: Cohort) -> None:
    shutil.rmtree(cohort.series("s03").parent)


def no_table(cohort: Cohort) -> None:
    cohort.table.unlink()


def excel(cohort: Cohort) -> None:
    path = Path(cohort.settings["phenotype"]).with_suffix(".xlsx")
    path.write_bytes(b"PK\x03\x04\x14\x00\x06\x00\x08\x00\x00\x00!\x00\xc3\xfe\x9a\n\xff\xd8" * 20)
    cohort.settings["phenotype"] = str(path)


TABLES = [
    Broken("duplicated row", append("s03", "a", 22, "male", "patient"), *["'s03' in lines 4 and 14, which differ"] * 2),
    Broken("unknown sex code", cell("sex", "3"), *[r"line 4, subject s03: expected a sex code .*found '3'"] * 2),
    Broken("unknown diagnosis", cell("diagnosis", "x"), *[r"line 4, subject s03: expected a diagnosis .*'x'"] * 2),
    Broken("negative age", cell("age", "-4"), *[r"line 4, subject s03: expected the age .*between.*'-4'"] * 2),
    Broken("age 999", cell("age", "999"), *[r"subject s03: expected the age .*'999'; fix it, or list it"] * 2),
    Broken("age in words", cell("age", "twenty"), *[r"subject s03: expected the age .*'twenty'; fix it"] * 2),
    Broken("no site", cell("site", ""), *[r"subject s03: expected a site in column 'site', found none; fill"] * 2),
    Broken("no id", cell("participant_id", ""), *[r"line 4: expected a subject id in .*found ''; fill it in"] * 2),
    Broken("invisible character", cell("participant_id", "s0\u200b3"), *[r"line 4: .*visible.*'s0.u200b3'; type"] * 2),
    Broken("ragged row", append("s13", "a", 22), *[r"line 14: expected 5 cells as in the header, found 3; fix"] * 2),
    Broken("missing column", without_column, *[r"participants.csv: expected a column 'diagnosis', found none"] * 2),
    Broken("header only", text(",".join(HEADER) + "\n"), *[r"participants.csv: .*found a header only"] * 2),
    Broken("empty table", text(""), *[r"participants.csv: expected .*"] * 2),
    Broken("not UTF-8", in_latin_1, *[r"participants.csv.*: expected .*(encoding|UTF-8).*save"] * 2),
    Broken("Excel file", excel, *[r"participants.xlsx.*: expected .*save"] * 2),
    Broken("no table", no_table, *[r"expected the phenotype file .*participants.csv, found none; fix"] * 2),
    Broken(
        "no patients",
        all_controls,
        "found controls only; fix codes",
        "patients for 2 folds, the whole cohort has none; fix",
    ),
    Broken("no diagnosis", no_diagnosis, *[r"(no included|expected a) (usable )?subject .*diagnosis"] * 2),
    Broken(
        "one patient for two folds", one_patient, *["2 different patients for 2 folds, it has 1; lower `count`"] * 2
    ),
    Broken("more folds than patients", many_folds, *["needs at least 7 different controls for 7 folds"] * 2),
    Broken("a site with one subject", site_of_its_own, *["institution lonely needs at least 2 different"] * 2),
    Broken("a group of no such site", no_such_site_in_a_group, *["names the site B, which the cohort lacks"] * 2),
    Broken(
        "subject without a file", no_file, *[r"series file .*s03.1D of subject s03, found none .*bring|fix"] * 2, "s03"
    ),
    Broken("an id that no file has", another_id, *[r"series file .*s3.1D of subject s3, found none"] * 2, "s3"),
    Broken("folder in place of a file", folder_in_its_place, "s03, found a folder", "subject s03, found none", "s03"),
    Broken("no files at all", no_files, *[r"series of 12 subjects at .*\{subject\}.1D, found none; fix"] * 2),
    Broken("wrong braces", setting(series="{subjekt}.1D"), *[r"in the `series` pattern, found '\{subjekt\}.1D'"] * 2),
    Broken("no pattern", setting(series=None), *["source 'timeseries' needs `series`, found nothing; set it"] * 2),
]
