"""Misleading inputs, as a hostile user writes them: each ends in one right sentence, or changes nothing."""

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from brainfed.checking import check_project
from brainfed.checking._project import check_config
from brainfed.cohort.phenotype import read_table_text
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import shard_name
from brainfed.configuration import extended, read_config, validate
from brainfed.imaging.series import read_shard, shared_regions
from brainfed.runtime import UserError, write_tsv
from support.broken.broken_inputs import edit
from support.files.run_of_cohort import parts_of
from unit.checking.test_broken_inputs import work

LEFT_OUT = {"validation": "leave_one_site_out", "repeats": 1}


def without_site_b(cohort, how):
    """A cohort of which everybody at site b leaves, by one rule."""
    header, *rows = cohort.rows()
    if how == "mean FD":
        cohort.write_rows([[*header, "fd"], *([*row, "0.9" if row[1] == "b" else "0.1"] for row in rows)])
        cohort.settings |= {"columns": {"mean_fd": "fd"}, "exclude": {"mean_fd": 0.5}}
        return
    for subject in (row[0] for row in rows if row[1] == "b"):
        path = cohort.series(subject)
        lines = path.read_text().splitlines()
        if how == "volumes":
            path.write_text("\n".join(lines[:55]) + "\n")
            cohort.settings |= {"exclude": {"min_volumes": 56}}
        elif how == "seconds":
            path.write_text("\n".join(lines[:55]) + "\n")
            cohort.settings |= {"tr": {"a": 2.0, "b": 2.0}, "exclude": {"min_kept_seconds": 115}}
        elif how == "damaged":
            path.write_text("\n".join([*lines[:9], "x\t1\t2\t3", *lines[9:]]) + "\n")
            cohort.settings |= {"on_invalid": "drop"}
        else:
            values = np.loadtxt(path, skiprows=1)
            values[:, 0] = 7
            np.savetxt(path, values, delimiter="\t", fmt="%.6f")
            rule = {"constant_regions": "drop_subject"} if how == "silent" else {"exclude": {"min_coverage": 0.8}}
            cohort.settings |= rule


@pytest.mark.parametrize("how", ["mean FD", "volumes", "seconds", "damaged", "silent", "coverage"])
def test_a_site_that_everybody_leaves_stops_the_check_as_the_run(cohort, how):
    without_site_b(cohort, how)
    cohort.split = LEFT_OUT
    cohort.settings["shards"] = 1
    stops = [one.sentence for one in check_project(cohort.configure()) if one.severity == "stops"]
    (sentence,) = work(cohort, cohort.settings.get("on_invalid", "error")).sentences
    assert "leave_one_site_out" in sentence
    assert stops == [sentence]


def test_a_third_site_that_everybody_leaves_is_named_with_the_reason(cohort):
    for subject in ("s01", "s02", "s03"):
        cohort.change(subject, "site", "c")
    header, *rows = cohort.rows()
    cohort.write_rows([[*header, "fd"], *([*row, "0.9" if row[1] == "c" else "0.1"] for row in rows)])
    cohort.settings |= {"columns": {"mean_fd": "fd"}, "exclude": {"mean_fd": 0.5}}
    cohort.split = LEFT_OUT
    stops = [one.sentence for one in check_project(cohort.configure()) if one.severity == "stops"]
    assert stops == work(cohort).sentences
    assert "expected subjects to test at site c, found none: all 3 leave (most often: mean FD above 0.5 mm" in stops[0]


def test_a_region_that_may_not_be_silent_stops_the_check_as_the_run(cohort):
    values = np.loadtxt(cohort.series("s03"), skiprows=1)
    values[:, 2] = 1
    np.savetxt(cohort.series("s03"), values, delimiter="\t", fmt="%.6f")
    cohort.settings |= {"constant_regions": "error"}
    stops = [one.sentence for one in check_project(cohort.configure()) if one.severity == "stops"]
    assert stops == work(cohort).sentences
    assert "expected a signal in every region, found 1 constant or empty ones" in stops[0]


@pytest.mark.parametrize(
    "text",
    [
        "seed: 1\nseed: 2\n",
        "split: {folds: 2, folds: 3}\n",
        'c: {1: patient, "1": control}\n',
        "c: {1: a, '1': b}\n",
        "c: {1: a, 01: b}\n",
        "c: {1: a, 1.0: b}\n",
        "c: {yes: a, true: b}\n",
        "c: {1: a, true: b}\n",
        "c: {01: a, '1': b}\n",
    ],
)
def test_a_key_that_stands_twice_is_refused(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"config\.yaml: expected every key once, found the key .* in lines \d and \d"):
        read_config(path)
    (found,) = [one.sentence for one in check_project(path)]
    assert "expected every key once" in found


def test_keys_that_yaml_merges_stand_once(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("a: &a {k: 1, j: 2}\nb: &b\n  <<: *a\n  k: 3\nc:\n  <<: *b\n  k: 4\n")
    assert read_config(path)["c"] == {"k": 4, "j": 2}


def test_a_code_written_as_a_number_overrides_the_same_code_in_quotes(tmp_path):
    base = tmp_path / "base.yaml"
    base.write_text('codes: {"1": patient, "2": control}\n')
    assert extended({"extends": str(base), "codes": {1: "control"}})["codes"] == {"1": "control", "2": "control"}


def test_a_billion_regions_cost_no_memory(tmp_path):
    with pytest.raises(UserError, match="regions: expected at most 100000, found 1000000000"):
        validate(CohortSettings, {"source": "timeseries", "regions": 10**9}, "c")
    (tmp_path / "s1.csv").write_text("1.5,2\n2.5,3\n")
    settings = CohortSettings(source="timeseries", regions=10**5, on_invalid="drop")
    tracemalloc.start()
    out = parts_of(tmp_path)
    read_shard({"s1": tmp_path / "s1.csv"}, settings, out)
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


@pytest.mark.parametrize("use", ["reference", "variants"])
def test_a_broken_variant_is_one_mistake_wherever_it_is_named(config, use):
    variants = {"mine": {"method": "fedgcn", "graph": {"kk": 3}}, "swept": {"method": "fedgcn", "rounds": ["x", 2]}}
    experiment = {"variants": ["ridge-central", "localgcn", "mine", "swept-roundsx"]}
    if use != "variants":
        experiment[use] = "mine"
    config = edit(config, variants=variants, experiments={"one": experiment})
    listed = [found.sentence for found in check_config(config)[1]]
    assert len(listed) == 2
    assert not [sentence for sentence in listed if "name of a variant" in sentence or "reference" in sentence]


@pytest.mark.parametrize("name", ["../../x", "{x}", "<x>", "a b", "", ".hidden", "x" * 200])
@pytest.mark.parametrize("key", ["project", "cohorts", "atlas", "variants", "experiments"])
def test_every_name_that_becomes_a_path_is_checked_by_one_rule(cohort, tmp_path, key, name):
    content = yaml.safe_load(cohort.configure().read_text())
    changed = {
        "project": {"project": name},
        "cohorts": {"cohorts": {name: cohort.settings}},
        "atlas": {"cohorts": {"c": cohort.settings | {"atlas": name}}},
        "variants": {"variants": {name: {"method": "fedgcn"}}},
        "experiments": {"experiments": {name: content["experiments"]["methods"]}},
    }
    config = edit(tmp_path / "config.yaml", **changed[key])
    stops = [one.sentence for one in check_config(config)[1]]
    assert stops and f"expected a name of letters, digits, `-`, `_` and `.`, at most 150, found {name!r}" in stops[0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"sep=;\r\nparticipant_id;site\r\ns1;a\r\n", "line 1: expected a header, found Excel's line 'sep=;'; remove"),
        ("participant_id,site\ns1,a\n".encode("utf-16-le"), "UTF-16 text without a byte order mark; save it as UTF-8"),
        ("participant_id,site\ns1,a\n".encode("utf-16-be"), "UTF-16 text without a byte order mark; save it as UTF-8"),
        (b"participant_id,site\ns1,\x00\n", r"a binary file \(it holds zero bytes\)"),
        (b"\xff\xfea", "damaged UTF-16 text"),
        (b"\x1f\x8b\x08\x00abc", "a gzip file; unpack it"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_its_kind(tmp_path, content, words):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"table\.csv.*{words}"):
        read_table_text(path)


def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe_and_numbers_do_not(tmp_path):
    subjects = [
        "=1+1",
        "+x",
        "@x",
        "-1+x",
        "-cmd|' /C calc'!A0",
        "\tx",
        "s1",
        "-x",
        "-Left amygdala 2",
        "-0.5",
        "+3",
        "-",
        "1e5",
        "=",
        None,
    ]
    frame = pd.DataFrame({"subject": subjects, "=sum": -0.5, "count": range(len(subjects))})
    write_tsv(tmp_path / "table.tsv", frame)
    text = (tmp_path / "table.tsv").read_text()
    read = pd.read_csv(io.StringIO(text), sep="\t", dtype=str, keep_default_na=False)
    assert list(read.columns) == ["subject", "'=sum", "count"]
    assert read["subject"].tolist() == [*(f"'{text}" for text in subjects[:6]), *subjects[6:-1], ""]
    assert set(read["'=sum"]) == {"-0.5"}
    joined = frame.assign(subject=frame["subject"].astype("str"))
    assert set(joined["subject"][:-1]) == {name.removeprefix("'") for name in read["subject"][:-1]}


def test_a_table_that_keeps_names_has_them_as_they_were(tmp_path):
    frame = pd.DataFrame({"=sum": ["=1+1", "+x", "@x"], "-L": [1, 2, 3]})
    write_tsv(tmp_path / "table.tsv", frame, keep_names=True)
    assert (tmp_path / "table.tsv").read_text() == "=sum\t-L\n=1+1\t1\n+x\t2\n@x\t3\n"


def test_a_table_without_such_text_keeps_its_bytes(tmp_path):
    frame = pd.DataFrame(
        {"a": [1.5, None, -2], "b": pd.array(["x", None, "y z"], dtype="string"), "c": [True, False, True]}
    )
    write_tsv(tmp_path / "table.tsv", frame)
    assert (tmp_path / "table.tsv").read_text() == frame.to_csv(sep="\t", index=False, lineterminator="\n")


def test_an_id_with_braces_stops_the_check_as_the_run(cohort):
    Path(cohort.series("s03")).rename(cohort.series("s03").with_name("s{03}.1D"))
    cohort.change("s03", "participant_id", "s{03}")
    (found,) = [one for one in check_project(cohort.configure()) if one.severity == "stops"]
    assert [found.sentence] == work(cohort).sentences
    assert "subject s{03}: expected a path without braces and angle brackets" in found.sentence


@pytest.mark.parametrize("on_invalid", ["error", "drop"])
def test_parts_whose_headers_differ_stop_the_check_in_the_words_of_the_jobs(cohort, on_invalid):
    cohort.settings["on_invalid"] = on_invalid
    parts: dict[str, list[str]] = {}
    for subject, *_ in cohort.rows()[1:]:
        parts.setdefault(shard_name(subject, 3), []).append(subject)
    one, other, *_ = (str(cohort.series(subjects[0])) for _, subjects in sorted(parts.items()))
    for subject in parts[min(parts)]:
        path = cohort.series(subject)
        path.write_text(path.read_text().replace("#1\t#2\t#3\t#4", "A\tB\tC\tD"))
    (found,) = [one for one in check_project(cohort.configure()) if one.severity == "stops"]
    with pytest.raises(UserError) as caught:
        shared_regions([(one, tuple("ABCD"), True), (other, ("1", "2", "3", "4"), True)])
    assert found.sentence == str(caught.value)
