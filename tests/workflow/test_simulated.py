"""From simulated NIfTI files to tables, on a cohort of 24 small brains, with methods for every kind of sample."""

import itertools
import json
from collections import Counter
from pathlib import Path

import nibabel as nib
import numpy as np
import pandas as pd
import pytest

from brainfed.evaluation import read_patterns
from brainfed.graphs import matrices
from brainfed.runtime import read_arrays
from brainfed.samples import read_graph_samples
from workflow.added_methods import COHORT, COMPARED, configure, with_added_methods
from workflow.project import Project, participants_of

pytestmark = pytest.mark.workflow


@pytest.fixture(scope="module")
def simulated(tmp_path_factory) -> Project:
    """The project after a whole run of its tables."""
    project = with_added_methods(tmp_path_factory.mktemp("simulated"))
    assert project.planned()["choose_public"] == 1
    project.snakemake("tables", "--cores", "2")
    return project


@pytest.fixture(scope="module")
def results(simulated) -> Path:
    return simulated.folder / "results" / COHORT


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


def test_the_cohort_is_files_as_a_lab_has_them(results):
    folder = results / "simulated"
    scans = sorted(folder.glob("sub-*_bold.nii.gz"))
    assert len(scans) == 24
    people = pd.read_csv(folder / "participants.tsv", sep="\t")
    lengths = {"a": 60, "b": 70}
    for scan, site in zip(scans, people["site"], strict=True):
        assert nib.load(scan).shape == (8, 9, 8, lengths[site])
    assert set(np.unique(nib.load(folder / "atlas.nii.gz").get_fdata())) == set(range(21))


def test_every_subject_is_scored_and_the_tables_are_written(results):
    included = pd.read_parquet(results / "cohort" / "included.parquet")
    assert included["included"].sum() == 24
    for variant in COMPARED:
        predictions = pd.read_parquet(only(results, f"methods/*/{variant}/repeat-0/predictions.parquet"))
        assert predictions["subject"].tolist() == included["subject"].tolist()
        assert np.isfinite(predictions["score"]).all()
    regions = [*pd.read_csv(results / "simulated" / "atlas.tsv", sep="\t")["name"]]
    patterns = read_patterns([only(results, "methods/*/ridge-central/repeat-0/patterns.safetensors")])
    assert patterns.values.shape == (2, 1, 190) and patterns.values.any(axis=-1).all()
    assert patterns.features[:2].tolist() == [["", regions[0], regions[1]], ["", regions[0], regions[2]]]
    assert read_patterns([only(results, "methods/*/quick/repeat-0/patterns.safetensors")]) is None
    summary = pd.read_csv(results / "tables" / "methods.tsv", sep="\t")
    assert set(summary["variant"]) == set(COMPARED)
    assert {path.name for path in (results / "tables").glob("*.tsv")} == {
        "methods.tsv",
        "methods-runs.tsv",
        "methods-tests.tsv",
        "methods-gain.tsv",
        "methods-confusion.tsv",
    }


def test_a_second_view_is_simulated_thickness(results):
    connectome, thickness = read_arrays(only(results, "features/views-*/all.safetensors"), []).metadata["views"]
    assert (connectome["stop"], thickness["stop"] - thickness["start"]) == (20 * 19 // 2, 10)


def test_a_graph_of_a_subject_is_its_connectome(results):
    path = only(results, "connectomes/density-0.1-*/all.safetensors")
    graphs = read_graph_samples(path, read_arrays(path, []).subjects)
    features = read_arrays(only(results, "features/pearson-*/all.safetensors")).arrays["features"]
    np.testing.assert_array_equal(graphs.nodes.reshape(-1, 20, 20), matrices(features, 20))
    assert set(np.diff(graphs.edge_start)) == {2 * 19}


def test_what_is_fitted_by_fold_has_connectomes_by_fold(results):
    parts = sorted(results.glob("connectomes/density-0.1-*/repeat-0/fold-*.safetensors"))
    assert [part.stem for part in parts] == ["fold-0", "fold-1"]
    first, second = (read_arrays(part, ["nodes"]).arrays["nodes"] for part in parts)
    assert first.shape == second.shape and not np.array_equal(first, second)
    assert all(part.with_name(f"{part.stem}-timing.json").is_file() for part in parts)
    cost = json.loads(only(results, "methods/*/fitted/repeat-0/cost.json").read_text())
    crossed = {row["name"] for row in cost["crossings"]}
    assert crossed == {"log-covariance-sum", "summed-subjects", "tangent-reference"}


def test_series_are_scaled_and_of_the_length_of_their_site(results):
    held = read_arrays(only(results, "series/zscore-*/all.safetensors"))
    start, series = held.arrays["start"], held.arrays["series"]
    volumes = participants_of(results / "cohort").loc[list(held.subjects), "site"].map({"a": 60, "b": 70})
    assert np.diff(start).tolist() == volumes.tolist()
    for first, last in itertools.pairwise(start):
        np.testing.assert_allclose(series[first:last].mean(axis=0), 0, atol=1e-5)
        np.testing.assert_allclose(series[first:last].std(axis=0), 1, atol=1e-4)
    cost = json.loads(only(results, "methods/*/lags/repeat-0/cost.json").read_text())
    assert cost == {"counts": {"wrapped": int((volumes == 60).sum())}, "crossings": []}


def test_a_method_has_the_public_subjects_of_the_artefact(results):
    public = pd.read_parquet(only(results, "public/30-percent-*/repeat-0/all.parquet"))
    split = pd.read_parquet(only(results, "splits/*/repeat-0.parquet"))
    label = participants_of(results / "cohort")["diagnosis"]
    expected, scores = {}, {}
    for fold in (0, 1):
        chosen = public.loc[public["fold"] == fold, "subject"]
        training = split[split["fold"] != fold]
        assert set(chosen) < set(training["subject"])
        expected[f"public-{fold}"] = len(chosen)
        for code, (_, own) in enumerate(training.groupby("institution")):
            expected[f"private-{fold}-{code}"] = int((~own["subject"].isin(chosen)).sum())
        scores[fold] = label[chosen].mean()
    for name, weight in (("share", 1), ("half", 0.5)):
        method = only(results, f"methods/*/{name}/repeat-0")
        assert json.loads((method / "cost.json").read_text()) == {"counts": expected, "crossings": []}
        found = pd.read_parquet(method / "predictions.parquet")
        for fold, score in scores.items():
            assert found.loc[found["fold"] == fold, "score"].to_numpy() == pytest.approx(weight * score)


def test_a_finished_simulation_has_nothing_to_do(simulated):
    assert simulated.planned() == Counter()


SCORED = {"score_experiment": 1}
TOUCHED = {
    "density of connectomes": (
        {"connectomes": {"density": 0.2}},
        SCORED | {"build_connectomes": 1, "build_fitted_connectomes": 2, "train_method": 2},
    ),
    "scale of series": ({"series": {"scale": "zscore_runs"}}, SCORED | {"join_series": 1, "train_method": 3}),
    "ratio of one variant": ({"ratio": 0.4}, SCORED | {"choose_public": 1, "train_method": 1}),
    "ratio of the other": ({"public": {"ratio": 0.4}}, SCORED | {"choose_public": 1, "train_method": 1}),
}


@pytest.mark.parametrize(("changes", "planned"), TOUCHED.values(), ids=TOUCHED)
def test_a_setting_touches_the_samples_that_it_names_alone(simulated, tmp_path, changes, planned):
    project = simulated.copy(tmp_path / "project")
    configure(project, **changes)
    assert project.planned() == planned


def test_other_protocols_and_features_leave_public_subjects_and_series_alone(simulated, results, tmp_path):
    project = simulated.copy(tmp_path / "project")
    configure(project, protocol="inductive")
    assert "choose_public" not in project.planned()
    configure(project, features={"connectivity": "partial"})
    scored = only(results, "methods/*/lags/repeat-0/predictions.parquet").relative_to(simulated.folder)
    assert not project.planned(scored.as_posix())
    configure(project)
    assert not project.planned()


def test_a_method_of_series_needs_no_features(results, tmp_path):
    scored = only(results, "methods/*/lags/repeat-0/predictions.parquet").relative_to(results.parents[1])
    planned = with_added_methods(tmp_path).planned(scored.as_posix())
    assert planned["join_series"] == 1 and not {"compute_connectivity", "compute_covariances"} & planned.keys()


def test_a_threshold_that_no_connection_reaches_is_one_sentence(simulated, tmp_path):
    project = simulated.copy(tmp_path / "project")
    configure(project, connectomes={"edges": "absolute", "threshold": 0.999})
    done = project.snakemake("--cores", "1", "tables", "--until", "build_connectomes", check=False)
    assert done.returncode
    log = only(project.folder / "logs" / COHORT / "build_connectomes", "threshold-0.999-*.log").read_text()
    assert "connectomes.threshold: expected an edge in every connectome, found none in 24 of 24" in log
    assert "Traceback" not in log


def test_one_more_subject_is_simulated_in_one_shard(simulated, tmp_path):
    grown = simulated.copy(tmp_path / "grown")
    configure(grown, subjects=25)
    planned = grown.planned()
    (shard,) = (rule for rule in planned if rule.startswith("simulate_scans_"))
    assert planned == Counter(
        {
            "simulate_participants": 1,
            shard: 1,
            "ingest_phenotypes": 1,
            "ingest_columns": 4,
            "extract_series": 1,
            "measure_scans": 1,
            "measure_quality": 1,
            "include_subjects": 1,
            "list_issues": 1,
            "compute_connectivity": 1,
            "compute_covariances": 1,
            "join_series": 1,
            "split_subjects": 1,
            "choose_public": 1,
            "fit_connectivity": 2,
            "build_graph": 1,
            "build_connectomes": 1,
            "build_fitted_connectomes": 2,
            "train_method": 8,
            "simulate_thickness": 1,
            "read_measures": 1,
            "compute_morphometry": 1,
            "join_views": 1,
            "score_experiment": 1,
        }
    )
