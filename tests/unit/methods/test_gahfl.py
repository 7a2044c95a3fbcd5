"""Recurrent networks alone and in distilled federations: what they learn, share, and may not see."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from brainfed.engines.distilling._clients import RecurrentClients, logit_defence
from brainfed.federation import Ledger, RobustnessSettings
from brainfed.federation.distillation._fedgems import variance_weighted
from brainfed.methods import METHODS, SHIPPED_VARIANTS
from brainfed.methods.gahfl.declaration import KINDS, AssignmentSettings
from brainfed.models import KINDS as KNOWN
from brainfed.runtime import UserError, resolve
from brainfed.runtime.jobs import Run
from brainfed.samples import check, members_table
from reference.distilled_federation import scores
from support.samples.method_inputs import diagnosis_of
from support.samples.series_cohort import WINDOW, exchanged, inputs_for, series_inputs

FAMILY = ("recurrent-local", "recurrent-central", "recurrent-public", "fedgems", "fedet", "gahfl")
DISTILLED = ("fedgems", "fedet", "gahfl")
ABLATIONS = ("gahfl-no-bce", "gahfl-no-sd", "gahfl-no-wd", "gahfl-no-teachers", "gahfl-literal-gcna", "fedet-literal")
READINGS = list(product(("step", "round"), ("training", "round")))
both_splits = pytest.mark.parametrize("split", ["random", "leave-one-site-out"])
every_method = pytest.mark.parametrize("name", FAMILY)
every_federation = pytest.mark.parametrize("name", DISTILLED)
one_objective = pytest.mark.full("Loops of every objective and reading are tried in `federation/distillation`.")


def settings_of(name, **settings):
    definition = dict(SHIPPED_VARIANTS[name])
    method = METHODS[definition.pop("method")]
    return method.settings(**{"learning_rate": 0.01, **method.quick, **definition, **settings})


def outcome_of(name, inputs, run=None, **settings):
    method = METHODS[SHIPPED_VARIANTS[name]["method"]]
    return resolve(method.entry)(inputs_for(method, inputs), settings_of(name, **settings), run or Run())


def cohort(subjects=24, **changes):
    return series_inputs(subjects, folds=2, **changes)


def with_shifted_patients(inputs):
    """The same cohort; all regions of patients lie two standard deviations higher."""
    shift = np.repeat(diagnosis_of(inputs), inputs.lengths)[:, None].astype(np.float32)
    return replace(inputs, series=inputs.series + 2 * shift)


def own_scores(inputs, outcome):
    """(n,) score of class 1 in the fold that tests each subject."""
    return outcome.scores[inputs.fold, np.arange(len(inputs.subjects)), 1]


def test_all_variants_are_tried():
    family = {name for name, method in METHODS.items() if method.entry.startswith("brainfed.methods.gahfl.")}
    assert family == set(FAMILY)
    shipped = {name for name, each in SHIPPED_VARIANTS.items() if each["method"] in family}
    assert shipped == {*FAMILY, *ABLATIONS}


@pytest.mark.parametrize("name", [*FAMILY, "gahfl-literal-gcna"])
def test_an_effect_is_found(name):
    """The mean of a region says who is a patient: crops keep it."""
    inputs = with_shifted_patients(cohort(48))
    truth = diagnosis_of(inputs)
    outcome = outcome_of(name, inputs, rounds=5, learning_rate=0.05)
    check(inputs, outcome)
    own = own_scores(inputs, outcome)
    aucs = [roc_auc_score(truth[tested], own[tested]) for tested in map(inputs.tested, range(2))]
    assert np.mean(aucs) > 0.8


def test_without_its_third_term_gahfl_stays_with_the_class_that_it_predicts_first():
    """No sample of the other class was ever right, and none of them is trained on."""
    outcome = outcome_of("gahfl-no-wd", with_shifted_patients(cohort(48)), rounds=5, learning_rate=0.05)
    for scores_of_fold in outcome.scores:
        found = scores_of_fold[np.isfinite(scores_of_fold).all(axis=-1)].argmax(axis=-1)
        assert len(set(found.tolist())) == 1


@pytest.mark.parametrize("name", [*DISTILLED, "recurrent-central"])
def test_public_training_subjects_are_marked_among_the_members(name):
    inputs = inputs_for(METHODS[name], cohort())
    outcome = resolve(METHODS[name].entry)(inputs, settings_of(name), Run())
    table = members_table(inputs, outcome, diagnosis_of(inputs))
    fold, place = table["fold"].to_numpy(), table["subject"].map(inputs.subjects.index).to_numpy()
    public = inputs.public if name in DISTILLED else np.zeros_like(inputs.labels, dtype=bool)
    np.testing.assert_array_equal(table["public"], public[fold, place])


@every_method
@both_splits
def test_the_series_of_a_tested_subject_changes_its_own_prediction_alone(name, split):
    inputs = cohort(split=split)
    before = outcome_of(name, inputs).scores[..., 1]
    subject = int(np.flatnonzero(inputs.tested(1))[0])
    other = np.random.default_rng(0).standard_normal((inputs.lengths[subject], inputs.regions))
    after = outcome_of(name, exchanged(inputs, {subject: other})).scores[..., 1]
    others = np.arange(len(inputs.subjects)) != subject
    np.testing.assert_array_equal(after[1, others], before[1, others])
    assert after[1, subject] != before[1, subject]


def test_private_series_change_a_federation_and_not_the_network_of_the_public_subjects():
    inputs = with_shifted_patients(cohort())
    held = inputs_for(METHODS["gahfl"], inputs)
    private = int(np.flatnonzero((inputs.labels[0] >= 0) & ~held.public[0])[0])
    other = np.random.default_rng(0).standard_normal((inputs.lengths[private], inputs.regions))
    changed, tested = exchanged(inputs, {private: other}), inputs.tested(0)
    for name, moves in (("gahfl", True), ("fedet", True), ("recurrent-public", False)):
        one, two = (
            outcome_of(name, each, rounds=4, learning_rate=0.05).scores[0, tested] for each in (inputs, changed)
        )
        assert (one != two).any() == moves, name


@every_federation
def test_logits_of_public_subjects_are_the_only_upload_of_a_round(name):
    inputs = cohort()
    outcome = outcome_of(name, inputs)
    held = inputs_for(METHODS[name], inputs)
    rows = {(row["name"], row["direction"]): row for row in outcome.crossings}
    assert {each for each, way in rows if way == "upload"} == {"logits", "public-series", "public-labels"}
    public = held.public_training(0)
    assert rows["logits", "upload"]["bytes"] == 3 * 2 * len(public) * 2 * inputs.classes * 4
    moments = int(inputs.lengths[public].sum())
    assert rows["public-series", "upload"]["bytes"] == moments * inputs.regions * 4
    assert rows["public-series", "download"]["bytes"] == 2 * moments * inputs.regions * 4
    assert ("public-labels", "download") not in rows
    model = {
        each: row["bytes"] for (each, way), row in rows.items() if way == "download" and each.startswith("bilstm.")
    }
    assert sum(model.values()) == 3 * 2 * 4 * outcome.counts["parameters"]


def test_alone_nothing_crosses_and_pooled_all_series_do():
    inputs = cohort()
    assert outcome_of("recurrent-local", inputs).crossings == ()
    rows = {row["name"]: row for row in outcome_of("recurrent-central", inputs).crossings}
    assert rows["series"]["bytes"] == inputs.series.nbytes and rows["labels"]["bytes"] == len(inputs.subjects)
    shown = {row["name"]: row for row in outcome_of("recurrent-public", inputs).crossings}
    assert {each for each in shown if not each.startswith("bilstm.")} == {"public-series", "public-labels"}
    assert {row["direction"] for each, row in shown.items() if each.startswith("bilstm.")} == {"download"}
    assert 0 < shown["public-series"]["bytes"] < rows["series"]["bytes"]


@every_method
def test_every_axis_has_a_known_size(name, monkeypatch):
    record = Ledger.record

    def strict(ledger, kind, shape, itemsize, **sent):
        assert not set(ledger.declared.get(kind, ())) - {"subjects", "time-points"} - set(ledger.axes), kind
        record(ledger, kind, shape, itemsize, **sent)

    monkeypatch.setattr(Ledger, "record", strict)
    assert outcome_of(name, cohort(split="leave-one-site-out")).crossings


@every_method
def test_a_scan_shorter_than_a_crop_is_wrapped_or_dropped(name):
    inputs = cohort()
    short = int((inputs.lengths < WINDOW).sum())
    assert short
    wrapped, dropped = (outcome_of(name, inputs, short=way) for way in ("wrap", "drop"))
    for outcome in (wrapped, dropped):
        check(inputs, outcome)
    assert wrapped.counts["wrapped_subjects"] == dropped.counts["dropped_subjects"] == short
    assert (wrapped.scores != dropped.scores)[np.isfinite(wrapped.scores)].any()


def with_short_scans(inputs, institution):
    """The same cohort; all scans of one institution are shorter than a crop."""
    short = {place: inputs.subject(place)[: WINDOW - 2] for place in inputs.members(institution)}
    return exchanged(inputs, short)


@every_method
def test_an_institution_whose_scans_are_all_dropped_trains_nothing(name):
    inputs = with_short_scans(cohort(lengths=np.full(24, 20)), 1)
    outcome = outcome_of(name, inputs, short="drop")
    check(inputs, outcome)
    assert outcome.counts["dropped_subjects"] == 8
    if name in DISTILLED:
        rows = {(row["name"], row["direction"]): row["institutions"] for row in outcome.crossings}
        assert rows["logits", "upload"] == rows["public-series", "download"] == "0 2"
        assert rows["bilstm.connected.0.bias", "download"] == "0 1 2"


@every_method
def test_scans_that_are_all_dropped_get_a_sentence(name):
    with pytest.raises(UserError, match=r"training scans of 40 time points or more, found none; set `short: wrap`"):
        outcome_of(name, cohort(), length=40, short="drop")


@pytest.mark.parametrize("attack", ["paf", "ofom"])
def test_padding_of_a_fold_with_fewer_public_subjects_is_no_subject(attack, monkeypatch):
    """The first subject stands for padding, and is tested in the fold that is padded."""
    fit, left = RecurrentClients.fit, []

    def noted(clients, number, chosen):
        replies, real = fit(clients, number, chosen), clients.teaching.public.real
        left.extend(reply.tensors["logits"][~real] for reply in replies.values())
        return replies

    monkeypatch.setattr(RecurrentClients, "fit", noted)
    inputs = with_shifted_patients(cohort())
    held = inputs_for(METHODS["gahfl"], inputs)
    fold = int(inputs.fold[0])
    public = held.public.copy()
    public[fold, np.flatnonzero(public[fold])[-2:]] = False
    changed = exchanged(inputs, {0: np.random.default_rng(0).standard_normal((inputs.lengths[0], inputs.regions))})
    settings = settings_of("fedet", attack=attack, attacked=0.5, rounds=3, learning_rate=0.05)
    found = []
    for each in (inputs, changed):
        given = replace(inputs_for(METHODS["gahfl"], each), public=public)
        found.append(resolve(METHODS["fedet"].entry)(given, settings, Run()).scores[fold])
    assert all(len(logits) and not logits.any() for logits in left)
    others = np.arange(len(inputs.subjects)) != 0
    np.testing.assert_array_equal(found[0][others], found[1][others])


@every_federation
def test_a_federation_of_one_institution_and_one_without_public_subjects_train(name):
    alone = cohort(institutions=1)
    check(alone, outcome_of(name, alone))
    inputs = inputs_for(METHODS[name], cohort())
    hidden = replace(inputs, public=inputs.public & (inputs.institution != 1))
    method = METHODS[name]
    outcome = resolve(method.entry)(hidden, method.settings(**method.quick), Run())
    check(hidden, outcome)
    (row,) = (row for row in outcome.crossings if row["name"] == "public-series" and row["direction"] == "upload")
    assert row["institutions"] == "0 2"


def test_a_median_of_logits_holds_where_one_far_upload_rules_the_consensus():
    """Fed-ET weighs by variance, and so listens to the far upload alone."""
    honest = torch.tensor([[2.0, -1.0], [1.5, -1.5], [1.0, -0.5]]).view(3, 1, 1, 2)
    teachers, present = torch.cat([honest, torch.tensor([-90.0, 80.0]).view(1, 1, 1, 2)]), torch.ones(4, 1, dtype=bool)
    consensus = variance_weighted(teachers, present[..., None])[0, 0]
    joined = logit_defence(RobustnessSettings(defence="median"))(teachers, present)[0, 0]
    assert consensus.argmax() == 1 and joined.argmax() == 0
    torch.testing.assert_close(joined, torch.tensor([1.25, -0.75]))


def test_a_median_of_logits_falls_to_a_majority():
    teachers = torch.tensor([[2.0, -1.0], [-90.0, 80.0], [-95.0, 70.0]]).view(3, 1, 1, 2)
    joined = logit_defence(RobustnessSettings(defence="median"))(teachers, torch.ones(3, 1, dtype=bool))
    assert joined[0, 0].argmax() == 1


@every_federation
@pytest.mark.full("A share of zero is tried with one attack at every change.")
@pytest.mark.parametrize("attack", ["ofom", "label_flip"])
def test_a_share_of_zero_moves_no_score(name, attack):
    inputs = with_shifted_patients(cohort())
    found = (outcome_of(name, inputs, rounds=3, **chosen).scores for chosen in ({}, {"attack": attack, "attacked": 0}))
    assert len({scores.tobytes() for scores in found}) == 1


@every_federation
def test_an_attack_moves_scores_and_a_share_of_zero_does_not(name):
    inputs = with_shifted_patients(cohort())

    def scores_with(attack, attacked):
        attacks = {"attack": attack, "attacked": attacked}
        return outcome_of(name, inputs, rounds=3, learning_rate=0.05, **attacks).scores.tobytes()

    plain = outcome_of(name, inputs, rounds=3, learning_rate=0.05).scores.tobytes()
    assert scores_with("paf", 0) == plain
    assert len({plain, *(scores_with(attack, 0.5) for attack in ("paf", "ofom", "label_flip"))}) == 4


def test_the_settings_and_the_networks_know_the_same_kinds():
    assert KINDS == KNOWN


def test_kinds_of_networks_move_with_the_repeat():
    settings = AssignmentSettings()
    assert settings.kinds(4, 0) == ["lstm", "gru", "bilstm", "slstm"]
    assert settings.kinds(4, 1) == ["gru", "bilstm", "slstm", "lstm"]
    assert settings.kinds(5, 0)[4] == "lstm"
    assert replace(settings, assignment="fixed").kinds(4, 3) == settings.kinds(4, 0)


def test_another_repeat_has_other_kinds():
    inputs = cohort()
    moved = replace(inputs, streams=replace(inputs.streams, repeat=1))
    found = [outcome_of("gahfl", each, assignment=way) for each in (inputs, moved) for way in ("rotate", "fixed")]
    assert found[0].scores.tobytes() == found[1].scores.tobytes()
    assert found[2].scores.tobytes() != found[3].scores.tobytes()


@every_method
def test_a_training_that_diverges_gets_a_sentence(name):
    with pytest.raises(UserError, match=r"expected a finite loss, found NaN or an infinite one; lower learning_rate"):
        outcome_of(name, cohort(), learning_rate=1e30, rounds=4)


@pytest.mark.parametrize("name", ["gahfl", "recurrent-local"])
def test_an_empty_list_of_kinds_is_refused(name):
    with pytest.raises(ValueError, match="models: expected one kind or more"):
        METHODS[name].settings(models=())


@every_method
def test_more_classes_than_two_are_scored(name):
    diagnosis = np.arange(24) // 3 % 3
    inputs = cohort(diagnosis=diagnosis)
    outcome = outcome_of(name, inputs)
    check(inputs, outcome)
    tested = inputs.tested(0)
    np.testing.assert_allclose(outcome.scores[0, tested].sum(axis=-1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("gahfl", "leave-one-site-out"),
        *((name, "random") for name in DISTILLED),
        *(pytest.param(name, "random", marks=one_objective) for name in ABLATIONS),
    ],
)
def test_a_federation_equals_algorithm_1_in_loops(name, split):
    shifted = with_shifted_patients(cohort(12, institutions=3, split=split))
    inputs = inputs_for(METHODS["gahfl"], shifted)
    settings = settings_of(
        name, rounds=3, local_epochs=1, learning_rate=0.05, models=("gru", "slstm", "bilstm"), model="lstm", batch=5
    )
    weights = ("beta", "gamma", "epsilon", "xi", "momentum", "consensus", "diversity")
    settings = replace(settings, **{weight: 0.7 for weight in weights if getattr(settings, weight, 0)})
    method = METHODS[SHIPPED_VARIANTS[name]["method"]]
    found = resolve(method.entry)(inputs, settings, Run(precision="float64")).scores
    np.testing.assert_allclose(found, scores(inputs, settings, method.name), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", ["gahfl", pytest.param("fedgems", marks=one_objective)])
@pytest.mark.parametrize(("when", "lifetime"), READINGS)
def test_every_reading_equals_algorithm_1_in_loops(name, when, lifetime):
    inputs = inputs_for(METHODS["gahfl"], with_shifted_patients(cohort(12, institutions=2)))
    changed = {
        "rounds": 3,
        "local_epochs": 1,
        "learning_rate": 0.02,
        "models": ("gru", "slstm"),
        "model": "lstm",
        "batch": 5,
    }
    settings = settings_of(name, self_evaluation=when, pool=lifetime, **changed)
    found = resolve(METHODS[name].entry)(inputs, settings, Run(precision="float64"))
    expected, taught = scores(inputs, settings, name, with_taught=True)
    np.testing.assert_allclose(found.scores, expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.taught, taught)


def with_noise_from_the_second_round(monkeypatch):
    """Every upload from the second round on is noise."""
    fit, random = RecurrentClients.fit, torch.Generator().manual_seed(0)

    def noisy(clients, number, chosen):
        replies = fit(clients, number, chosen)
        if number:
            for reply in replies.values():
                logits = reply.tensors["logits"]
                logits.copy_(5 * torch.randn(logits.shape, generator=random))
        return replies

    monkeypatch.setattr(RecurrentClients, "fit", noisy)


@pytest.mark.parametrize("name", ["gahfl", pytest.param("fedgems", marks=one_objective), "fedet"])
def test_uploads_count_where_they_are_said_to_teach(name, monkeypatch):
    """Noise in their place changes what follows from a round with a taught share, and nothing else."""
    inputs = cohort(24)
    steps = {"rounds": 3, "local_epochs": 1, "global_epochs": 6, "learning_rate": 0.03}
    readings = [{}] if name == "fedet" else [{"self_evaluation": when, "pool": pool} for when, pool in READINGS]
    plain = [outcome_of(name, inputs, **steps, **reading) for reading in readings]
    with_noise_from_the_second_round(monkeypatch)
    taught = []
    for reading, before in zip(readings, plain, strict=True):
        after = outcome_of(name, inputs, **steps, **reading)
        for fold in range(2):
            moved = (before.round_scores[:, fold] != after.round_scores[:, fold])[:, inputs.tested(fold)]
            rounds = np.flatnonzero(before.taught[1:, fold] + after.taught[1:, fold]) + 1
            first = rounds[0] if len(rounds) else len(moved)
            assert not moved[:first].any() and moved[first:].any(axis=(1, 2)).all()
        taught.append(before.taught[-1].max())
    if name == "fedet":
        assert taught == [1.0]
    else:
        shares = dict(zip(READINGS, taught, strict=True))
        assert shares["step", "training"] == 0 and shares["step", "round"] > 0.1


@every_method
def test_an_interrupted_training_resumes_to_the_same_bytes(name, resumed):
    inputs, settings = with_shifted_patients(cohort(24)), {"rounds": 3, "learning_rate": 0.05}
    expected = outcome_of(name, inputs, **settings)
    again, seen = resumed(lambda run: outcome_of(name, inputs, run, **settings), 2)
    assert seen == [2, 3]
    assert again.round_scores.tobytes() == expected.round_scores.tobytes()
    assert again.training_loss.tobytes() == expected.training_loss.tobytes()
    assert again.crossings == expected.crossings


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("name", "settings"),
    [*((name, {}) for name in FAMILY), ("gahfl", {"attack": "ofom", "attacked": 0.5, "defence": "median"})],
)
def test_a_gpu_gives_the_cpus_scores(name, settings):
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    inputs = cohort()
    cpu, gpu = (outcome_of(name, inputs, Run(device=device), **settings).scores for device in ("cpu", "cuda:0"))
    np.testing.assert_allclose(gpu, cpu, atol=1e-3)


@pytest.mark.parametrize("defence", ["median", "trimmed_mean"])
def test_logits_that_are_not_finite_take_no_part_in_a_defence(defence):
    rule = logit_defence(RobustnessSettings(defence=defence))
    honest = torch.tensor([2.0, 1.5, 1.0])[:, None, None, None] * torch.tensor([1.0, -0.5])
    broken = torch.full((1, 1, 1, 2), torch.nan)
    everybody = rule(torch.cat([honest, broken]), torch.ones(4, 1, dtype=torch.bool))
    assert torch.equal(everybody, rule(honest, torch.ones(3, 1, dtype=torch.bool)))
    assert everybody.isfinite().all()
    assert rule(broken, torch.ones(1, 1, dtype=torch.bool)).isfinite().all()
