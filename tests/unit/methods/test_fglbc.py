"""Networks on region series: what they learn, share, and may not see."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.methods import METHODS, SHIPPED_VARIANTS
from brainfed.methods.fglbc.declaration import POOLED_SERIES
from brainfed.runtime import UserError, resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import check
from support.samples.method_inputs import diagnosis_of
from support.samples.series_cohort import WINDOW, exchanged, series_inputs

LOCAL, CENTRAL = ("stgcn-local", "gnn-local"), ("stgcn-central", "gnn-central")
PLAIN = ("fglbc-no-dp", "fedavg-no-dp", "fedgnn-no-dp")
PRIVATE = ("fglbc", "fedavg-dp", "fedgnn-dp", "fglbc-printed-noise")
MEAN = {"adjacency": "cohort_mean"}
both_splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])
every_method = pytest.mark.parametrize("name", [*LOCAL, *CENTRAL, *PLAIN, "fglbc"])


def outcome_of(name, inputs, run=None, steps=2, **settings):
    definition = dict(SHIPPED_VARIANTS[name])
    method = METHODS[definition.pop("method")]
    length = "epochs" if name in LOCAL + CENTRAL else "rounds"
    given = {**method.quick, length: steps, "batch": 8, "learning_rate": 0.03, **definition, **settings}
    return resolve(method.entry)(inputs, method.settings(**given), run or Run())


def cohort(subjects=24, **changes):
    return series_inputs(subjects, folds=2, **changes)


def own_scores(inputs, outcome):
    """(n,) score of class 1 in the fold that tests each subject."""
    return outcome.scores[inputs.fold, np.arange(len(inputs.subjects)), 1]


def test_all_variants_are_tried():
    family = {name for name, method in METHODS.items() if method.entry.startswith("brainfed.methods.fglbc.")}
    shipped = {name for name, each in SHIPPED_VARIANTS.items() if each["method"] in family}
    assert shipped == {*LOCAL, *CENTRAL, *PLAIN, *PRIVATE}


@pytest.mark.parametrize("name", [*LOCAL, *CENTRAL, *PLAIN])
def test_an_effect_is_found_without_noise(name):
    inputs = cohort(60, effect=6.0)
    outcome = outcome_of(name, inputs, steps=10)
    check(inputs, outcome)
    assert roc_auc_score(diagnosis_of(inputs), own_scores(inputs, outcome)) > 0.65


@pytest.mark.parametrize(
    ("split", "adjacency"),
    [
        *(("random", "cohort_mean"), ("leave-one-site-out", "subject")),
        *(
            pytest.param(*pair, marks=pytest.mark.full("Each split and each adjacency is tried at every change."))
            for pair in (("random", "subject"), ("leave-one-site-out", "cohort_mean"))
        ),
    ],
)
@pytest.mark.parametrize("name", [*LOCAL, *CENTRAL, *PLAIN])
def test_the_series_of_a_tested_subject_changes_its_own_prediction_alone(name, split, adjacency):
    """In its fold. In another, where all train in every step, it changes others."""
    inputs = cohort(split=split)
    settings = {"adjacency": adjacency, "batch": 0 if name in PLAIN else 24}
    before = outcome_of(name, inputs, **settings).scores[..., 1]
    subject = int(np.flatnonzero(inputs.tested(1))[0])
    other = np.random.default_rng(0).standard_normal((inputs.lengths[subject], inputs.regions))
    after = outcome_of(name, exchanged(inputs, {subject: other}), **settings).scores[..., 1]
    others = np.arange(len(inputs.subjects)) != subject
    assert after[1, others].tobytes() == before[1, others].tobytes()
    assert after[1, subject] != before[1, subject]
    assert (after[0] != before[0])[inputs.tested(0)].any()


def test_the_components_of_updates_that_are_compared_move_the_shares():
    all_of_them, one = (outcome_of("fglbc-no-dp", cohort(), components=count).shares for count in (0, 1))
    assert not np.allclose(all_of_them, one)


def test_a_shared_graph_is_read_and_holds_for_scores_too():
    """Without one, a subject's own correlations count; steps that learn nothing leave what the graph makes of it."""
    inputs = cohort()
    own, shared = (outcome_of("gnn-local", inputs, adjacency=way) for way in ("subject", "cohort_mean"))
    assert (own.scores != shared.scores)[np.isfinite(own.scores)].all()


@pytest.mark.parametrize("name", ["fglbc-no-dp", "gnn-central"])
def test_windows_of_a_subject_count_once(name):
    """The score of a scan of two windows is the mean of the scores of its halves."""
    inputs = cohort()
    subject = int(np.flatnonzero(inputs.tested(0))[0])
    scan = np.random.default_rng(1).standard_normal((2 * WINDOW, inputs.regions))
    whole, first, second = (
        outcome_of(name, exchanged(inputs, {subject: part}), **MEAN).scores[0, subject]
        for part in (scan, scan[:WINDOW], scan[WINDOW:])
    )
    np.testing.assert_allclose(whole, (first + second) / 2, rtol=1e-5)
    assert (first != second).all()


def test_longer_scans_of_an_institution_take_no_more_steps_and_weigh_no_more():
    short, long = (cohort(lengths=np.where(np.arange(24) % 3 == 0, length, 15)) for length in (15, 60))
    found = [outcome_of("fglbc", inputs) for inputs in (short, long)]
    assert found[0].privacy == found[1].privacy
    np.testing.assert_array_equal(found[0].shares[0], found[1].shares[0])


def test_a_short_scan_is_wrapped():
    inputs = cohort()
    assert (inputs.lengths < WINDOW).any()
    subject = int(np.flatnonzero(inputs.tested(0))[0])
    scan = np.random.default_rng(1).standard_normal((7, inputs.regions))
    short, wrapped = (
        outcome_of("fglbc-no-dp", exchanged(inputs, {subject: part}), **MEAN).scores[0, subject]
        for part in (scan, np.concatenate([scan, scan])[:WINDOW])
    )
    assert short.tobytes() == wrapped.tobytes()


@every_method
def test_a_window_longer_than_all_scans_is_filled(name):
    inputs = cohort()
    outcome = outcome_of(name, inputs, window=40)
    check(inputs, outcome)
    assert outcome.counts["wrapped_subjects"] == len(inputs.subjects)


@pytest.mark.parametrize("name", [*PLAIN, "fglbc"])
def test_the_networks_weights_alone_leave_an_institution(name):
    outcome = outcome_of(name, cohort())
    method = METHODS[SHIPPED_VARIANTS[name]["method"]]
    crossed = {row["name"] for row in outcome.crossings}
    assert crossed <= set(method.crossing.tensors) - {"adjacency-sum", "training-subjects"}
    weights = {row["name"]: row["bytes"] for row in outcome.crossings if row["direction"] == "upload"}
    assert sum(weights.values()) == 3 * 2 * 4 * outcome.counts["parameters"]


@pytest.mark.parametrize("name", PLAIN)
def test_a_shared_graph_sends_sums_by_way_of_the_server(name):
    inputs = cohort()
    rows = {(row["name"], row["direction"]): row for row in outcome_of(name, inputs, **MEAN).crossings}
    size = 3 * inputs.regions**2 * 8
    assert rows["adjacency-sum", "upload"]["bytes"] == rows["adjacency-sum", "download"]["bytes"] == size
    assert rows["training-subjects", "upload"]["bytes"] == 3 * 4


@pytest.mark.parametrize("name", LOCAL)
def test_alone_nothing_crosses_and_an_institution_without_training_gets_what_it_needs(name):
    assert outcome_of(name, cohort(), **MEAN).crossings == ()
    unseen = cohort(split="leave-one-site-out")
    rows = {(row["name"], row["direction"]): row for row in outcome_of(name, unseen).crossings}
    assert {row["tensors"] for row in rows.values()} == {2}
    parameters = sum(row["bytes"] for (_, way), row in rows.items() if way == "download") / 8
    assert parameters == outcome_of(name, unseen).counts["parameters"]
    shared = {row["name"]: row["tensors"] for row in outcome_of(name, unseen, **MEAN).crossings}
    assert shared.keys() == {name for name, _ in rows} | {"adjacency-sum", "training-subjects"}


@pytest.mark.parametrize("name", CENTRAL)
def test_pooled_all_series_cross(name):
    inputs = cohort()
    rows = {row["name"]: row for row in outcome_of(name, inputs).crossings}
    assert rows.keys() == POOLED_SERIES.keys()
    assert rows["series"]["bytes"] == inputs.series.nbytes and rows["labels"]["bytes"] == len(inputs.subjects)
    assert {row["to"] for row in rows.values()} == {"centre"}


@pytest.mark.parametrize("name", [*LOCAL, *PLAIN])
def test_an_institution_of_as_many_subjects_as_a_layer_has_weights_stops_nothing(name):
    inputs = cohort(36, split="leave-one-site-out")
    wide = {"hidden": WINDOW} if "gnn" in name else {"channels": WINDOW}
    assert np.bincount(inputs.institution).tolist() == [WINDOW] * 3
    assert outcome_of(name, inputs, **wide).crossings


def with_one_training_subject():
    """The second institution has one training subject in the first two folds, and none in others."""
    inputs = cohort()
    kept = np.flatnonzero(inputs.institution != 1)
    lonely = np.concatenate([np.flatnonzero((inputs.institution == 1) & inputs.tested(fold))[:1] for fold in (0, 1)])
    labels = np.full_like(inputs.labels, -1)
    chosen = np.union1d(kept, lonely)
    labels[:, chosen] = inputs.labels[:, chosen]
    return replace(inputs, labels=labels)


def test_privacy_needs_two_training_subjects():
    with pytest.raises(UserError, match="expected two or more training subjects, found 1"):
        outcome_of("fglbc", with_one_training_subject())


@pytest.mark.parametrize("name", [*LOCAL, *CENTRAL, *PLAIN])
def test_an_institution_with_one_training_subject_trains(name):
    few = with_one_training_subject()
    outcome = outcome_of(name, few)
    check(few, outcome)
    assert np.isfinite(outcome.training_loss).any(axis=0).all()


@pytest.mark.parametrize("name", ["stgcn-local", "stgcn-central", "fedavg-no-dp", "fglbc-no-dp"])
def test_a_training_that_diverges_gets_a_sentence(name):
    with pytest.raises(UserError, match=r"expected (a finite loss|finite weights), found NaN or"):
        outcome_of(name, cohort(), learning_rate=1e20)
