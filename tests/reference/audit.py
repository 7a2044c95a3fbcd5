"""Membership inference by the formulas, a subject and a pair at a time.

A model is a dictionary: `repeat`, `members` and `others`, both subject -> (scores of all classes, label).
"""

from math import log

import numpy as np
from scipy.stats import norm


def confidence(scores, label, kind):
    """Carlini et al. 2022: log(p / (1 - p)) of the true class, or its lead over the best other class."""
    if kind == "margin":
        return scores[label] - max(score for code, score in enumerate(scores) if code != label)
    rest = sum(score for code, score in enumerate(scores) if code != label)
    return log(scores[label]) - log(rest)


def lira(models, kind):
    """Pairs (subject, whether it is a member, statistic) of offline LiRA on every model, by all of other repeats."""
    found = []
    for target in models:
        shadows = [model for model in models if model["repeat"] != target["repeat"]]
        everybody = target["members"] | target["others"]
        out = {
            subject: [confidence(model["others"][subject][0], label, kind)
                      for model in shadows if subject in model["others"]]
            for subject, (_, label) in everybody.items()
        }  # fmt: skip
        deviation = np.std([value for values in out.values() for value in values])
        for subject, (scores, label) in everybody.items():
            if out[subject]:
                chance = norm(np.mean(out[subject]), deviation).cdf(confidence(scores, label, kind))
                found.append((subject, subject in target["members"], chance))
    return found


def loss(models, kind):
    """The same by the loss of the true class (Yeom et al. 2018)."""
    return [
        (subject, subject in target["members"], -((1 - scores[label]) ** 2) if kind == "margin" else log(scores[label]))
        for target in models
        for subject, (scores, label) in (target["members"] | target["others"]).items()
    ]


def auc(pairs):
    """Share of pairs of a member and a non-member in which the member has the larger value."""
    inside = [value for _, member, value in pairs if member]
    outside = [value for _, member, value in pairs if not member]
    return np.mean([(one > other) + (one == other) / 2 for one in inside for other in outside])


def true_positives(pairs, allowed=0.01):
    """Largest share of members above a threshold that at most the share `allowed` of the non-members exceeds."""
    inside = [value for _, member, value in pairs if member]
    outside = [value for _, member, value in pairs if not member]
    thresholds = [t for t in {*inside, *outside} if np.mean([value >= t for value in outside]) <= allowed]
    return max((np.mean([value >= t for value in inside]) for t in thresholds), default=0.0)
