"""The audit of membership: shadow models, attacks, their success, and the table of an experiment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.evaluation._metrics import class_names, class_scores, read_predictions
from brainfed.runtime import BoolArray, Float64, IntArray, UserError, read_table, write_tsv

# The models of a variant in all repeats and folds: each a target of attacks, and a shadow model of the others.


@dataclass(frozen=True)
class ShadowRuns:
    """R repeats of F folds on n subjects, a model each.

    Attributes:
        scores: (R, F, n, C) of every subject that the model of a repeat and fold scored; NaN elsewhere.
        trained: (R, F, n) whether the subject trained the model.
        label: (R, n) class; it differs between repeats where labels are permuted. -1: no model of the repeat has it.
        group: (n,) number of the group of duplicates: one person, or scans with one content.
        kind: of the scores, `probability` or `margin`.
    """

    scores: Float64
    trained: BoolArray
    label: IntArray
    group: IntArray
    kind: str

    @property
    def repeats(self) -> int:
        """R."""
        return len(self.scores)

    @property
    def held_out(self) -> BoolArray:
        """(R, F, n) whether the model scored the subject and never saw its label."""
        return np.asarray(np.isfinite(self.scores).all(axis=-1) & ~self.trained)

    def of_label(self, values: Float64, repeat: int) -> Float64:
        """Of values (..., n, C) the entries (..., n) of the class that each subject has in a repeat."""
        label = np.maximum(self.label[repeat], 0)
        return np.asarray(values[..., np.arange(len(label)), label])


def shadow_runs(predictions: pd.DataFrame, members: pd.DataFrame, groups: Mapping[str, str]) -> ShadowRuns:
    """Join the scores of tested and of training subjects of one variant.

    Predictions have a row a repeat and tested subject, with repeat, fold, subject, scores, kind and label; members the
    same, a row a repeat, fold and subject that trained. A subject without a group in `groups` is alone.

    Raises:
        UserError: a subject trained in the fold that tests it.
    """
    both = predictions.merge(members, on=["repeat", "fold", "subject"])
    if len(both):
        first = both.iloc[0]
        raise UserError(
            f"Repeat {first['repeat']}, fold {first['fold']}: subject {first['subject']!r} is tested and is a training "
            "subject; delete the variant's folder and run again."
        )
    rows = pd.concat([predictions, members], ignore_index=True)
    subjects = sorted(rows["subject"].unique())
    place = {subject: position for position, subject in enumerate(subjects)}
    repeat, fold = (rows[name].to_numpy(np.int64) for name in ("repeat", "fold"))
    subject = rows["subject"].map(place).to_numpy(np.int64)
    size = int(repeat.max()) + 1, int(fold.max()) + 1, len(subjects)
    scores = np.full((*size, len(class_names(rows))), np.nan)
    scores[repeat, fold, subject] = class_scores(rows)
    trained = np.zeros(size, dtype=bool)
    trained[repeat, fold, subject] = np.arange(len(rows)) >= len(predictions)
    label = np.full((size[0], size[2]), -1, dtype=np.int64)
    label[repeat, subject] = rows["label"].to_numpy(np.int64)
    names = [groups.get(subject, subject) for subject in subjects]
    group = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return ShadowRuns(scores, trained, label, group, str(rows["kind"].iloc[0]))


# Attacks on membership: did this subject train this model? The larger the statistic, the likelier.
#
# Both need what a server, an institution or a reader of predictions can have: the scores of a subject and its label.

SMALLEST = 1e-12
"""Smallest probability; a logit then lies within 28."""


def loss_threshold(runs: ShadowRuns) -> Float64:
    """(R, F, n) minus the loss of the true class: below a threshold is a member (Yeom et al. 2018, IEEE CSF).

    The losses are those of `history.parquet`: cross-entropy of probabilities, squared distance of margins from 1.
    """
    margin, scores = runs.kind == "margin", runs.scores
    gain = -np.square(1 - scores) if margin else np.log(np.clip(scores, SMALLEST, 1))
    return np.stack([runs.of_label(gain[repeat], repeat) for repeat in range(runs.repeats)])


def likelihood_ratio(runs: ShadowRuns) -> Float64:
    """(R, F, n) offline LiRA (Carlini et al. 2022, IEEE S&P): (phi - mean) / sd; NaN without a shadow model.

    phi is the target's confidence in the true class. Its mean is over the subject's shadow models: the models of the
    other repeats that were trained without it. So a member and a non-member have equally many, and none shares its
    split with the target. As shadow models are few, there is one sd, of the confidences of all subjects by their
    shadow models, as in the authors' code. The probability of a normal variable below the statistic is LiRA's score.
    """
    confidence, held_out = confidences(runs), runs.held_out
    ratio = np.full(runs.trained.shape, np.nan)
    for repeat in range(runs.repeats):
        own = runs.of_label(confidence, repeat)
        shadow = held_out.copy()
        shadow[repeat] = False
        count = shadow.sum(axis=(0, 1))
        mean = np.where(shadow, own, 0).sum(axis=(0, 1)) / np.where(count, count, np.nan)
        deviation = float(own[shadow].std()) if shadow.any() else np.nan
        ratio[repeat] = (own[repeat] - mean) / (deviation or 1.0)
    return ratio


def confidences(runs: ShadowRuns) -> Float64:
    """(R, F, n, C) in every class: the logit of its probability, or its margin minus the largest of the others."""
    scores = runs.scores
    if runs.kind == "margin":
        leads = [scores[..., code] - np.delete(scores, code, axis=-1).max(axis=-1) for code in range(scores.shape[-1])]
        return np.stack(leads, axis=-1)
    probability = np.clip(scores, SMALLEST, 1 - SMALLEST)
    return np.asarray(np.log(probability) - np.log1p(-probability))


# How well a statistic separates members from non-members: AUC, and true positives at few false ones; intervals.

FALSE_POSITIVES = 0.01
"""Largest share of non-members that may be taken for members (Carlini et al. 2022)."""
REPLICATES, LEVEL, SEED = 1000, 0.95, 0
NUMBERS = 5_000_000
"""Numbers in memory together: weights of the pairs of several replicates."""


@dataclass(frozen=True)
class Success:
    """Success of an attack, pooled over its targets; NaN without members or without non-members.

    Attributes:
        auc: probability that a member has the larger statistic than a non-member; equal ones count half.
        tpr: share of the members above the lowest threshold that at most `FALSE_POSITIVES` of the non-members exceed.
        fpr: the share of the non-members that do.
        auc_low, auc_high, tpr_low, tpr_high: bootstrap interval over people, given the trained models.
        members, non_members: pairs of a subject and a target.
        runs: targets.
    """

    auc: float
    auc_low: float
    auc_high: float
    tpr: float
    tpr_low: float
    tpr_high: float
    fpr: float
    members: int
    non_members: int
    runs: int


def success(statistic: Float64, member: BoolArray, non_member: BoolArray, group: IntArray) -> Success:
    """Success of an attack on all targets with one threshold.

    It should find the members (R, F, n) and not the non-members (R, F, n), by a statistic (R, F, n): a subject without
    one (NaN) does not count. The bootstrap draws a group (n,) together.
    """
    counted = np.isfinite(statistic) & (member | non_member)
    inside, people = member[counted], np.broadcast_to(group, statistic.shape)[counted]
    runs = int(counted.any(axis=-1).sum())
    sizes = {"members": int(inside.sum()), "non_members": int((~inside).sum()), "runs": runs}
    if not sizes["members"] or not sizes["non_members"]:
        return Success(*np.full(7, np.nan).tolist(), **sizes)
    order = np.argsort(-statistic[counted], kind="stable")
    ranked = statistic[counted][order]
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    curve = _Curve(inside[order].astype(np.float64), people[order], last)
    (auc,), (tpr,), (fpr,) = curve.read(np.ones((1, int(group.max()) + 1)))
    read = [curve.read(weights)[:2] for weights in _replicates(np.unique(people), len(group), len(people))]
    tail = (1 - LEVEL) / 2
    lows, highs = np.nanquantile(np.concatenate(read, axis=1), [tail, 1 - tail], axis=1)
    return Success(
        float(auc), float(lows[0]), float(highs[0]), float(tpr), float(lows[1]), float(highs[1]), float(fpr), **sizes
    )  # fmt: skip


def _replicates(groups: IntArray, size: int, pairs: int) -> Iterator[Float64]:
    """(b, size) how often each group is drawn in some replicates of so many pairs, until there are `REPLICATES`."""
    rng = np.random.default_rng(SEED)
    at_once = max(1, NUMBERS // pairs)
    for start in range(0, REPLICATES, at_once):
        drawn = np.zeros((min(at_once, REPLICATES - start), size))
        drawn[:, groups] = rng.multinomial(len(groups), np.full(len(groups), 1 / len(groups)), size=len(drawn))
        yield drawn


@dataclass(frozen=True)
class _Curve:
    """Pairs in descending order of the statistic: 1 for a member, their groups, last positions of distinct values."""

    inside: Float64
    people: IntArray
    last: NDArray[np.intp]

    def read(self, weights: Float64) -> Float64:
        """(3, b) AUC, true and false positives if every group counts as often as `weights` (b, groups) say."""
        own = weights[:, self.people]
        true, false = (self._rates(own * part) for part in (self.inside, 1 - self.inside))
        auc = (np.diff(false, axis=1) * (true[:, 1:] + true[:, :-1])).sum(axis=1) / 2
        few = (false <= FALSE_POSITIVES + 1e-12).sum(axis=1) - 1
        rows = np.arange(len(weights))
        return np.where(np.isfinite(auc), np.stack([auc, true[rows, few], false[rows, few]]), np.nan)

    def _rates(self, weights: Float64) -> Float64:
        """(b, thresholds + 1) share of the weights above each threshold, from 0 to 1; NaN if there is no weight."""
        sums = np.cumsum(weights, axis=1)[:, self.last]
        total = sums[:, -1:]
        rates = np.divide(sums, total, out=np.full_like(sums, np.nan), where=total > 0)
        return np.concatenate([np.zeros((len(rates), 1)), rates], axis=1)


# The audit of an experiment: what the scores of every variant reveal of who trained it.

LIRA, LOSS, OTHERS = "lira", "loss", "-others"
"""Attacks by name; with the suffix the same attack on people of whom none trained the model."""
PUBLIC = "-public"
"""Suffix of the attacks on training subjects that are public, whose membership is no secret; those without are then on
the private ones."""
COLUMNS = ("variant", "attack", *(field.name for field in fields(Success)))


def audit_experiment(
    runs: Sequence[tuple[str, int]], predictions: Sequence[str], members: Sequence[str], included: str, output: str
) -> None:
    """Write `COLUMNS`, a row a variant and attack; a variant whose method scores no training subject has none.

    `members` are tables of the scores of training subjects, with `public`; `included` has `twin_group`.
    """
    people = read_table(included, ["subject", "twin_group"])
    groups = dict(zip(people["subject"], people["twin_group"], strict=True))
    tested, trained = read_predictions(runs, predictions), read_predictions(runs, members, ["public"])
    rows = []
    for variant in dict.fromkeys(name for name, _ in runs):
        own = trained[trained["variant"] == variant]
        if len(own):
            scored = tested[tested["variant"] == variant]
            public = own["public"].to_numpy(bool)
            attacks = list(audit(shadow_runs(scored, own[~public], groups)))
            if public.any():
                of_public = audit(shadow_runs(scored, own[public], groups))
                attacks += [(f"{name}{PUBLIC}", each) for name, each in of_public if not name.endswith(OTHERS)]
            rows += [{"variant": variant, "attack": name} | asdict(each) for name, each in attacks]
    write_tsv(output, pd.DataFrame(rows, columns=list(COLUMNS)))


def audit(runs: ShadowRuns) -> Iterator[tuple[str, Success]]:
    """Name and success of every attack, and of every attack on other people.

    LiRA needs shadow models of another split, and other people need that split. With one repeat, or where all repeats
    hold out the same people together (leave-one-site-out), there is the loss threshold alone: the shadow models of a
    subject would lack its whole site, and LiRA would find the site.
    """
    others = other_people(runs)
    split_anew = all(mask.any() for mask in others)
    attacks = {LIRA: likelihood_ratio(runs)} if split_anew else {}
    attacks[LOSS] = loss_threshold(runs)
    for name, statistic in attacks.items():
        yield name, success(statistic, runs.trained, runs.held_out, runs.group)
    if split_anew:
        for name, statistic in attacks.items():
            yield name + OTHERS, success(statistic, *others, runs.group)


def other_people(runs: ShadowRuns) -> tuple[BoolArray, BoolArray]:
    """(R, F, n) two groups of people of whom none trained the model: a sound attack has an AUC of 0.5 on them.

    They are parted by the same fold of the next repeat: those who trained there, and those who were held out.
    """
    following = np.roll(np.arange(runs.repeats), -1)
    return runs.held_out & runs.trained[following], runs.held_out & runs.held_out[following]
