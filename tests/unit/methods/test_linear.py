from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier, RidgeClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from brainfed.methods.linear import train
from brainfed.methods.linear._dual import training_span
from brainfed.methods.linear.declaration import LOGISTIC, RIDGE, SVM, LogisticSettings, RidgeSettings, SVMSettings
from brainfed.methods.linear.train import TrainingSet
from brainfed.runtime import UserError
from brainfed.runtime.jobs import Run
from brainfed.samples import choose_cost, duplicate_groups, inner_folds
from support.samples.method_inputs import diagnosis_of, method_inputs, relabelled

TRAIN = {"ridge": train.train_ridge, "svm": train.train_svm, "logistic": train.train_logistic}
MORE_FEATURES_THAN_SUBJECTS, FEWER = (30, 80), (60, 7)
FEW = (0.1, 1.0, 10.0)


def settings_of(name, training="central"):
    if name == "ridge":
        return RidgeSettings(training=training, alphas=FEW)
    return {"svm": SVMSettings, "logistic": LogisticSettings}[name](training=training, costs=FEW)


def training_set(n, d, standardise="institution", seed=0, duplicates=()):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % 2)
    features = rng.standard_normal((n, d)) * rng.uniform(0.5, 3, d) + rng.uniform(-1, 1, d) + 0.3 * labels[:, None]
    for first, second in duplicates:
        features[second], labels[second] = features[first], labels[first]
    everybody = np.ones(n, dtype=bool)
    subjects = TrainingSet(training_span(features, everybody, standardise), labels, duplicate_groups(features), seed)
    return features, labels, subjects


def explicit(features, standardise):
    """Standardised features of mean squared norm 1, the plain way."""
    vectors = StandardScaler(with_std=standardise == "institution").fit_transform(features)
    return vectors / np.sqrt(np.mean(np.sum(vectors**2, axis=1)))


cases = pytest.mark.parametrize(
    ("shape", "standardise"),
    [(shape, standardise) for shape in (MORE_FEATURES_THAN_SUBJECTS, FEWER) for standardise in ("institution", "none")],
)


@cases
@pytest.mark.parametrize("penalty", [0.01, 0.1, 1.0, 100.0])
@pytest.mark.parametrize(
    ("fit", "model", "bounds"),
    [
        (train.fit_ridge, lambda alpha: RidgeClassifier(alpha=alpha, solver="cholesky"), {"rtol": 1e-9, "atol": 1e-10}),
        (train.fit_svm, lambda cost: SVC(C=cost, kernel="linear", tol=1e-10), {"rtol": 0, "atol": 1e-5}),
        (
            train.fit_logistic,
            lambda cost: LogisticRegression(C=cost, solver="newton-cholesky", tol=1e-12),
            {"rtol": 0, "atol": 1e-8},
        ),
    ],
    ids=TRAIN,
)
def test_it_is_the_model_of_scikit_learn_on_explicit_features(fit, model, bounds, penalty, shape, standardise):
    features, labels, subjects = training_set(*shape, standardise)
    vectors = explicit(features, standardise)
    direct = model(penalty).fit(vectors, labels).decision_function(vectors)
    np.testing.assert_allclose(fit(subjects, [penalty]).scores(features), direct, **bounds)


@pytest.mark.parametrize(("shape", "is_hard_at"), [(MORE_FEATURES_THAN_SUBJECTS, 10.0), (FEWER, np.inf)])
@pytest.mark.parametrize("seed", range(3))
def test_inner_svms_of_larger_costs_are_the_one_of_a_hard_margin(shape, is_hard_at, seed, monkeypatch):
    _, labels, subjects = training_set(*shape, seed=seed)
    costs, seen, made = (0.1, 1.0, 10.0, 30.0, 100.0), [], []
    machine, choose = train._machine, train.choose_cost

    def watched(costs, labels, fold, margins, loss):
        def watch(cost, kept, held_out):
            seen.append((cost, kept, held_out, margins(cost, kept, held_out)))
            return seen[-1][-1]

        return choose(costs, labels, fold, watch, loss)

    monkeypatch.setattr(train, "choose_cost", watched)
    monkeypatch.setattr(train, "_machine", lambda cost: made.append(cost) or machine(cost))
    train.fit_svm(subjects, costs)
    gram = subjects.span.gram
    for cost, kept, held_out, margins in seen:
        plain = SVC(C=cost, kernel="precomputed", tol=1e-8).fit(gram[np.ix_(kept, kept)], labels[kept])
        np.testing.assert_allclose(margins, plain.decision_function(gram[np.ix_(held_out, kept)]), rtol=0, atol=1e-5)
    inner = made[:-1]
    folds = len(seen) // len(costs)
    assert [inner.count(cost) for cost in costs] == [folds if cost <= is_hard_at else 0 for cost in costs]


@cases
def test_ridge_chooses_the_penalty_of_the_leave_one_out_of_scikit_learn(shape, standardise):
    alphas = np.geomspace(1e-3, 1e3, 13)
    chosen = set()
    for seed in range(5):
        features, labels, subjects = training_set(*shape, standardise, seed=seed)
        vectors = explicit(features, standardise)
        reference = RidgeClassifierCV(alphas=alphas).fit(vectors, labels)
        chosen.add(float(reference.alpha_))
        scores = train.fit_ridge(subjects, alphas.tolist()).scores(features)
        np.testing.assert_allclose(scores, reference.decision_function(vectors), rtol=1e-8, atol=1e-9)
    assert len(chosen) > 1


def test_leave_one_out_errors_are_those_of_refitting_without_the_subject_and_its_duplicates():
    features, labels, subjects = training_set(20, 40, duplicates=[(0, 5), (3, 7), (3, 11)])
    vectors, targets = explicit(features, "institution"), 2.0 * labels - 1
    values, basis = np.linalg.eigh(subjects.span.gram)
    errors = train.left_out_errors(values, basis, targets, subjects.duplicates, 0.7)
    for subject in range(20):
        kept = subjects.duplicates != subjects.duplicates[subject]
        assert kept.sum() == 20 - {0: 2, 5: 2, 3: 3, 7: 3, 11: 3}.get(subject, 1)
        model = RidgeClassifier(alpha=0.7, solver="cholesky").fit(vectors[kept], labels[kept])
        predicted = model.decision_function(vectors[[subject]])[0]
        assert errors[subject] == pytest.approx(targets[subject] - predicted, rel=1e-8)


def test_coordinates_span_the_training_rows():
    _, _, subjects = training_set(*FEWER)
    coordinates, back = subjects.span.coordinates()
    assert coordinates.shape == (60, 7)
    np.testing.assert_allclose(coordinates @ coordinates.T, subjects.span.gram, atol=1e-12)
    np.testing.assert_allclose(subjects.span.gram @ back, coordinates, atol=1e-12)


def test_duplicates_are_identical_rows_only():
    features = np.array([[1, 2], [3, 4], [1, 2], [3, 5], [1, 2]], dtype=np.float32)
    assert duplicate_groups(features).tolist() == [0, 1, 0, 3, 0]


def test_duplicates_stay_on_one_side_and_every_fold_has_both_classes():
    labels = np.array([0, 1] * 20)
    duplicates = np.arange(40)
    duplicates[[4, 30]] = 2
    duplicates[39] = 1
    for seed in range(10):
        fold = inner_folds(labels, duplicates, seed)
        assert fold[4] == fold[30] == fold[2]
        assert fold[39] == fold[1]
        assert all(set(labels[fold == index]) == {0, 1} for index in range(5))


@pytest.mark.parametrize(("patients", "expected"), [(1, 1), (2, 2), (4, 4), (5, 5), (9, 5)])
def test_no_more_inner_folds_than_people_of_the_rarer_class(patients, expected):
    labels = (np.arange(30) < patients).astype(np.int64)
    assert len(np.unique(inner_folds(labels, np.arange(30), 0))) == expected


def test_cost_of_least_loss_and_the_strongest_penalty_among_equals():
    labels, fold = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
    loss_of = {0.1: 3.0, 1.0: 2.0, 10.0: 2.0}
    seen = []

    def margins(cost, kept, held_out):
        seen.append((kept.tolist(), held_out.tolist()))
        return np.full(len(held_out), loss_of[cost])

    assert choose_cost((0.1, 1.0, 10.0), labels, fold, margins, lambda _, values: float(values.mean())) == 1.0
    assert seen == [([2, 3], [0, 1]), ([0, 1], [2, 3])] * 3


def test_without_inner_folds_the_strongest_penalty():
    def unused(*_):
        raise AssertionError("nothing to choose by")

    assert choose_cost((0.1, 1.0), np.array([0, 0, 1]), np.zeros(3, dtype=np.int64), unused, unused) == 0.1


@pytest.mark.parametrize("name", TRAIN)
@pytest.mark.parametrize("training", ["local", "central"])
def test_finds_an_effect_that_is_there(name, training):
    inputs = method_inputs(subjects=90, effect=1.5)
    outcome = TRAIN[name](inputs, settings_of(name, training), Run())
    for fold in range(inputs.folds):
        tested = inputs.tested(fold)
        assert np.isfinite(outcome.scores[..., 1][fold]).tolist() == tested.tolist()
        assert roc_auc_score(diagnosis_of(inputs)[tested], outcome.scores[..., 1][fold, tested]) > 0.85
    assert outcome.counts == {"parameters": 31}


@pytest.mark.parametrize("name", TRAIN)
def test_one_institution_alone_is_its_own_centre(name):
    inputs = method_inputs(institutions=1)
    local, central = (TRAIN[name](inputs, settings_of(name, kind), Run()) for kind in ("local", "central"))
    assert local.scores[..., 1].tobytes() == central.scores[..., 1].tobytes()
    assert local.crossings == central.crossings == ()


@pytest.mark.parametrize("name", TRAIN)
@pytest.mark.parametrize("training", ["local", "central"])
def test_standardised_features_have_no_unit(name, training):
    inputs = method_inputs()
    units = 2.0 ** (np.arange(30) % 7 - 3)
    other = replace(inputs, features=((inputs.features[0] * units + 4).astype(np.float64),))
    settings = settings_of(name, training)
    scores = [TRAIN[name](cohort, settings, Run()).scores[..., 1] for cohort in (inputs, other)]
    np.testing.assert_allclose(*scores, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", TRAIN)
def test_unseen_institution_gets_the_mean_of_the_local_models(name):
    inputs = method_inputs(split="leave-one-site-out")
    outcome = TRAIN[name](inputs, settings_of(name, "local"), Run())
    alone = []
    for institution in (1, 2):
        trained = (inputs.institution == institution) & inputs.training(0)
        labels = np.where(trained, inputs.labels, -1)[[0]]
        fold = np.where(inputs.institution == 0, 0, 1)
        only = replace(inputs, labels=labels, fold=fold)
        alone.append(TRAIN[name](only, settings_of(name, "local"), Run()).scores[..., 1][0])
    tested = inputs.tested(0)
    np.testing.assert_allclose(outcome.scores[..., 1][0, tested], np.mean(alone, axis=0)[tested], rtol=1e-12)
    assert np.ptp(alone[0][tested]) > 0


@pytest.mark.parametrize(("name", "constants"), [("ridge", (-1, 1)), ("svm", (-1, 1)), ("logistic", (0, 1))])
def test_institution_with_one_class_has_a_constant_score(name, constants):
    inputs = method_inputs()
    diagnosis = np.select([inputs.institution == 0, inputs.institution == 1], [0, 1], diagnosis_of(inputs))
    scores = TRAIN[name](relabelled(inputs, diagnosis), settings_of(name, "local"), Run()).scores[..., 1]
    for institution, constant in enumerate(constants):
        found = scores[:, inputs.institution == institution]
        assert set(found[np.isfinite(found)].tolist()) == {constant}
    assert len(np.unique(scores[:, inputs.institution == 2])) > 5


@pytest.mark.parametrize(("name", "constant"), [("ridge", -0.5), ("svm", -0.5), ("logistic", 0.25)])
def test_identical_training_subjects_score_their_share_of_patients(name, constant):
    inputs = method_inputs(subjects=16, institutions=1, folds=4)
    diagnosis = np.zeros(16, dtype=np.int64)
    for fold in range(4):
        diagnosis[np.flatnonzero(inputs.fold == fold)[0]] = 1
    alike = replace(relabelled(inputs, diagnosis), features=(np.ones((16, 3), dtype=np.float32),))
    scores = TRAIN[name](alike, settings_of(name), Run()).scores[..., 1]
    np.testing.assert_allclose(scores[np.isfinite(scores)], constant, rtol=1e-12)


@pytest.mark.parametrize("name", TRAIN)
def test_pooling_is_on_the_record_as_subjects_that_left(name):
    inputs = method_inputs(subjects=60, dimensions=30)
    rows = {row["name"]: row for row in TRAIN[name](inputs, settings_of(name, "central"), Run()).crossings}
    assert set(rows) == {"features", "labels"}
    assert (rows["features"]["axes"], rows["features"]["tensors"]) == ("subjects x features", 3)
    assert rows["features"]["bytes"] == 60 * 30 * 4
    assert (rows["labels"]["axes"], rows["labels"]["bytes"]) == ("subjects", 60)


@pytest.mark.parametrize("name", TRAIN)
def test_local_models_cross_only_to_an_institution_without_one(name):
    settings = settings_of(name, "local")
    assert TRAIN[name](method_inputs(), settings, Run()).crossings == ()
    rows = TRAIN[name](method_inputs(split="leave-one-site-out"), settings, Run()).crossings
    assert [(row["direction"], row["to"], row["institutions"]) for row in rows] == [
        ("download", "institutions", "0"), ("upload", "institutions", "1 2")
    ]  # fmt: skip
    assert {(row["name"], row["tensors"], row["bytes"]) for row in rows} == {("model", 2, 2 * 31 * 8)}


def test_features_of_a_fold_are_used_in_that_fold():
    inputs = method_inputs()
    noise = np.random.default_rng(5).standard_normal((60, 30)).astype(np.float32)
    shared = train.train_ridge(inputs, RidgeSettings(), Run()).scores[..., 1]
    features = tuple(noise if fold == 2 else inputs.features[0] for fold in range(3))
    scores = train.train_ridge(replace(inputs, features=features), RidgeSettings(), Run()).scores[..., 1]
    for fold in range(3):
        assert (scores[fold].tobytes() == shared[fold].tobytes()) == (fold != 2)


@pytest.mark.parametrize("name", TRAIN)
def test_fold_without_training_subjects_is_the_users_to_mend(name):
    inputs = method_inputs(institutions=1, split="leave-one-site-out")
    with pytest.raises(UserError, match=r"Fold 0: expected training subjects .* found none"):
        TRAIN[name](inputs, settings_of(name), Run())


def test_every_method_chooses_from_as_many_penalties():
    sizes = {len(RidgeSettings().alphas), len(SVMSettings().costs), len(LogisticSettings().costs)}
    assert len(sizes) == 1


@pytest.mark.parametrize("grid", [(), (0.0, 1.0), (1.0, 0.1), (1.0, 1.0)])
def test_a_grid_is_positive_and_ascending(grid):
    for make in (
        lambda: RidgeSettings(alphas=grid),
        lambda: SVMSettings(costs=grid),
        lambda: LogisticSettings(costs=grid),
    ):
        with pytest.raises(
            ValueError, match=r"(alphas|costs): expected one or more positive numbers in ascending order"
        ):
            make()


def test_shipped_variants():
    names = [name for method in (RIDGE, SVM, LOGISTIC) for name in method.variants if name not in method.on_request]
    models = ("ridge", "tangent", "svm", "logistic")
    assert names == [f"{model}-{training}" for model in models for training in ("local", "central")]
