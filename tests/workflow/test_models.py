"""Models for new patients: kept on request, without a subject, with the scores of their own folds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.__main__ import main
from brainfed.prediction.model_file import EVERYBODY
from brainfed.runtime import read_arrays
from workflow.project import REGIONS, SIMULATE, VOLUMES, Project, new_project, participants_of

pytestmark = pytest.mark.workflow

SUBJECTS = 37
"""No other axis is as long."""
OWN = ["own-reference", "fedmlp"]
"""Variants whose institutions differ in scaling, weights or reference."""
KEPT = ["ridge-federated", *OWN]
"""`unit/methods/test_kept_models.py` keeps those of every method."""
VARIANTS = {
    "own-reference": {"method": "fedtangent", "features": {"reference": "institution"}},
    "left-out": {"method": "fedgcn", "rounds": 1},
}
SPLIT = {"institutions": "sites", "folds": 3, "repeats": 1}


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> Project:
    """A project with a folder for each kept model; regions of a subject correlate."""
    project = new_project(tmp_path_factory.mktemp("models"), subjects=SUBJECTS)
    for number in range(SUBJECTS):
        rng = np.random.default_rng(number)
        series = rng.standard_normal((VOLUMES, 4)) @ rng.standard_normal((4, REGIONS))
        series += 0.5 * rng.standard_normal((VOLUMES, REGIONS))
        write(project.folder / series_of(number), series)
    configure(project, KEPT)
    project.snakemake("--cores", "2", "models")
    return project


def configure(project: Project, models: list[str]) -> None:
    compared = {"methods": {"variants": [*KEPT, "left-out"], "reference": "ridge-federated"}}
    project.configure(split=SPLIT, variants=VARIANTS, experiments=compared, models=models)


def series_of(number: int) -> str:
    return f"resources/series/sub-{number:03d}.1D"


def write(path: Path, series: np.ndarray, first: int = 1) -> None:
    header = "\t".join(f"#{number}" for number in range(first, first + series.shape[1]))
    np.savetxt(path, series, fmt="%.9g", delimiter="\t", header=header, comments="")


@pytest.fixture
def predict(monkeypatch, capsys):
    """Run `brainfed predict` in the folder of a project: exit code, output, errors."""

    def run(project: Project, variant: str, *words: str) -> tuple[int, str, str]:
        monkeypatch.chdir(project.folder)
        code = main(["predict", f"results/tiny/models/{variant}", *words])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("variant", KEPT)
def test_held_out_subjects_have_the_scores_of_their_fold(kept, predict, variant):
    (path,) = kept.folder.glob(f"results/tiny/methods/*/{variant}/repeat-0/predictions.parquet")
    for (fold, institution), own in pd.read_parquet(path).groupby(["fold", "institution"]):
        where = ["--institution", institution] if variant in OWN else []
        files = [f"resources/series/{subject}.1D" for subject in own["subject"]]
        assert predict(kept, variant, "--fold", str(fold), *where, "--output", "found.tsv", "--series", *files)[0] == 0
        found = pd.read_csv(kept.folder / "found.tsv", sep="\t")
        assert own["score"].nunique() > 1
        np.testing.assert_allclose(found["score"], own["score"], rtol=0, atol=1e-6)
        threshold = 0.5 if own["kind"].iloc[0] == "probability" else 0.0
        assert (found["predicted"] == np.where(own["score"] > threshold, "patient", "control")).all()


@pytest.mark.parametrize("variant", KEPT)
def test_a_model_holds_no_subject(kept, variant):
    folder = kept.folder / "results" / "tiny" / "models" / variant
    model = read_arrays(folder / "model.safetensors")
    assert [name for name, array in model.arrays.items() if SUBJECTS in array.shape] == []
    assert b"sub-0" not in (folder / "model.safetensors").read_bytes()
    assert "sub-0" not in (folder / "card.md").read_text()
    assert {name.partition("/")[0] for name in model.arrays} == {EVERYBODY, "fold-0", "fold-1", "fold-2"}


def test_a_card_says_who_trained_the_model_and_how_it_scored_each_institution(kept):
    folder = kept.folder / "results/tiny"
    lines = (folder / "models/fedmlp/card.md").read_text().splitlines()
    people = participants_of(folder / "cohort")
    (path,) = folder.glob("methods/*/fedmlp/repeat-0/predictions.parquet")
    scored = pd.read_parquet(path)
    for site, own in people.groupby("site"):
        assert f"| {site} | {(own['diagnosis'] == 0).sum()} | {(own['diagnosis'] == 1).sum()} |" in lines
        tested = scored[scored["institution"] == site]
        right = ((tested["score"] > 0.5) == (tested["label"] == 1)).mean()
        (row,) = [line for line in lines if line.startswith(f"| {site} | {len(tested)} | 0")]
        assert row.split(" | ")[3] == f"{right:.3f}"
    assert any(line.startswith("**This is not a medical device.**") for line in lines)
    assert "brainfed predict FOLDER --series patient.csv --institution NAME" in lines
    assert any(f"Zero is the mean of {SUBJECTS} held-out scans at these institutions (" in line for line in lines)
    assert not any("made up" in line for line in lines)


def test_the_model_of_everybody_scores_by_default_and_flags_a_far_scan(kept, predict):
    alike = np.random.default_rng(0).standard_normal((VOLUMES, 1))
    write(kept.folder / "far.1D", alike + 0.01 * np.random.default_rng(1).standard_normal((VOLUMES, REGIONS)))
    code, output, errors = predict(kept, "ridge-federated", "--series", series_of(0), "far.1D")
    rows = [line.split("\t") for line in output.splitlines()]
    assert code == 0
    assert rows[0] == ["file", "score", "kind", "predicted", "held_out_auc", "distance", "range", "silent"]
    assert {row[2] for row in rows[1:]} == {"margin"}
    assert [row[6] for row in rows[1:]] == ["within", "beyond"]
    assert "far.1D: lies " in errors and "standard deviations farther from the centre" in errors


REFUSED = {
    "expected 12 regions, found 11 columns": lambda series: series[:, :-1],
    "expected at least 50 time points, found 20": lambda series: series[:20],
    "expected a finite number in column 3": lambda series: np.where(
        np.arange(series.size).reshape(series.shape) == 2, np.nan, series
    ),
    "expected a signal, found all 12 regions constant": lambda series: np.ones_like(series),
}


@pytest.mark.parametrize(("sentence", "changed"), REFUSED.items(), ids=REFUSED)
def test_a_scan_that_training_would_refuse_is_refused_in_a_sentence(kept, predict, sentence, changed):
    write(kept.folder / "bad.1D", changed(np.loadtxt(kept.folder / series_of(0), skiprows=1)))
    code, output, errors = predict(kept, "ridge-federated", "--series", series_of(1), "bad.1D")
    assert (code, output) == (1, "")
    assert sentence in errors


def test_other_regions_are_refused(kept, predict):
    write(kept.folder / "other.1D", np.loadtxt(kept.folder / series_of(0), skiprows=1), first=7)
    code, _, errors = predict(kept, "ridge-federated", "--series", "other.1D")
    assert code == 1
    assert "expected the 12 regions of the model's atlas 'twelve' in their order, found '7' as number 1" in errors


def test_an_unknown_institution_fold_or_folder_is_refused_with_what_exists(kept, predict):
    files = ["--series", series_of(0)]
    for variant, words, sentence in (
        ("fedmlp", [], "found none; known: alpha, beta."),
        ("fedmlp", ["--institution", "gamma"], "found 'gamma'; known: alpha, beta."),
        ("ridge-federated", ["--institution", "alpha"], "expected none, as this model scores the patients of all"),
        ("ridge-federated", ["--fold", "3"], "expected a number from 0 to 2, found 3"),
        ("left-out", [], "found no model.safetensors in it"),
    ):
        code, _, errors = predict(kept, variant, *words, *files)
        assert code == 1
        assert sentence in errors


def test_a_training_that_keeps_its_models_has_the_scores_of_one_that_does_not(kept, tmp_path):
    project = kept.copy(tmp_path / "project")
    (path,) = project.folder.glob("results/tiny/methods/*/fedmlp/repeat-0/predictions.parquet")
    before = path.read_bytes()
    path.unlink()
    configure(project, [])
    project.snakemake("--cores", "2", path.relative_to(project.folder).as_posix())
    assert path.read_bytes() == before


def test_a_model_that_is_asked_for_trains_its_variant_alone(finished, tmp_path):
    project = finished.copy(tmp_path / "project")
    project.configure(models=["fedmlp"])
    assert project.planned() == {"train_kept_method": 1, "score_experiment": 1}
    assert project.planned("models") == {"ingest_columns": 1, "train_kept_method": 1, "write_card": 1}
    project.configure()
    assert not project.planned()


def test_patients_whose_images_the_workflow_extracted_are_read_from_its_shards(tmp_path, predict):
    project = new_project(tmp_path, subjects=0)
    cohort = {"source": "simulate", "atlas": "twenty", "shards": 2, "simulate": SIMULATE}
    compared = {"methods": {"variants": ["ridge-central", "fedtangent"], "reference": "ridge-central"}}
    project.configure(cohorts={"tiny": cohort}, variants={}, experiments=compared, split=SPLIT, models=["fedtangent"])
    project.snakemake("--cores", "2", "models")
    (path,) = project.folder.glob("results/tiny/methods/*/fedtangent/repeat-0/predictions.parquet")
    scored = pd.read_parquet(path).set_index("subject")
    shards = sorted(map(str, project.folder.glob("results/tiny/timeseries/twenty/*.safetensors")))
    for fold, own in scored.groupby("fold"):
        code, _, _ = predict(project, "fedtangent", "--fold", str(fold), "--output", "found.tsv", "--series", *shards)
        found = pd.read_csv(project.folder / "found.tsv", sep="\t")
        found.index = found["file"].str.rpartition(":")[2]
        assert code == 0
        np.testing.assert_allclose(found.loc[own.index, "score"], own["score"], rtol=0, atol=1e-6)
