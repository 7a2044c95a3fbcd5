"""Whatever a job's function fails with, the check says it in one sentence and goes on."""

import importlib
import inspect
import pkgutil

import pytest
import yaml

import brainfed.checking
from brainfed.checking import check_project
from brainfed.checking._finding import Finding, boundary, collected, found_at
from brainfed.runtime import UserError
from support.broken.broken_inputs import image_cohort, series_cohort
from support.files.bids_dataset import Derivative, write_atlas
from support.files.freesurfer_project import write_tables
from support.files.tu_data_set import write_data_set

ERRORS = (
    ValueError("7 is no shape"),
    PermissionError(13, "Permission denied", "some/file"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    RuntimeError(),
)
MARKS = ("7 is no shape", "some/file: expected", "invalid start byte", "RuntimeError")
NOT_READING = {"nearest", "pass_over"}
"""They make sentences."""


def functions_of_jobs():
    """Every function of another room that a module of the check names, as (module, name)."""
    modules = [
        importlib.import_module(entry.name)
        for entry in pkgutil.iter_modules(brainfed.checking.__path__, "brainfed.checking.")
    ]
    return [
        (module, name)
        for module in modules
        for name, value in sorted(vars(module).items())
        if inspect.isfunction(value)
        and value.__module__.startswith("brainfed.")
        and not value.__module__.startswith("brainfed.checking.")
        and name not in NOT_READING
    ]


@pytest.fixture(scope="module")
def configs(tmp_path_factory):
    """A config a source, each with four to thirty subjects and nothing wrong; a fast check comes first."""

    def folder(name):
        return tmp_path_factory.mktemp(name)

    images, series = image_cohort(folder("images")), series_cohort(folder("series"))
    subjects = [row[0] for row in series.rows()[1:]]
    series.settings["freesurfer"] = {"tables": write_tables(folder("stats"), subjects), "id": "{subject}"}
    derivative = Derivative(folder("derivative"))
    rows = []
    for number in range(1, 5):
        derivative.write_run(f"{number:02d}", seed=number)
        rows.append(f"sub-{number:02d}\t{'ab'[number % 2]}\t20\tmale\t{('patient', 'control')[number // 2 % 2]}")
    derivative.write_participants(*rows)
    graphs = folder("graphs")
    write_data_set(graphs, "MADE")
    cohorts = {
        "series": series.settings,
        "freesurfer": {
            "source": "freesurfer",
            "phenotype": series.settings["phenotype"],
            "freesurfer": series.settings["freesurfer"],
        },
        "tudataset": {
            "source": "tudataset",
            "target": "class",
            "classes": ["no", "yes"],
            "tudataset": {"folder": str(graphs), "names": ["MADE"]},
        },
        "images": images.settings,
        "bids": {"source": "bids", "bids": {"derivatives": str(derivative.folder)}, **write_atlas(folder("atlas"))},
    }
    made = {}
    for name, cohort in cohorts.items():
        path = folder(f"config-{name}") / "config.yaml"
        variants = ["gcfl"] if name == "tudataset" else ["ridge-central"]
        content = {
            "project": "p",
            "features": {"kind": "morphometry" if name == "freesurfer" else "connectivity"},
            "cohorts": {"c": cohort},
            "split": {"count": 1, "folds": 2, "repeats": 1},
            "experiments": {"methods": {"variants": variants, "reference": variants[0]}},
        }
        path.write_text(yaml.safe_dump(content))
        made[name] = path
    return made


@pytest.fixture(scope="module")
def readers(configs):
    """(module, name) of a job's function -> the first config whose check calls it."""
    first = {}
    with pytest.MonkeyPatch.context() as patch:
        for module, name in functions_of_jobs():
            original = getattr(module, name)

            def counted(*given, _key=(module, name), _original=original, **options):
                first.setdefault(_key, config)
                return _original(*given, **options)

            patch.setattr(module, name, counted)
        for config in configs.values():
            findings = check_project(config)
            assert not [one for one in findings if one.severity == "stops"], findings
    return first


def test_a_check_outlives_the_failure_of_each_function_that_it_calls(readers):
    assert len(readers) > 25
    for number, ((module, name), config) in enumerate(readers.items()):
        error, mark = ERRORS[number % len(ERRORS)], MARKS[number % len(ERRORS)]

        def failing(*_, _error=error, **__):
            raise _error

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, failing)
            sentences = [one.sentence for one in check_project(config) if one.severity == "stops"]
        assert any(mark in sentence for sentence in sentences), (module.__name__, name, sentences)


def test_an_unexpected_failure_stops_the_run_where_a_mistake_would_drop_a_subject():
    found = []
    with boundary("Subject s1, f.nii", found.append):
        raise EOFError("cut")
    with boundary("Subject s1, f.nii", found.append):
        raise UserError("f.nii: expected more, found less; fix it.")
    severities = [found_at("images", error, "drops", ("s1",)).severity for error in found]
    assert severities == ["stops", "drops"]
    assert str(found[0]).startswith("Subject s1, f.nii: expected a file that can be read, found one that its reader")
    assert "(EOFError: cut)" in str(found[0])


def test_findings_before_a_failure_stay_and_an_interrupt_passes():
    first = Finding("notes", "p", "first")

    def check(error):
        yield first
        raise error

    assert [one.sentence[:5] for one in collected("p", check, OSError("x"))] == ["first", "p: ex"]
    with pytest.raises(KeyboardInterrupt):
        collected("p", check, KeyboardInterrupt())
