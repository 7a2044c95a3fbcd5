"""Choice of the weight decay and of the number of rounds on training subjects, for any stacked training.

The networks of fold f are trained without the subjects of fold f + 1 as well (the last fold is followed by the first),
once a candidate. Folds keep twins together. Each institution sends the mean log loss of its held-out subjects after
every round, one number a candidate and round. The smallest mean over institutions chooses for all; where no model is
shared, every institution chooses for itself. The test fold takes no part. Features that are fitted in each fold have
seen its held-out subjects, with recursive feature elimination also their labels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from brainfed.engines.stacked.training import StackedTraining
from brainfed.engines.training import train_by_round
from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import record_downloads, record_uploads
from brainfed.runtime.arrays import Float64, IntArray
from brainfed.samples.inputs import MethodInputs, Outcome
from brainfed.samples.labelled_subjects import HIDDEN

Row = Mapping[str, int | str]


def train_chosen(training: StackedTraining, decays: Sequence[float]) -> Outcome:
    """Train with the weight decay and the number of rounds that held-out training subjects choose in each fold.

    Args:
        training: of the method, three folds or more; its own weight decay is not used.
        decays: candidates, ascending.

    Returns:
        See `train_networks`; the scores are those after the chosen round, the curves those of the chosen weight decay.
    """
    inputs = training.inputs
    inner = replace(training, inputs=inner_inputs(inputs))
    tried = [_with_decay(inner, decay, f"inner-{index}")[0] for index, decay in enumerate(decays)]
    losses = np.stack([held_out_losses(inputs, outcome) for outcome in tried])
    chosen = chosen_candidates(losses, alone=training.topology == "local")
    trained = {
        index: _with_decay(training, decays[index], f"chosen-{index}") for index in np.unique(chosen[0]).tolist()
    }
    outcomes = [outcome for outcome, _ in trained.values()]
    crossings = _added([*(each.crossings for each in tried), outcomes[0].crossings])
    joined = _joined(inputs, trained, chosen, (*crossings, *_validation_rows(training, losses)))
    spent = sum(outcome.counts["first_layer_operations"] for outcome in (*tried, *outcomes))
    return replace(joined, counts={**joined.counts, "first_layer_operations": spent})


def inner_inputs(inputs: MethodInputs) -> MethodInputs:
    """The same inputs, in which fold f tests the subjects of fold f + 1; the labels of both are hidden."""
    following = (np.arange(inputs.folds)[:, None] + 1) % inputs.folds
    return replace(
        inputs,
        fold=np.where(inputs.fold < 0, inputs.fold, (inputs.fold - 1) % inputs.folds),
        labels=np.where(inputs.fold == following, HIDDEN, inputs.labels),
    )


def held_out_losses(inputs: MethodInputs, outcome: Outcome) -> Float64:
    """(T, M, F) mean log loss of each institution's held-out subjects after every round; NaN without such subjects."""
    assert outcome.round_scores is not None
    rounds = len(outcome.round_scores)
    losses = np.full((rounds, len(inputs.institutions), inputs.folds), np.nan)
    for fold in range(inputs.folds):
        held_out = inputs.tested((fold + 1) % inputs.folds)
        for code in range(len(inputs.institutions)):
            own = np.flatnonzero(held_out & (inputs.institution == code))
            scores = outcome.round_scores[:, fold, own, inputs.labels[fold, own]]
            if len(own):
                losses[:, code, fold] = -np.log(np.clip(scores, 1e-12, None)).mean(axis=1)
    return losses


def chosen_candidates(losses: Float64, *, alone: bool) -> IntArray:
    """(2, M, F) candidate and round of the smallest loss: of each institution, or of the mean over institutions.

    An institution that chooses for itself and has no finite loss takes the first candidate and the last round. Of equal
    losses the earliest candidate and round.

    Args:
        losses: (K, T, M, F).
        alone: whether every institution chooses for itself.
    """
    candidates, rounds, institutions, folds = losses.shape
    chosen = np.zeros((2, institutions, folds), dtype=np.int64)
    for fold in range(folds):
        for code in range(institutions):
            own = losses[:, :, code, fold]
            if alone and not np.isfinite(own).any():
                chosen[:, code, fold] = 0, rounds - 1
                continue
            if not alone:
                known = np.isfinite(losses[:, :, :, fold]).any(axis=(0, 1))
                own = losses[:, :, known, fold].mean(axis=2) if known.any() else np.zeros((candidates, rounds))
            best = int(np.where(np.isfinite(own), own, np.inf).argmin())
            chosen[:, code, fold] = divmod(best, rounds)
    return chosen


def _with_decay(training: StackedTraining, decay: float, part: str) -> tuple[Outcome, Float64]:
    run = replace(training.run, checkpoint=training.run.checkpoint.part(part))
    return train_by_round(replace(training, schedule=replace(training.schedule, weight_decay=decay), run=run))


def _joined(
    inputs: MethodInputs,
    trained: Mapping[int, tuple[Outcome, Float64]],
    chosen: IntArray,
    crossings: tuple[dict[str, int | str], ...],
) -> Outcome:
    """The scores, curves and losses of each institution's choice in each fold."""
    first, _ = next(iter(trained.values()))
    assert first.round_scores is not None and first.training_loss is not None
    scores, curves, losses = np.full_like(first.scores, np.nan), first.round_scores.copy(), first.training_loss.copy()
    member_scores = scores.copy()
    for fold in range(inputs.folds):
        for code in range(len(inputs.institutions)):
            own, taught = (mask & (inputs.institution == code) for mask in (inputs.tested(fold), inputs.training(fold)))
            candidate, number = chosen[:, code, fold].tolist()
            outcome, members = trained[candidate]
            assert outcome.round_scores is not None and outcome.training_loss is not None
            curves[:, fold, own] = outcome.round_scores[:, fold, own]
            losses[:, code, fold] = outcome.training_loss[:, code, fold]
            # Without a global model an unseen institution has scores after the last round alone.
            known = bool(np.isfinite(curves[number, fold, own]).all())
            scores[fold, own] = curves[number if known else -1, fold, own]
            member_scores[fold, taught] = members[number, fold, taught]
    return replace(
        first,
        scores=scores,
        round_scores=curves,
        training_loss=losses,
        crossings=crossings,
        member_scores=member_scores,
        models=(),
    )


def _added(every: Sequence[Sequence[Row]]) -> tuple[dict[str, int | str], ...]:
    """Rows of several trainings, those of one kind of tensor added; what subjects sent once is not sent again."""
    added: dict[tuple[str, str], dict[str, int | str]] = {}
    for rows in every:
        for row in rows:
            key = str(row["name"]), str(row["direction"])
            if key not in added:
                added[key] = dict(row)
            elif "subjects" not in str(row["axes"]).split(" x "):
                for count in ("tensors", "rounds", "bytes"):
                    added[key][count] = int(added[key][count]) + int(row[count])
    return tuple(added[key] for key in sorted(added))


def _validation_rows(training: StackedTraining, losses: Float64) -> tuple[dict[str, int | str], ...]:
    """Every institution with held-out subjects sends its losses in the first fold, and receives the choice."""
    if training.topology != "federated":
        return ()
    candidates, rounds = losses.shape[:2]
    ledger = Ledger(training.shared_tensors, {"candidates": candidates, "rounds": rounds, "chosen": 2})
    inputs = training.inputs
    sizes = {code: len(inputs.members(code)) for code in range(len(inputs.institutions))}
    senders = {code: size for code, size in sizes.items() if np.isfinite(losses[0, 0, code, 0])}
    record_uploads(ledger, senders, {"validation-loss": ((candidates, rounds), 8)})
    record_downloads(ledger, sizes, {"choice": ((2,), 8)})
    return ledger.rows()
