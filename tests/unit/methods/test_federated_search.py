"""The search of benchmarks/federated_search.py: no label of a tested subject chooses what scores it."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from brainfed.graphs import GraphSettings, build_graph
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.methods.linear import train
from brainfed.methods.linear.declaration import RidgeSettings
from brainfed.methods.logistic_federated import train as logistic_federated
from brainfed.methods.logistic_federated.declaration import FederatedLogisticSettings
from brainfed.runtime import UserError, write_arrays, write_table, write_text
from brainfed.runtime.jobs import Run
from brainfed.samples import Outcome
from support.samples.method_inputs import diagnosis_of, method_inputs, scrambled

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import federated_search
from federated_candidates import REFERENCE, Candidate, candidates, hastened

QUIET = Run(progress=lambda *_, **__: None)
SHORT = {"rounds": 2, "local_epochs": 3, "noise": 0.0}
COMPETING = (
    Candidate(
        "federated",
        "slow",
        logistic_federated.train,
        FederatedLogisticSettings(solver="fedavg", **SHORT, learning_rate=1e-5),
    ),
    Candidate(
        "federated",
        "fast",
        logistic_federated.train,
        FederatedLogisticSettings(solver="fedavg", **SHORT, learning_rate=0.05),
    ),
    Candidate("federated", "graph", train_fedgcn, FedGCNSettings(**SHORT, learning_rate=0.05, skip="linear")),
    *(Candidate(REFERENCE, f"{a}", train.train_ridge, RidgeSettings(alphas=(a,))) for a in (0.01, 1.0, 100.0)),
)
FEDERATED, RIDGE = COMPETING[:3], COMPETING[3:]


@pytest.mark.parametrize("competing", [FEDERATED, RIDGE], ids=["federated", "ridge"])
@pytest.mark.parametrize("split", ["random", "leave-one-site-out"])
def test_labels_of_a_fold_neither_choose_nor_train_its_model(competing, split):
    inputs = method_inputs(80, 20, institutions=4, folds=4, effect=0.4, seed=3, split=split)
    before = federated_search.search(competing, inputs, QUIET)
    for fold in range(4):
        after = federated_search.search(competing, scrambled(inputs, fold), QUIET)
        assert after.inner[:, fold].tobytes() == before.inner[:, fold].tobytes()
        assert after.chosen[fold] == before.chosen[fold]
        assert after.outcome.scores[..., 1][fold].tobytes() == before.outcome.scores[..., 1][fold].tobytes()
        assert (after.inner != before.inner).any()
        assert after.outcome.scores[..., 1].tobytes() != before.outcome.scores[..., 1].tobytes()


def test_inner_training_uses_neither_the_outer_nor_the_inner_fold():
    inputs = method_inputs(80, 20, folds=4)
    inner = federated_search.inner_inputs(inputs)
    for fold in range(4):
        following = inputs.tested((fold + 1) % 4)
        np.testing.assert_array_equal(inner.tested(fold), following)
        np.testing.assert_array_equal(inner.labels[fold] < 0, inputs.tested(fold) | following)
        trained = inner.training(fold)
        np.testing.assert_array_equal(inner.labels[fold][trained], diagnosis_of(inputs)[trained])


def test_labels_of_the_inner_fold_reach_its_figures_as_measure_only():
    """Turned round in the inner fold alone they turn every AUC round, since no training has seen them."""
    inputs = method_inputs(80, 20, folds=4, effect=0.4)
    following = inputs.tested(1)
    turned = inputs.labels.copy()
    turned[0, following] = 1 - turned[0, following]
    before = federated_search.search(FEDERATED, inputs, QUIET).inner[:, 0]
    after = federated_search.search(FEDERATED, replace(inputs, labels=turned), QUIET).inner[:, 0]
    np.testing.assert_allclose(after, 1 - before, atol=1e-12)


def test_the_inner_figure_is_the_mean_auc_of_a_model_trained_by_hand():
    inputs = method_inputs(80, 20, institutions=2, folds=4, effect=0.4)
    found = federated_search.search(RIDGE, inputs, QUIET)
    x, truth = inputs.features[0].astype(float), diagnosis_of(inputs)
    trained = np.isin(inputs.fold, [0, 1])
    scaled = StandardScaler().fit(x[trained]).transform(x) / np.sqrt(20)
    model = RidgeClassifier(alpha=1.0).fit(scaled[trained], truth[trained])
    scores = model.decision_function(scaled)
    groups = [(inputs.fold == 3) & (inputs.institution == code) for code in range(2)]
    expected = np.mean([roc_auc_score(truth[group], scores[group]) for group in groups])
    assert found.inner[1, 2] == pytest.approx(expected, abs=1e-12)


def test_the_best_inner_figure_wins_and_its_outer_model_scores():
    inputs = method_inputs(80, 20, folds=4, effect=0.4)
    found = federated_search.search(FEDERATED, inputs, QUIET)
    np.testing.assert_array_equal(found.inner[found.chosen, np.arange(4)], found.inner.max(axis=0))
    for fold, index in enumerate(found.chosen):
        outer = FEDERATED[index].train(inputs, FEDERATED[index].settings, QUIET)
        assert found.outcome.scores[..., 1][fold].tobytes() == outer.scores[..., 1][fold].tobytes()


def test_a_training_that_diverges_is_never_chosen():
    def diverging(inputs, settings, run):
        outcome = logistic_federated.train(inputs, settings, run)
        return Outcome(np.where(np.isfinite(outcome.scores), np.inf, np.nan), "probability")

    broken = Candidate("federated", "broken", diverging, FederatedLogisticSettings(**SHORT))
    inputs = method_inputs(60, 10, folds=3)
    assert (federated_search.search((broken, *FEDERATED), inputs, QUIET).chosen > 0).all()
    with pytest.raises(UserError, match="without any validation AUC"):
        federated_search.search((broken,), inputs, QUIET)


def test_fitted_features_graphs_and_two_folds_are_refused():
    shared = method_inputs(60, 10, folds=3)
    for inputs in (
        replace(shared, features=shared.features * 3),
        method_inputs(60, 10, folds=3, protocol="inductive"),
    ):
        with pytest.raises(UserError, match="shared by all folds"):
            federated_search.inner_inputs(inputs)
    with pytest.raises(UserError, match="three folds"):
        federated_search.inner_inputs(method_inputs(60, 10, folds=2))


def test_all_methods_have_the_same_budget_and_no_noise():
    every = candidates()
    by_search = {one.search: sum(other.search == one.search for other in every) for one in every}
    assert by_search == {"federated": 8, REFERENCE: 8, "logistic-central": 8}
    assert len({(one.search, one.name) for one in every}) == len(every)
    assert all(one.settings.noise == 0 for one in every if one.search == "federated")


@pytest.fixture
def cohort(tmp_path):
    """Artefacts as the workflow lays them: two repeats, three institutions, four folds, two distinct graphs."""
    inputs = method_inputs(72, 30, folds=4, effect=1.0)
    subjects, people = list(inputs.subjects), inputs.phenotypes
    institution = [inputs.institutions[code] for code in inputs.institution]
    table = {"subject": subjects, "site": institution, "age": people.age, "mean_fd": people.mean_fd}
    sex = np.array(["female", "male"])[people.sex]
    write_table(
        tmp_path / "cohort/participants.parquet", pd.DataFrame({**table, "sex": sex, "diagnosis": diagnosis_of(inputs)})
    )
    metadata = {"subjects": subjects}
    write_arrays(tmp_path / "features/pearson-1/all.safetensors", {"features": inputs.features[0]}, metadata)
    for repeat in range(2):
        split = {"subject": subjects, "institution": institution, "fold": (inputs.fold + repeat) % 4}
        write_table(tmp_path / f"splits/three/repeat-{repeat}.parquet", pd.DataFrame(split))
        for scope in ("global_cut", "global"):
            settings = GraphSettings(scope=scope)
            graph = build_graph(
                inputs.features[0],
                inputs.institution,
                site=people.site,
                sex=people.sex,
                age=people.age,
                settings=settings,
                streams=inputs.streams,
            )
            write_arrays(
                tmp_path / f"graphs/{scope}-k10/repeat-{repeat}/all.safetensors",
                {"row": graph.row, "column": graph.column, "weight": graph.weight},
                {**metadata, "settings": {"scope": scope, "k": 10, "phenotypes": ["sex", "age"]}},
            )
    return tmp_path


def test_it_reads_the_workflows_artefacts_and_prints_one_table(cohort, monkeypatch, capsys):
    monkeypatch.setattr(federated_search, "candidates", lambda: COMPETING)
    federated_search.main(["--cohort", str(cohort)])
    printed = capsys.readouterr().out
    assert [line.split()[:2] for line in printed.splitlines()[1:5]] == [
        ["federated", "accuracy"],
        ["federated", "auc"],
        [REFERENCE, "accuracy"],
        [REFERENCE, "auc"],
    ]
    written = pd.read_csv(cohort / "tables/federated-search.tsv", sep="\t")
    assert len(written) == 2 * 4 * len(COMPETING)
    chosen = written[written["chosen"]]
    assert chosen.groupby(["repeat", "fold", "search"]).size().eq(1).all()
    assert chosen["test_auc"].notna().all()
    assert written.loc[~written["chosen"], "test_auc"].isna().all()
    best = written.groupby(["repeat", "fold", "search"])["inner_auc"].transform("max")
    assert (chosen["inner_auc"] == best[chosen.index]).all()


def test_quick_is_one_repeat_with_a_tenth_of_the_rounds(cohort, monkeypatch):
    monkeypatch.setattr(federated_search, "candidates", lambda: COMPETING)
    whole = cohort / "tables/federated-search.tsv"
    write_text(whole, "of the whole search")
    federated_search.main(["--cohort", str(cohort), "--quick"])
    assert whole.read_text() == "of the whole search"
    quick = cohort / "tables/federated-search-quick.tsv"
    assert set(pd.read_csv(quick, sep="\t")["repeat"]) == {0}
    federated_search.main(["--cohort", str(cohort), "--quick", "--output", str(cohort / "named.tsv")])
    assert (cohort / "named.tsv").read_bytes() == quick.read_bytes()
    assert hastened(candidates()[2]).settings.rounds == 10
    assert hastened(candidates()[-1]) == candidates()[-1]


def test_the_error_names_missing_or_ambiguous_artefacts(cohort):
    (cohort / "splits/other").mkdir()
    with pytest.raises(UserError, match=r"expected one split, found other, three.*--split"):
        federated_search.main(["--cohort", str(cohort)])
    (cohort / "graphs/global_cut-k10/repeat-0/all.safetensors").unlink()
    with pytest.raises(UserError, match=r"expected one graph, found none.*--graph"):
        federated_search.main(["--cohort", str(cohort), "--split", "three"])
