"""Recursive feature elimination equals scikit-learn's, ignores test labels, and gains nothing on noise."""

from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student
from sklearn.feature_selection import RFE
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from brainfed.cohort.splits import training_labels
from brainfed.graphs import Graph, GraphSettings, build_graph, fit_parts
from brainfed.imaging import FeatureSettings, connectivity
from brainfed.imaging.fitted import elimination_ranks, select_features
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.methods.linear import train
from brainfed.methods.linear.declaration import RidgeSettings
from brainfed.runtime import UserError, read_arrays, read_table, write_arrays, write_table
from brainfed.runtime.jobs import Run
from support.processes.script_runner import SCRIPTS, run_scripts
from support.samples.method_inputs import balanced, method_inputs


def cohort(subjects=40, dimensions=15, effect=0.8, seed=0):
    random = np.random.default_rng(seed)
    labels = (np.arange(subjects) % 5 < 2).astype(np.int64)
    features = random.normal(size=(subjects, dimensions)) * random.uniform(0.1, 9, dimensions) + 3
    features[:, :3] += effect * labels[:, None] * features[:, :3].std(axis=0)
    return features.astype(np.float32), labels


class TestElimination:
    def test_one_feature_a_step_is_scikit_learns_rfe(self):
        """Below 20 features a tenth is one feature; scikit-learn's ranking counts from 1."""
        features, labels = cohort()
        reference = RFE(RidgeClassifier(alpha=1.0), n_features_to_select=1, step=1)
        reference.fit(StandardScaler().fit_transform(features.astype(np.float64)), labels)
        np.testing.assert_array_equal(elimination_ranks(features, labels), reference.ranking_ - 1)

    @pytest.mark.parametrize("keep", [57, 10, 1])
    def test_a_tenth_a_step_is_the_plain_loop(self, keep):
        """With more features than subjects, scikit-learn's classifier is refitted until `keep` features remain."""
        features, labels = cohort(subjects=30, dimensions=200, seed=1)
        scaled = StandardScaler().fit_transform(features.astype(np.float64))
        remaining = np.arange(200)
        while len(remaining) > keep:
            weights = np.abs(RidgeClassifier(alpha=1.0).fit(scaled[:, remaining], labels).coef_.ravel())
            count = min(max(1, len(remaining) // 10), len(remaining) - keep)
            remaining = np.delete(remaining, np.argsort(weights)[:count])
        np.testing.assert_array_equal(np.flatnonzero(elimination_ranks(features, labels) < keep), remaining)

    @given(seed=st.integers(0, 10**6), subjects=st.integers(3, 12), dimensions=st.integers(1, 60))
    @settings(max_examples=30, deadline=None)
    def test_features_of_any_scale_have_distinct_ranks(self, seed, subjects, dimensions):
        random = np.random.default_rng(seed)
        features = random.normal(size=(subjects, dimensions))
        features[:, random.random(dimensions) < 0.2] = 1.5
        labels = np.arange(subjects) % 2
        ranks = elimination_ranks(features, labels)
        np.testing.assert_array_equal(np.sort(ranks), np.arange(dimensions))
        np.testing.assert_array_equal(elimination_ranks(features * 4.0 - 8.0, labels), ranks)

    def test_constant_features_are_dropped_first(self):
        features, labels = cohort(dimensions=12)
        features[:, [4, 7]] = 0.25
        assert set(np.flatnonzero(elimination_ranks(features, labels) >= 10)) == {4, 7}


class TestFederatedSelection:
    def test_the_mean_rank_decides(self):
        features, labels = cohort(subjects=60, dimensions=14)
        institution = np.arange(60) % 3
        labels[::7] = -1
        ranks = [
            elimination_ranks(features[own], labels[own])
            for own in ((institution == code) & (labels >= 0) for code in range(3))
        ]
        expected = np.sort(np.argsort(np.sum(ranks, axis=0), kind="stable")[:5])
        np.testing.assert_array_equal(select_features(features, labels, institution, 5).columns, expected)

    def test_one_number_a_feature_crosses_and_no_subject(self):
        features, labels = cohort(subjects=60, dimensions=20)
        rows = select_features(features, labels, np.arange(60) % 3, 5).crossings
        assert [(row["name"], row["direction"], row["axes"], row["shape"], row["tensors"]) for row in rows] == [
            ("feature-rank", "upload", "features", "20", 3),
            ("selected-features", "download", "selected", "5", 3),
        ]
        assert rows[0]["bytes"] == 3 * 20 * 4

    def test_a_site_without_labels_sends_no_ranks_and_receives_the_selection(self):
        features, labels = cohort(subjects=60, dimensions=20)
        institution = np.arange(60) % 3
        labels[institution == 2] = -1
        selection = select_features(features, labels, institution, 5)
        two = institution < 2
        np.testing.assert_array_equal(
            selection.columns, select_features(features[two], labels[two], institution[two], 5).columns
        )
        assert [row["tensors"] for row in selection.crossings] == [2, 3]

    @pytest.mark.parametrize("scarce", [0, 1])
    def test_institutions_of_one_class_alone_are_refused(self, scarce):
        features, labels = cohort()
        with pytest.raises(UserError, match="both diagnoses"):
            select_features(features, np.where(labels == scarce, -1, labels), np.zeros(40, dtype=np.int64), 3)

    def test_more_selected_features_than_exist_are_refused(self):
        with pytest.raises(UserError, match=r"at most 15.*found 2000"):
            select_features(*cohort(), np.zeros(40, dtype=np.int64), 2000)

    def test_settings_report_the_use_of_labels(self):
        assert not FeatureSettings().fitted
        assert FeatureSettings(connectivity="tangent").fitted
        assert not FeatureSettings(connectivity="tangent").reads_labels
        assert FeatureSettings(selection="rfe").fitted
        assert FeatureSettings(selection="rfe").reads_labels
        assert not GraphSettings().fitted
        assert GraphSettings(embedding="rfe").fitted


def built(inputs, labels, training=None, **options):
    settings = GraphSettings(**{"k": 3, "scope": "local", "embedding": "rfe", "embedding_dimensions": 4, **options})
    people = inputs.phenotypes
    return build_graph(
        inputs.features[0],
        inputs.institution,
        site=people.site,
        sex=people.sex,
        age=people.age,
        settings=settings,
        streams=inputs.streams,
        training=training,
        labels=labels,
    )


class TestGraph:
    @pytest.mark.parametrize("inductive", [False, True])
    def test_the_embedding_is_the_selected_features_z_scored(self, inductive):
        inputs = method_inputs(60, 25, seed=4)
        labels, training = inputs.labels[1], inputs.training(1)
        graph = built(inputs, labels, training if inductive else None)
        for code in range(3):
            own = inputs.institution == code
            ranks = elimination_ranks(inputs.features[0][own & training], labels[own & training])
            kept = np.flatnonzero(ranks < 4)
            np.testing.assert_array_equal(graph.selected[code], kept)
            scaler = StandardScaler().fit(inputs.features[0][own & training if inductive else own][:, kept])
            expected = scaler.transform(inputs.features[0][own][:, kept])
            np.testing.assert_allclose(graph.embedding[own], expected, atol=1e-5)

    def test_the_selection_alone_gives_the_same_embedding_without_a_label(self):
        inputs = method_inputs(60, 25, seed=4)
        graph = built(inputs, inputs.labels[1])
        all_subjects = np.ones(60, dtype=bool)
        settings = GraphSettings(k=3, scope="local", embedding="rfe", embedding_dimensions=4)
        embedding, parts = fit_parts(
            inputs.features[0], inputs.institution, all_subjects, settings, selected=graph.selected
        )
        np.testing.assert_array_equal(embedding.astype(np.float32), graph.embedding)
        assert tuple(part.sigma for part in parts) == graph.sigma

    def test_a_site_that_is_left_out_is_compared_by_principal_components(self):
        inputs = method_inputs(60, 25, institutions=3, split="leave-one-site-out")
        graph, plain = built(inputs, inputs.labels[2]), built(inputs, None, embedding="pca")
        assert [len(columns) for columns in graph.selected] == [4, 4, 0]
        own = inputs.institution == 2
        np.testing.assert_array_equal(graph.embedding[own], plain.embedding[own])
        assert (graph.embedding[~own] != plain.embedding[~own]).any()

    def test_labels_or_a_selection_are_required(self):
        inputs = method_inputs(30, 8)
        with pytest.raises(ValueError, match="needs training labels"):
            built(inputs, None)
        with pytest.raises(ValueError, match="zip"):
            fit_parts(
                inputs.features[0], inputs.institution, np.ones(30, bool), GraphSettings(scope="local", embedding="rfe")
            )


SUBJECTS = [f"sub-{index:02d}" for index in range(36)]
FOLD = np.arange(36) // 4 % 3


class Files:
    """One small cohort on disk, and the jobs of the two scripts that read labels."""

    def __init__(self, folder, diagnosis):
        self.folder = folder
        random = np.random.default_rng(8)
        series = {subject: random.normal(size=(40, 8)).astype(np.float32) for subject in SUBJECTS}
        institution = [f"site-{index % 2}" for index in range(36)]
        write_arrays(folder / "series.safetensors", series, {"regions": [f"r{index}" for index in range(8)]})
        write_table(
            folder / "split.parquet",
            pd.DataFrame({"subject": SUBJECTS, "institution": institution, "fold": FOLD}),
        )
        self.connectivity = connectivity(series, FeatureSettings())
        shared = {"subjects": SUBJECTS[::-1], "regions": [f"r{index}" for index in range(8)], "crossings": []}
        write_arrays(folder / "all.safetensors", {"features": self.connectivity[::-1]}, shared)
        people = {"subject": SUBJECTS, "site": institution, "age": 20.0, "sex": "male", "mean_fd": 0.1}
        write_table(folder / "participants.parquet", pd.DataFrame({**people, "diagnosis": diagnosis}))

    def cases(self):
        """The jobs of every fold: features, then the graph."""
        features = {"settings": asdict(FeatureSettings(selection="rfe", selected=9))}
        graph = {"settings": asdict(GraphSettings(k=3, scope="local", embedding="rfe", embedding_dimensions=4))}
        graph |= {"protocol": "transductive", "seed": 0, "repeat": 0}
        for fold in range(3):
            yield self.case("fit_connectivity.py", "features", fold, features)
            yield self.case("build_graph.py", "graph", fold, graph)

    def tangent_cases(self):
        """The covariances, and features of fold 0 from them: all without labels, and some that are selected."""
        covariances = str(self.folder / "covariances.safetensors")
        yield {
            "path": str(SCRIPTS / "compute_covariances.py"),
            "input": {"series": str(self.folder / "series.safetensors")},
            "output": {"covariances": covariances},
            "params": {"shrinkage": 0.0, "by_run": False},
        }
        for name, selection in (("plain", "none"), ("selected", "rfe")):
            settings = {"settings": asdict(FeatureSettings("tangent", selection=selection, selected=9))}
            case = self.case("fit_connectivity.py", "features", 0, settings)
            case["input"] |= {"whole": [], "covariances": [covariances]}
            case["input"] |= {"participants": []} if name == "plain" else {}
            case["output"]["features"] = str(self.folder / name)
            yield case

    def case(self, script, output, fold, params):
        names = ("split.parquet", "participants.parquet", f"features-{fold}")
        split, participants, features = (str(self.folder / name) for name in names)
        given = {"split": split, "participants": participants, "features": features}
        return {
            "path": str(SCRIPTS / script),
            "input": {**given, "whole": str(self.folder / "all.safetensors"), "covariances": []},
            "output": {output: str(self.folder / f"{output}-{fold}"), "timing": str(self.folder / "timing.json")},
            "params": {**params, "fold": fold},
        }

    def written(self):
        """Bytes of every fold's features and graph."""
        return [[(self.folder / f"{kind}-{fold}").read_bytes() for kind in ("features", "graph")] for fold in range(3)]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The scripts run on the true labels, and with the test labels of fold 0, 1 and 2 inverted."""
    diagnosis = np.arange(36) // 2 % 2
    turned = [diagnosis, *(np.where(fold == FOLD, 1 - diagnosis, diagnosis) for fold in range(3))]
    every = [Files(tmp_path_factory.mktemp("cohort"), labels) for labels in turned]
    run_scripts([*every[0].tangent_cases(), *(case for files in every for case in files.cases())])
    return every


class TestLeakage:
    @pytest.mark.parametrize("fold", range(3))
    def test_labels_of_tested_subjects_reach_no_byte_of_their_fold(self, ran, fold):
        """Its features and graph stay; those of all other folds change."""
        before, after = ran[0].written(), ran[1 + fold].written()
        for other in range(3):
            same = [one == two for one, two in zip(before[other], after[other], strict=True)]
            assert same == [other == fold] * 2

    def test_the_files_record_the_selection_and_the_crossings(self, ran):
        folder = ran[0].folder
        features = read_arrays(folder / "features-0")
        assert features.arrays["features"].shape == (36, 9)
        assert features.metadata["columns"] == sorted(features.metadata["columns"])
        assert [row["name"] for row in features.metadata["crossings"]] == ["feature-rank", "selected-features"]
        assert features.metadata["crossings"][0]["shape"] == str(8 * 7 // 2)
        assert np.shape(read_arrays(folder / "graph-0").metadata["selected"]) == (2, 4)

    def test_the_features_are_columns_of_those_that_all_folds_share(self, ran):
        """The join is by id: the shared file has its subjects in reverse order."""
        for fold in range(3):
            found = read_arrays(ran[0].folder / f"features-{fold}")
            assert found.subjects == tuple(SUBJECTS)
            assert found.metadata["regions"] == [f"r{index}" for index in range(8)]
            expected = ran[0].connectivity[:, found.metadata["columns"]]
            assert found.arrays["features"].tobytes() == np.ascontiguousarray(expected).tobytes()

    def test_tangent_features_are_fitted_on_covariances_and_need_labels_only_for_selection(self, ran):
        plain, selected = (read_arrays(ran[0].folder / name) for name in ("plain", "selected"))
        assert plain.arrays["features"].shape == (36, 36)
        assert np.array_equal(plain.arrays["features"][:, selected.metadata["columns"]], selected.arrays["features"])

    def test_a_fold_without_test_subjects_is_refused(self, tmp_path):
        Files(tmp_path, 1)
        with pytest.raises(ValueError, match="fold -1"):
            training_labels(tmp_path / "split.parquet", tmp_path / "participants.parquet", SUBJECTS, -1)

    @pytest.mark.parametrize("table", ["split", "participants"])
    def test_a_subject_without_a_row_is_named(self, tmp_path, table):
        Files(tmp_path, 1)
        path = tmp_path / f"{table}.parquet"
        write_table(path, read_table(path).iloc[1:])
        with pytest.raises(UserError, match=rf"{table}.parquet.*sub-00"):
            training_labels(tmp_path / "split.parquet", tmp_path / "participants.parquet", SUBJECTS, 0)

    def test_noise_gives_chance_inside_folds_and_optimism_outside(self):
        """The cohort has 100 subjects, 1,000 connections, five institutions, five folds."""
        inside = {"ridge": [], "fedgcn": []}
        outside = []
        for draw in range(8):
            labels = balanced(np.arange(100) % 5, np.random.default_rng(200 + draw))
            noise = np.random.default_rng(draw).normal(size=(100, 1000)).astype(np.float32)
            plain = method_inputs(100, institutions=5, folds=5, diagnosis=labels, features=noise, seed=draw)
            honest = with_rfe(plain, plain.labels)
            for name, scores in (
                ("ridge", train.train_ridge(honest, RidgeSettings(alphas=(1.0,)), Run()).scores[..., 1]),
                ("fedgcn", train_fedgcn(honest, QUICK, Run()).scores[..., 1]),
            ):
                inside[name].append(mean_auc(honest, labels, scores))
            if draw >= 2:
                continue
            cheating = with_rfe(plain, np.tile(labels, (5, 1)))
            outside.append(
                mean_auc(plain, labels, train.train_ridge(cheating, RidgeSettings(alphas=(1.0,)), Run()).scores[..., 1])
            )
        for aucs in inside.values():
            margin = student.ppf(0.975, 7) * np.std(aucs, ddof=1) / np.sqrt(8)
            assert abs(np.mean(aucs) - 0.5) <= margin
        assert np.mean(outside) > 0.8


QUICK = FedGCNSettings(rounds=2, local_epochs=5, learning_rate=0.01, hidden=(8, 4), noise=0.0)


def with_rfe(inputs, labels):
    """Inputs with features and graphs of every fold selected by `labels` (F, n), -1 where hidden."""
    features, graphs = [], []
    for row in labels:
        columns = select_features(inputs.features[0], row, inputs.institution, 60).columns
        features.append(inputs.features[0][:, columns])
        graph = built(replace(inputs, features=(features[-1],)), row, embedding_dimensions=10)
        graphs.append(Graph(graph.row, graph.column, graph.weight, len(inputs.subjects)))
    return replace(inputs, features=tuple(features), graphs=tuple(graphs))


def mean_auc(inputs, labels, scores):
    tested = [inputs.tested(fold) for fold in range(inputs.folds)]
    return np.mean([roc_auc_score(labels[mask], scores[fold, mask]) for fold, mask in enumerate(tested)])
