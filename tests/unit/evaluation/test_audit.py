"""Membership inference: equal to the formulas, known answers of simulated leakage, and chance without any."""

from math import sqrt

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from brainfed.evaluation import auc, audit_experiment
from brainfed.evaluation._audit import (
    COLUMNS,
    audit,
    likelihood_ratio,
    loss_threshold,
    other_people,
    shadow_runs,
    success,
)
from brainfed.runtime import UserError, write_table
from reference import audit as plain

KINDS = pytest.mark.parametrize("kind", ["probability", "margin"])


def simulated(
    leak=0.0, subjects=60, repeats=3, folds=5, noise=1.0, spread=2.0, kind="probability", classes=2, seed=0, copies=1
):
    """Predictions and member scores: confidence in the true class is a subject's own, noise, and `leak` if it trained.

    A person is there `copies` times, in one fold and with the same scores.
    """
    rng = np.random.default_rng([seed, 17])
    people = subjects // copies
    label = np.repeat(rng.integers(0, classes, people), copies)
    own = np.repeat(rng.normal(0, spread, people), copies)
    subject = [f"s{number:04d}" for number in range(subjects)]
    names = ["score-a", "score-b", "score-c"][:classes] if classes > 2 else ["other", "score"]
    parts = []
    for repeat in range(repeats):
        fold = np.repeat(rng.permutation(np.arange(people) % folds), copies)
        for model in range(folds):
            confidence = own + np.repeat(rng.normal(0, noise, people), copies) + leak * (fold != model)
            scores = scores_of(confidence, label, kind, classes, rng)
            held = {"repeat": repeat, "fold": model, "subject": subject, "trained": fold != model}
            held |= dict(zip(names, scores.T, strict=True)) | {"kind": kind, "label": label, "institution": "east"}
            parts.append(pd.DataFrame(held))
    table = pd.concat(parts, ignore_index=True).drop(columns="other", errors="ignore")
    return tuple(table[table["trained"] == trained].drop(columns="trained") for trained in (False, True))


def scores_of(confidence, label, kind, classes, rng):
    """(n, C) scores whose confidence in the true class is given."""
    rows = np.arange(len(label))
    if kind == "margin" and classes == 2:
        return np.where(np.arange(2) == label[:, None], confidence[:, None] / 2, -confidence[:, None] / 2)
    if kind == "margin":
        scores = rng.normal(-2, 0.1, (len(label), classes))
        scores[rows, label] = -np.inf
        scores[rows, label] = confidence + scores.max(axis=1)
        return scores
    share = rng.dirichlet(np.ones(classes - 1), len(label))
    scores = np.zeros((len(label), classes))
    scores[rows, label] = expit(confidence)
    scores[np.arange(classes) != label[:, None]] = (share * expit(-confidence)[:, None]).ravel()
    return scores


def runs_of(tables, groups=None):
    return shadow_runs(*tables, groups or {})


def models_of(runs):
    """The models as the reference reads them."""
    return [
        {
            "repeat": repeat,
            **{
                name: {
                    int(subject): (runs.scores[repeat, fold, subject].tolist(), int(runs.label[repeat, subject]))
                    for subject in np.flatnonzero(mask[repeat, fold])
                }
                for name, mask in (("members", runs.trained), ("others", runs.held_out))
            },
        }
        for repeat in range(runs.repeats)
        for fold in range(runs.trained.shape[1])
    ]


@KINDS
@pytest.mark.parametrize("classes", [2, 3])
def test_both_attacks_equal_the_formulas(kind, classes):
    runs = runs_of(simulated(0.8, 20, kind=kind, classes=classes))
    models = models_of(runs)
    for attack, reference in ((likelihood_ratio, plain.lira), (loss_threshold, plain.loss)):
        found = success(attack(runs), runs.trained, runs.held_out, runs.group)
        pairs = reference(models, kind)
        assert found.members + found.non_members == len(pairs) == 20 * 15
        np.testing.assert_allclose(found.auc, plain.auc(pairs), atol=1e-12)
        np.testing.assert_allclose(found.tpr, plain.true_positives(pairs), atol=1e-12)
        assert found.auc_low <= found.auc <= found.auc_high
        assert found.tpr_low <= found.tpr <= found.tpr_high and found.fpr <= 0.01


def test_equal_values_count_half_and_are_taken_together():
    statistic = np.array([[[2.0, 2.0, 1.0, 1.0, 0.0]]])
    member = np.array([[[True, True, True, False, False]]])
    found = success(statistic, member, ~member, np.arange(5))
    pairs = [(i, bool(m), v) for i, (m, v) in enumerate(zip(member[0, 0], statistic[0, 0], strict=True))]
    assert found.auc == plain.auc(pairs) == 5.5 / 6
    assert (found.tpr, found.fpr) == (plain.true_positives(pairs), 0.0) == (2 / 3, 0.0)


@KINDS
@pytest.mark.full("A claim about many draws takes seconds.")
def test_lira_finds_what_is_leaked_and_the_loss_threshold_less(kind):
    """Known answer: a shift d against the noise s of the target and of the mean of R - 1 shadow models."""
    repeats, leak = 5, 1.5
    runs = runs_of(simulated(leak, 1000, repeats, spread=3.0, kind=kind))
    by_name = dict(audit(runs))
    deviation = sqrt(1 + 1 / (repeats - 1))
    np.testing.assert_allclose(by_name["lira"].auc, norm.cdf(leak / deviation / sqrt(2)), atol=0.01)
    np.testing.assert_allclose(by_name["lira"].tpr, norm.cdf(leak / deviation + norm.ppf(0.01)), atol=0.03)
    if kind == "probability":
        total = sqrt(2 * (1 + 3.0**2))
        np.testing.assert_allclose(by_name["loss"].auc, norm.cdf(leak / total), atol=0.02)
    assert by_name["loss"].auc < by_name["lira"].auc - 0.05


@pytest.mark.parametrize("leak", [0.0, 2.0])
def test_other_people_are_never_found(leak):
    runs = runs_of(simulated(leak, 150, 5))
    found = dict(audit(runs))
    for name in ("lira-others", "loss-others"):
        assert found[name].auc_low < 0.5 < found[name].auc_high
        assert found[name].members + found[name].non_members == 150 * 5
    members, others = other_people(runs)
    assert not (members & runs.trained).any() and not (others & runs.trained).any()


@pytest.mark.full("A claim about many draws takes seconds.")
def test_intervals_hold_the_truth_as_often_as_they_claim():
    """No leak: of 100 cohorts about 95 intervals hold 0.5; copies of one person count as one."""
    for copies in (1, 3):
        groups = {f"s{place:04d}": f"s{place - place % copies:04d}" for place in range(90)}
        held = 0
        for seed in range(100):
            runs = runs_of(simulated(0.0, 90, 2, 3, seed=seed, copies=copies), groups)
            found = success(likelihood_ratio(runs), runs.trained, runs.held_out, runs.group)
            held += found.auc_low <= 0.5 <= found.auc_high
        assert held >= 88


def test_the_interval_is_that_of_95_per_cent():
    """From low to high are 3.92 standard deviations of an AUC whose people are drawn again."""
    random, inside = np.random.default_rng(3), np.arange(120) % 2
    statistic = random.normal(size=120) + inside
    member = inside[None, None] == 1
    found = success(statistic[None, None], member, ~member, np.arange(120))
    chosen = random.integers(120, size=(2000, 120))
    drawn = [auc(inside[people], statistic[people]) for people in chosen]
    assert found.auc_high - found.auc_low == pytest.approx(3.92 * np.std(drawn), rel=0.08)


def test_replicates_in_smaller_parts_give_the_same_interval(monkeypatch):
    rng = np.random.default_rng(4)
    statistic, member = rng.standard_normal((2, 3, 40)), rng.random((2, 3, 40)) < 0.7
    whole = success(statistic, member, ~member, np.arange(40))
    monkeypatch.setattr("brainfed.evaluation._audit.NUMBERS", 1000)
    assert success(statistic, member, ~member, np.arange(40)) == whole


def test_labels_that_differ_between_repeats_are_those_of_the_target():
    """Permuted labels: a shadow model's confidence is read for the label that the target was trained with."""
    tested, trained = simulated(0.8, 20)
    turned = [table.assign(label=np.where(table["repeat"] == 1, 1 - table["label"], table["label"]))
              for table in (tested, trained)]  # fmt: skip
    runs = runs_of(turned)
    found = success(likelihood_ratio(runs), runs.trained, runs.held_out, runs.group)
    np.testing.assert_allclose(found.auc, plain.auc(plain.lira(models_of(runs), "probability")), atol=1e-12)


def test_one_repeat_has_no_shadow_models():
    assert [name for name, _ in audit(runs_of(simulated(1.0, repeats=1)))] == ["loss"]


def test_folds_that_no_draw_moves_leave_the_loss_threshold_alone():
    """Leave-one-site-out: every repeat holds out the same people, and LiRA would find the site.

    Here no model depends on a single subject: all are less sure of a site that they have not seen.
    """
    rows = [table.assign(fold=table["subject"].str[1:].astype(int) % 5) for table in simulated(1.0)[:1]]
    tested = rows[0]
    trained = pd.concat([tested.assign(fold=fold)[tested["fold"] != fold] for fold in range(5)])
    tested = tested.assign(score=expit(logit(tested["score"]) - np.where(tested["label"] == 1, 1.0, -1.0)))
    runs = runs_of((tested, trained))
    assert [name for name, _ in audit(runs)] == ["loss"]
    assert success(likelihood_ratio(runs), runs.trained, runs.held_out, runs.group).auc > 0.7


def test_a_tested_subject_that_trained_is_refused():
    tested, trained = simulated(1.0)
    with pytest.raises(UserError, match=r"Repeat 0, fold \d: subject 's\d+' is tested and is a training subject"):
        runs_of((tested, pd.concat([trained, tested.iloc[:1]])))


def test_the_table_has_a_row_a_variant_and_attack(tmp_path):
    runs, files = [(name, repeat) for name in ("open", "closed", "silent") for repeat in (0, 1)], ([], [])
    for variant, repeat in runs:
        tables = simulated(4.0 if variant == "open" else 0.0, 40, 2)
        for kind, table in enumerate(tables):
            own = table[table["repeat"] == repeat].drop(columns="repeat").assign(public=False)
            path = tmp_path / f"{variant}-{repeat}-{kind}.parquet"
            write_table(path, own.iloc[:0] if kind and variant == "silent" else own)
            files[kind].append(str(path))
    included = tmp_path / "included.parquet"
    write_table(included, pd.DataFrame({"subject": ["s0000", "s0001"], "twin_group": ["s0000", "s0000"]}))
    audit_experiment(runs, *files, str(included), str(tmp_path / "audit.tsv"))
    found = pd.read_csv(tmp_path / "audit.tsv", sep="\t")
    assert (tuple(found.columns), found["variant"].tolist()) == (COLUMNS, ["open"] * 4 + ["closed"] * 4)
    assert found["attack"].tolist() == ["lira", "loss", "lira-others", "loss-others"] * 2
    auc = found.set_index(["variant", "attack"])["auc"]
    assert auc["open", "lira"] > 0.9 and abs(auc["closed", "lira"] - 0.5) < 0.1
    assert (found["runs"] == 10).all()


def test_public_training_subjects_have_rows_of_their_own(tmp_path):
    """The model knows its public subjects by heart, and has no memory of the private ones."""
    runs, files = [("shared", repeat) for repeat in (0, 1)], ([], [])
    blank, known = simulated(0.0, 60, 2), simulated(4.0, 60, 2)
    for repeat in (0, 1):
        tested, trained = (table[table["repeat"] == repeat].drop(columns="repeat") for table in blank)
        at_heart = known[1][known[1]["repeat"] == repeat].drop(columns="repeat")
        public = np.random.default_rng(repeat).random(len(trained)) < 0.3
        trained = pd.concat([trained[~public].assign(public=False), at_heart[public].assign(public=True)])
        for kind, table in enumerate((tested, trained)):
            path = tmp_path / f"{repeat}-{kind}.parquet"
            write_table(path, table)
            files[kind].append(str(path))
    included = tmp_path / "included.parquet"
    write_table(included, pd.DataFrame({"subject": ["s0000"], "twin_group": ["s0000"]}))
    audit_experiment(runs, *files, str(included), str(tmp_path / "audit.tsv"))
    found = pd.read_csv(tmp_path / "audit.tsv", sep="\t").set_index("attack")
    assert found.index.tolist() == ["lira", "loss", "lira-others", "loss-others", "lira-public", "loss-public"]
    assert (found.loc[["lira-public", "loss-public"], "auc"] > 0.8).all()
    assert (found.loc[["lira", "loss"], "auc"] - 0.5).abs().max() < 0.1
    assert found.loc["loss", "members"] + found.loc["loss-public", "members"] == sum(
        len(pd.read_parquet(path)) for path in files[1]
    )


def test_a_table_of_members_without_public_is_refused(tmp_path):
    tested, trained = simulated(0.0, 40, 1)
    for name, table in (("tested", tested), ("trained", trained)):
        write_table(tmp_path / f"{name}.parquet", table.drop(columns="repeat"))
    included = tmp_path / "included.parquet"
    write_table(included, pd.DataFrame({"subject": ["s0000"], "twin_group": ["s0000"]}))
    files = [str(tmp_path / "tested.parquet")], [str(tmp_path / "trained.parquet")]
    with pytest.raises(UserError, match=r"\['public'\] are missing; delete it and run again"):
        audit_experiment([("one", 0)], *files, str(included), str(tmp_path / "audit.tsv"))
