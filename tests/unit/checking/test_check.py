"""`brainfed check`: every mistake at once, in one list, by headers and tables alone."""

import io
import json
import os
import random
import re
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
import yaml

from brainfed.__main__ import main
from brainfed.checking import _project as project
from brainfed.checking import as_text, check_project
from brainfed.checking._finding import Finding, gathered
from brainfed.checking._people import Checked, Person
from brainfed.checking._project import SOURCES, check_config
from brainfed.checking._split import SplitCheck
from brainfed.cohort.settings import CohortSettings, SplitSettings
from brainfed.cohort.sources import list_cohort
from brainfed.cohort.splits import split as split_of_job
from brainfed.configuration import load_plan, validate
from brainfed.configuration._loading import overlay, read_yaml
from brainfed.runtime import Streams, UserError
from support.broken.broken_inputs import edit, image_cohort, notes_of, sentences, series_cohort
from support.broken.cases import MORE, cases

REPOSITORY = Path(__file__).resolve().parents[3]


def test_every_mistake_of_a_config_is_listed(config):
    config = edit(config, splits={}, seed="seven", threads=0)
    listed = sentences(config)
    assert len(listed) == 3
    assert any("unknown key 'splits'; did you mean 'split'?" in sentence for sentence in listed)
    assert any("seed: expected a whole number, found 'seven'" in sentence for sentence in listed)
    assert any("threads: expected at least 1, found 0" in sentence for sentence in listed)
    assert list(check_config(config)[0].cohorts) == ["c"]


def test_variants_that_no_experiment_lists_are_noted_and_stop_nothing(config):
    swept = {"method": "fedgcn", "graph": {"k": [3, 4]}}
    variants = {"used": {"method": "fedgcn"}, "swept": swept, "idle": {"method": "fedgcn"}, "idle-sweep": swept}
    experiments = {"one": {"variants": ["used", "swept"], "reference": "used"}}
    config = edit(config, variants=variants, experiments=experiments)
    (found,) = check_config(config)[1]
    assert found.severity == "notes"
    assert "no experiment lists idle, idle-sweep;" in found.sentence


def test_one_broken_variant_hides_no_other_and_no_experiment(config):
    variants = {"a": {"method": "fedgnc"}, "b": {"method": "fedgcn", "graph": {"kk": 3}}, "c": {"method": "fedgcn"}}
    experiments = {
        "one": {"variants": ["a", "ridge-central"]},
        "two": {"variants": ["ridge-central", "no-such"]},
        "three": {"variants": ["ridge-central"], "cohorts": ["d"]},
    }
    config = edit(config, variants=variants, experiments=experiments)
    listed = sentences(config)
    for words in ("method, found 'fedgnc'", "'kk'", "variant, found 'no-such'", "cohort, found 'd'"):
        assert sum(words in sentence for sentence in listed) == 1
    assert len(listed) == 4


@pytest.mark.parametrize("text", ["a: [", "- 1", "extends: nowhere.yaml"])
def test_a_file_that_is_no_config_is_one_finding(tmp_path, text):
    (tmp_path / "config.yaml").write_text(text)
    (found,) = check_project(tmp_path / "config.yaml")
    assert (found.severity, found.place) == ("stops", "config")


def test_the_exit_code_shows_whether_the_run_stops(cohort, capsys):
    config = str(cohort.configure())
    assert main(["check", config]) == 0
    assert capsys.readouterr().out.endswith("\n0 stop the run, 0 subjects leave, 1 worth knowing\n")
    cohort.series("s03").unlink()
    assert main(["check", config]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("cohort c: files\n  1. stops the run: Cohort 'c': expected the series file")
    assert printed.endswith("\n1 stops the run, 0 subjects leave, 1 worth knowing\n")
    main(["check", config, "--json"])
    assert json.loads(capsys.readouterr().out)[0]["subjects"] == ["s03"]


def test_findings_of_a_kind_become_one():
    listed = [
        Finding("drops", "c", f"Subject s{i}, /x/{i}: expected 4 regions, found {i}.", (f"s{i}",)) for i in range(12)
    ]
    (found,) = gathered(listed)
    assert found.sentence.endswith("found 0. The same in s1, s2, s3, s4, s5, s6, s7, s8 and 3 more.")
    assert as_text([found]).endswith("12 subjects leave, 0 worth knowing")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"cohorts": {"c": {"target": "HAMD"}}}, "found 'HAMD'; numbers as targets are not supported yet."),
        ({"cohorts": {"c": {"target": "diagnosed"}}}, "found 'diagnosed'; did you mean 'diagnosis'?"),
        (
            {"cohorts": {"c": {"covariates": ["age"]}}},
            "'cohorts.c.covariates': covariates of methods are not supported",
        ),
        (
            {"cohorts": {"c": {"columns": {"diagnosis": "age"}}}},
            "add it under codes.diagnosis if it is a code, as numbers as targets are not supported yet, or under",
        ),
        ({"target": "HAMD"}, "cohorts.NAME.target names a class, and numbers as targets are not supported yet; remove"),
        (
            {"variants": {"v": {"method": "ridge", "features": {"covariates": ["age"]}}}},
            "are not supported yet; did you mean 'harmonise_covariates'?",
        ),
    ],
)
def test_numbers_as_targets_and_covariates_are_said_to_be_absent(config, changes, expected):
    config.write_text(yaml.safe_dump(overlay(read_yaml(config), changes)))
    (found,) = [one for one in check_project(config) if one.severity == "stops"]
    assert expected in found.sentence


@pytest.mark.parametrize(
    "place",
    ["", "split", "experiments.main", "variants.v", "variants.g", "variants.g.graph", "cohorts.c.columns", "study"],
)
def test_covariates_are_said_to_be_absent_wherever_they_are_asked_for(config, place):
    held = yaml.safe_load(config.read_text())
    held["variants"] = {**held.get("variants", {}), "v": {"method": "ridge"}, "g": {"method": "fedgcn", "graph": {}}}
    held["experiments"] = {"main": {"variants": ["v", "g"], "reference": "v"}}
    settings = held
    for part in filter(None, place.split(".")):
        settings = settings.setdefault(part, {})
    settings["covariates"] = ["age"]
    config.write_text(yaml.safe_dump(held))
    stops = [one.sentence for one in check_project(config) if one.severity == "stops"]
    assert any("covariates': covariates of methods are not supported yet; remove it." in one for one in stops), stops


def test_every_unknown_code_is_listed_at_once(cohort):
    for subject, code in {"s01": "ASD", "s02": "ADHD", "s03": "HC", "s04": "ASD"}.items():
        cohort.change(subject, "diagnosis", code)
    (found,) = [one for one in check_project(cohort.configure()) if "diagnosis code" in one.sentence]
    assert "found 'ASD' (also 'ADHD', 'HC'); add it under codes.diagnosis" in found.sentence
    assert found.sentence.endswith("The same in s02, s03, s04.")


def test_a_split_that_only_a_target_needs_stops_nothing(config):
    experiments = {
        "methods": {"variants": ["ridge-central"]},
        "many": {"variants": ["ridge-central"], "split": {"count": 9}, "default": False},
    }
    (found,) = check_project(edit(config, experiments=experiments))
    assert found.severity == "notes"
    assert "9 institutions x 2 folds need at least 18 different subjects" in found.sentence
    assert found.sentence.endswith("This concerns `snakemake many` alone.")


@pytest.mark.parametrize("seeds", [range(8), pytest.param(range(8, 40), marks=MORE)])
def test_every_repeat_is_drawn_as_its_job_draws_it(config, seeds):
    """24 people, two of whom share their data; the job calls a group by its first subject."""
    split = {"institutions": "random", "count": 2, "folds": 5, "repeats": 6}
    plan = load_plan(read_yaml(edit(config, split=split)))
    experiments = [*plan.experiments.values()]
    settings, verdicts = experiments[0].split, set()
    for seed in seeds:
        random = np.random.default_rng(seed)
        contents = [random.bytes(8).hex() for _ in range(24)]
        contents[8] = contents[2]
        people = tuple(Person(f"s{n:02d}", "a", n % 2, content, 60) for n, content in enumerate(contents))
        table = pd.DataFrame(map(vars, people)).astype({"diagnosis": "Int8"})
        groups = table.groupby("content")["subject"].transform("first")
        included = table.assign(included=True, reason="", twin_group=groups)
        expected = []
        for repeat in range(6):
            with suppress(UserError):
                split_of_job(included, table, settings, Streams(seed, repeat))
                continue
            expected = [repeat]
            break
        found = [one.sentence for one in SplitCheck(Checked((), people, ("a",), 4), experiments, seed).splits()]
        assert [int(re.search(r"This is repeat (\d)\.", one)[1]) for one in found] == expected
        verdicts.update(expected or ["drawn"])
        for works in (int(one[1]) for sentence in found if (one := re.search(r"`folds: (\d)` works", sentence))):
            for repeat in range(6):
                split_of_job(included, table, replace(settings, folds=works), Streams(seed, repeat))
    assert len(verdicts) > 2


@pytest.mark.parametrize(
    ("kind", "other"), [("series", "S03.1D"), ("series", "s3.1D"), ("confounds", "S03_confounds.tsv")]
)
@pytest.mark.parametrize("on_invalid", ["error", "drop"])
def test_a_file_whose_name_differs_in_spelling_alone_is_named(tmp_path, kind, other, on_invalid):
    cohort = series_cohort(tmp_path) if kind == "series" else image_cohort(tmp_path)
    cohort.settings["on_invalid"] = on_invalid
    path = cohort.series("s03") if kind == "series" else cohort.confounds("s03")
    path.rename(path.with_name(other))
    (said,) = [one.sentence for one in check_project(cohort.configure()) if f"{kind} file {path}" in one.sentence]
    assert f"found none but {other} (1 of " in said
    settings = validate(CohortSettings, cohort.settings | {"atlas": "a", "on_invalid": "error"}, "c")
    with pytest.raises(UserError, match=f"found none but {other} "):
        list_cohort("c", settings)


@pytest.mark.parametrize("number", cases(first=8, usual=12))
def test_a_limit_is_said_to_judge_nothing_exactly_where_nobody_has_its_measure(cohort, number):
    draw = random.Random(number)
    header, *rows = cohort.rows()
    motion, length, named = draw.random() < 0.5, draw.random() < 0.5, draw.random() < 0.5
    cohort.write_rows([[*header, "fd"], *([*row, 0.1 if motion else "n/a"] for row in rows)])
    limits = {"mean_fd": 0.5, "min_kept_seconds": 20, "min_volumes": 10, "min_coverage": 0.5, "min_tsnr": 5}
    chosen = draw.sample(sorted(limits), 3)
    cohort.settings |= {"exclude": {name: limits[name] for name in chosen}}
    cohort.settings |= {"tr": {"a": 2.0}} if length else {}
    cohort.settings |= {"columns": {"mean_fd": "fd"}} if named else {}
    known = {"mean_fd": motion and named, "min_kept_seconds": length, "min_tsnr": False}
    said = [one.sentence for one in check_project(cohort.configure()) if "nothing to judge by" in one.sentence]
    assert sorted(re.findall(r"exclude\.(\w+)", " ".join(said))) == sorted(
        name for name in chosen if not known.get(name, True)
    )


def test_a_split_with_one_test_set_is_drawn_as_the_workflow_will(config):
    holdout = {"institutions": "consecutive", "count": 2, "validation": "holdout"}
    assert not check_project(edit(config, split=holdout))
    (found,) = check_project(edit(config, split=holdout | {"count": 7}))
    assert found.severity == "stops"
    assert "7 institutions x 2 parts, one that trains and one that is tested, need at least 14" in found.sentence


def test_one_subject_of_a_site_is_no_plural_and_a_list_of_all_columns_has_no_dots(cohort):
    cohort.change("s03", "site", "lonely")
    config = cohort.configure()
    assert any("site lonely: its only subject is one of the " in one.sentence for one in check_project(config))
    header, *rows = cohort.rows()
    cohort.write_rows([[*header[:-1], "group"], *rows])
    (said,) = [one.sentence for one in check_project(config) if "expected a column 'diagnosis'" in one.sentence]
    assert f"found none; it has {', '.join(header[:-1])}, group. Set columns.diagnosis" in said


def test_an_input_in_the_results_of_another_cohort_that_the_run_makes_stops_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = series_cohort(tmp_path)
    config = first.configure()
    other = first.settings | {"phenotype": "results/c/bids/participants.csv"}
    Path("results/c/bids").mkdir(parents=True)
    Path(other["phenotype"]).write_bytes(first.table.read_bytes())
    (found,) = check_project(edit(config, cohorts={"c": first.settings, "d": other}))
    assert (found.severity, found.place) == ("stops", "cohort d: files")
    assert "Cohort 'd': expected a file outside results/c, which the run writes, found results/c/b" in found.sentence
    assert check_project(edit(config, cohorts={"d": other, "e": first.settings})) == []


def test_a_full_disk_is_found(config, tmp_path, monkeypatch):
    # 12 subjects, 60 time points of 4 regions and 6 connections, 4 bytes each.
    usage = project.shutil.disk_usage(tmp_path)
    for free, severities in ((12 * (60 * 4 + 6) * 4 - 1, ["stops"]), (12 * (60 * 4 + 6) * 4, [])):
        monkeypatch.setattr(project.shutil, "disk_usage", lambda folder, free=free: usage._replace(free=free))
        assert [found.severity for found in check_project(config, tmp_path / "results")] == severities


def test_a_config_that_drops_everybody_stops_the_run(cohort):
    cohort.settings |= {"regions": 5, "on_invalid": "drop"}
    found = check_project(cohort.configure())
    assert [one.severity for one in found if "leaves out all 12" in one.sentence] == ["stops"]
    assert any(one.severity == "drops" and "expected 5 regions" in one.sentence for one in found)


def test_every_source_has_a_check():
    assert set(SOURCES) == set(get_args(get_type_hints(CohortSettings)["source"]))


def test_the_shipped_simulation_has_nothing_wrong(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    assert check_project(Path("config/config.yaml")) == []


@pytest.mark.data
def test_an_interrupted_download_of_abide_is_found(tmp_path, monkeypatch):
    data = Path(os.environ["BRAINFED_DATA"])
    folder = tmp_path / "resources" / "abide"
    subprocess.run([sys.executable, data / "lay-out-abide", folder, "--subjects", "40"], check=True)
    (tmp_path / "config").symlink_to(REPOSITORY / "config")
    monkeypatch.chdir(tmp_path)
    absent, unnamed, silent = check_project(Path("config/abide-quick.yaml"))
    assert (absent.severity, len(absent.subjects)) == ("stops", 995)
    assert "(995 of 1035 are absent: " in absent.sentence
    assert "; run `snakemake fetch_abide" in absent.sentence
    assert (unnamed.severity, len(unnamed.subjects)) == ("notes", 77)
    assert (silent.severity, silent.subjects) == ("notes", ("Caltech_0051456", "Caltech_0051483"))


@pytest.mark.parametrize(
    ("controls", "patients", "few"), [(25, 25, False), (25, 24, True), (40, 10, False), (41, 9, True), (10, 10, True)]
)
def test_people_are_few_below_fifty_or_ten_of_a_class(controls, patients, few):
    people = tuple(Person(f"s{one}", "a", int(one < patients), f"s{one}", 100) for one in range(controls + patients))
    experiment = SimpleNamespace(split=SplitSettings(), default=True)
    assert bool([*SplitCheck(Checked((), people, ("a",), 10), [experiment]).few()]) == few


@pytest.mark.parametrize(
    ("split", "people"),
    [
        ({}, "12 people are tested, 6 controls and 6 patients: guessing alone gives AUCs from 0.16 to 0.84"),
        ({"validation": "holdout", "tested": 0.5}, "6 people are tested, 3 controls and 3 patients: guessing alone "),
    ],
)
def test_few_people_are_noted_with_the_reach_of_chance(cohort, capsys, split, people):
    config = edit(cohort.configure(), split=cohort.split | split)
    main(["check", str(config)])
    assert people in capsys.readouterr().out


def test_enough_people_are_no_note(config, capsys):
    config = edit(config, cohorts={"c": {"source": "simulate"}})
    main(["check", str(config)])
    assert capsys.readouterr().out == "0 stop the run, 0 subjects leave, 0 worth knowing\n"


def test_a_reader_that_has_gone_is_no_mistake(config, monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        assert main(["check", str(config)]) == 0


def test_a_check_without_scans_waits_for_no_library_of_scans(config):
    heavy = {"nilearn", "nibabel", "sklearn", "scipy.stats", "statsmodels", "torch"}
    code = f"import sys, brainfed.__main__ as b; b.main(sys.argv[1:]); sys.exit(str({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code, "check", str(config)], capture_output=True, text=True)
    assert done.stderr == "set()\n", done.stdout


def test_sites_that_are_institutions_have_nothing_to_harmonise_with(cohort):
    config = edit(cohort.configure(), features={"harmonise": "combat"})

    def found(**split):
        changed = edit(config, split=cohort.split | split)
        return [(one.severity, one.sentence) for one in check_project(changed) if "changes nothing" in one.sentence]

    ((severity, sentence),) = found(institutions="sites")
    assert severity == "stops" and "every institution is one site" in sentence
    ((severity, sentence), *_) = found(validation="leave_one_site_out")
    assert severity == "notes" and "use split.validation: folds" in sentence
    assert not found(institutions="random", count=2)


def test_a_choice_on_further_sites_needs_a_third_site_to_leave_out(cohort):
    config = edit(
        cohort.configure(),
        split=cohort.split | {"validation": "leave_one_site_out"},
        variants={"chosen": {"method": "fedmlp", "choose": "inner"}},
        experiments={"methods": {"variants": ["ridge-central", "chosen"]}},
    )
    found = [found.sentence for found in check_project(config) if "choose: inner" in found.sentence]
    assert found == [
        "methods: `choose: inner` of chosen needs 3 sites to leave out, found 2; set `choose: none`, or another "
        "split.validation."
    ]


def test_the_command_names_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"brainfed {version('brainfed')}\n"


def test_files_that_are_dated_after_now_are_noted_once_a_cohort(cohort, config, tmp_path):
    before = check_project(config)
    assert not any("dated after now" in found.sentence for found in before)
    soon, later = time.time() + 20, time.time() + 3600
    files = sorted(path for path in tmp_path.rglob("*") if path.is_file() and path != config)
    for path in files[:-2]:
        os.utime(path, (soon, soon))
    for path in files[-2:]:
        os.utime(path, (later, later))
    (found,) = (found for found in check_project(config) if found not in before)
    assert (found.severity, found.place) == ("notes", "cohort c: files")
    assert found.sentence.startswith("2 files are dated after now, the first is ")
    assert found.sentence.endswith("`touch` them, or set this machine's clock.")


def test_copies_with_different_diagnoses_are_said_to_contradict_each_other(cohort):
    for copy in ("s02", "s03"):
        cohort.series(copy).write_bytes(cohort.series("s01").read_bytes())
    diagnoses = {row[0]: row[4] for row in cohort.rows()[1:]}
    assert diagnoses["s01"] != diagnoses["s03"]
    (note,) = [sentence for sentence in notes_of(cohort) if "found the same in all" in sentence]
    assert "found the same in all, with different diagnoses: at least one file or row is wrong; they" in note
    (stop,) = [found.sentence for found in check_project(cohort.configure()) if found.severity == "stops"]
    assert stop.startswith("Subjects s01, s02, s03: expected one diagnosis of one scan, found the same or nearly the")
    cohort.settings["contradictory_copies"] = "keep"
    assert not [found for found in check_project(cohort.configure()) if found.severity == "stops"]


def test_a_terminal_without_unicode_shows_codes(cohort, monkeypatch):
    cohort.change("s03", "sex", "w\u00e4re")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert main(["check", str(cohort.configure())]) == 1
    sys.stdout.flush()
    assert b"w\\xe4re" in sys.stdout.buffer.getvalue()
