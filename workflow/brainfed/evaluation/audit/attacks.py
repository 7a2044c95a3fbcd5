"""Attacks on membership: did this subject train this model? The larger the statistic, the likelier.

Both need what a server, an institution or a reader of predictions can have: the scores of a subject and its label.
"""

import numpy as np

from brainfed.evaluation.audit.shadow_runs import Float64, ShadowRuns

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
    found = np.full(runs.trained.shape, np.nan)
    for repeat in range(runs.repeats):
        own = runs.of_label(confidence, repeat)
        shadow = held_out.copy()
        shadow[repeat] = False
        count = shadow.sum(axis=(0, 1))
        mean = np.where(shadow, own, 0).sum(axis=(0, 1)) / np.where(count, count, np.nan)
        deviation = float(own[shadow].std()) if shadow.any() else np.nan
        found[repeat] = (own[repeat] - mean) / (deviation or 1.0)
    return found


def confidences(runs: ShadowRuns) -> Float64:
    """(R, F, n, C) in every class: the logit of its probability, or its margin minus the largest of the others."""
    if runs.kind == "margin":
        return np.stack([_lead(runs.scores, code) for code in range(runs.scores.shape[-1])], axis=-1)
    held = np.clip(runs.scores, SMALLEST, 1 - SMALLEST)
    return np.asarray(np.log(held) - np.log1p(-held))


def _lead(margins: Float64, code: int) -> Float64:
    return np.asarray(margins[..., code] - np.delete(margins, code, axis=-1).max(axis=-1))
