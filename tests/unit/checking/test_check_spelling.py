"""`brainfed check` on numbers, letters, paths and names that are spelled in several ways."""

import os
import re
import unicodedata
from contextlib import suppress
from functools import partial
from itertools import product

import numpy as np
import pytest
from snakemake.cli import parse_config

from brainfed.cohort.settings import CohortSettings, SplitSettings
from brainfed.configuration import mistakes, refuse_rewritten, validate
from brainfed.configuration._loading import composed, read_yaml
from brainfed.runtime import UserError
from support.broken.broken_inputs import notes_of, sentences, series_cohort


@pytest.mark.parametrize("text", ["010", "1_0", "12:30", "2020-01-02", "0x1F", "0b1", "+7", "1_0.5", "12:30.5"])
@pytest.mark.parametrize("key", ["seed", "missing", "codes"])
def test_a_number_that_yaml_rewrites_is_refused_by_file_key_and_text(config, text, key):
    written = {"seed": f"seed: {text}", "missing": f"missing: [{text}]", "codes": f"codes: {{{text}: a}}"}[key]
    config.write_text(f"{config.read_text()}\n{written}\n")
    (sentence,) = sentences(config)
    assert f"{config}, line " in sentence
    assert f"{key}: expected a plain number or text, found {text}, which YAML 1.1 reads as " in sentence


def test_plain_numbers_and_quoted_texts_are_what_they_spell(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("[0, -9999, 1.10, .5, 1.5e+3, '010', \"12:30\", 1e3, abc]")
    assert read_yaml(path) == [0, -9999, 1.1, 0.5, 1500.0, "010", "12:30", "1e3", "abc"]


CASES = int(os.environ.get("BRAINFED_CASES", "60"))
SCALARS = np.random.default_rng(7)
WRITTEN = ["".join(SCALARS.choice(list("00011289..__--+eE:xobnfa"), SCALARS.integers(1, 6))) for _ in range(CASES)]


def test_a_scalar_is_kept_as_written_or_refused(tmp_path):
    path, kept = tmp_path / "c.yaml", 0
    for text in [*WRITTEN, "-0", "nan", "inf", "07", "0o7", "1.10", "1e3", "yes", "null", "~", "60:0.5"]:
        for shown in (text, f"'{text}'"):
            path.write_text(f"source: timeseries\ncondition: {shown}\n")
            try:
                settings = validate(CohortSettings, read_yaml(path), "c")
            except UserError:
                continue
            assert settings.condition == text
            kept += 1
    assert kept > CASES


def test_a_number_on_the_command_line_is_what_it_spells_or_refused():
    for text in [*WRITTEN, "010", "1_0", "+7", "-0", "nan", "Infinity", "1e3", "12:30", "abc", '"010"']:
        (value,) = parse_config([f"seed={text}"]).values()
        with suppress(UserError):
            refuse_rewritten([f"seed={text}"])
            assert not isinstance(value, int | float) or re.fullmatch(r"0|-?[1-9]\d*|[-+]?[\d.]+([eE][-+]?\d+)?", text)
    for text in ("010", "1_0", "+7", "nan", '"010"', "'010'"):
        with pytest.raises(UserError, match=f"--config seed={re.escape(text)}: expected a plain number"):
            refuse_rewritten([f"seed={text}"])


@pytest.mark.parametrize("text", ["010", "1_0", " 010"])
def test_a_text_that_is_no_plain_number_is_no_number(text):
    for kind, key in ((SplitSettings, "folds"), (CohortSettings, "min_coverage")):
        (sentence, *_) = mistakes(
            kind, {"source": "simulate", key: text} if kind is CohortSettings else {key: text}, "c"
        )
        assert key in sentence


@pytest.mark.parametrize("start", ["~", "$HOME", "${HOME}"])
def test_a_path_may_begin_with_the_home_folder_or_a_variable(cohort, tmp_path, monkeypatch, start):
    monkeypatch.setenv("HOME", str(tmp_path))
    for key in ("phenotype", "series"):
        cohort.settings[key] = cohort.settings[key].replace(str(tmp_path), start)
    config = cohort.configure()
    assert not sentences(config)
    over = tmp_path / "over.yaml"
    over.write_text(f"extends: {start}/{config.name}\n")
    assert not sentences(over)


FORMS = list(product(("NFC", "NFD"), repeat=3))


@pytest.mark.parametrize(("table", "config", "disk"), FORMS)
@pytest.mark.parametrize("below", [False, True])
def test_a_letter_in_table_config_and_file_name_is_one_in_every_form_of_unicode(cohort, table, config, disk, below):
    header, *rows = cohort.rows()
    text = {form: partial(unicodedata.normalize, form) for form in ("NFC", "NFD")}
    cohort.series("s01").rename(cohort.series(text[disk]("s\u00fcd")))
    cohort.write_rows([[text[table]("id-\u00e9"), *header[1:]], [text[table]("s\u00fcd"), *rows[0][1:]], *rows[1:]])
    cohort.change("s02", "sex", text[table]("m\u00e4nnlich"))
    cohort.settings["columns"] = {"subject": text[config]("id-\u00e9")}
    cohort.settings["codes"] = {"sex": {"male": "male", "female": "female", text[config]("m\u00e4nnlich"): "male"}}
    if below:
        cohort.settings["series"] = str(cohort.folder / "**" / "{subject}.1D")
    assert not sentences(cohort.configure())
    assert not [note for note in notes_of(cohort) if "belong to no row" in note]


@pytest.mark.parametrize("name", ["series", "folder", "mine"])
def test_a_cohort_may_bear_the_name_of_a_path(name):
    apart, one = unicodedata.normalize("NFD", "Zürich"), unicodedata.normalize("NFC", "Zürich")
    config = {"cohorts": {name: {"codes": {"site": {apart: apart}}, "folder": apart}}}
    assert composed(config) == {"cohorts": {name: {"codes": {"site": {one: one}}, "folder": apart}}}


def test_a_folder_is_named_as_the_config_spells_it(tmp_path):
    for form in ("NFC", "NFD"):
        folder = tmp_path / unicodedata.normalize(form, "Z\u00fcrich")
        folder.mkdir()
        assert not sentences(series_cohort(folder).configure())


def test_a_key_that_unicode_spells_apart_stands_once(cohort):
    cohort.settings["codes"] = {"site": {"Z\u00fcrich": "a", "Zu\u0308rich": "b"}}
    (sentence,) = sentences(cohort.configure())
    assert "codes.site.Z\u00fcrich: expected every key once, found two that Unicode spells apart" in sentence


def test_a_number_with_a_point_is_no_text(cohort):
    cohort.settings["missing"] = [1.1]
    (sentence,) = sentences(cohort.configure())
    assert "missing.0: expected text, found 1.1; YAML does not keep how a number is spelled, as 1.10" in sentence


def test_sites_that_differ_in_spelling_alone_are_noted(cohort):
    for subject, site in (("s01", "NYU"), ("s02", "nyu"), ("s03", "N.Y.U.")):
        cohort.change(subject, "site", site)
    (note,) = [sentence for sentence in notes_of(cohort) if "spelling" in sentence]
    assert "sites 'N.Y.U.', 'NYU', 'nyu' differ in spelling alone and count as 3; if they are one, give" in note


def test_numbered_sites_are_not_taken_for_spellings_of_one(cohort):
    for subject, site in (("s01", "10"), ("s02", "1.0")):
        cohort.change(subject, "site", site)
    assert not any("spelling" in sentence for sentence in notes_of(cohort))


def test_codes_that_are_read_as_missing_and_ids_without_zeros_are_noted(cohort):
    cohort.change("s03", "age", "NULL")
    header, *rows = cohort.rows()
    for row in rows:
        cohort.series(row[0]).rename(cohort.series(row[0][1:]))
    cohort.write_rows([header, *([f"{row[0][1:]}.0", *row[1:]] for row in rows)])
    notes = " ".join(notes_of(cohort))
    assert "'NULL' in age read as missing, as n/a is, in 1 of 12 rows: 03; name such a code under `codes`" in notes
    assert "all ids end in `.0`, as 01.0, and are read without it: 01." in notes


def test_a_cohort_of_one_site_is_told_so(cohort):
    cohort.settings["columns"] = {"site": None}
    assert "columns.site is none: all 12 subjects come from one site, called single-site." in notes_of(cohort)
