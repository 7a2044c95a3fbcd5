"""Rows of federated logistic regression: standardised at home, scaled by one number that the institutions sum.

Training subjects have the mean squared norm 1, as in `methods.linear._dual`: a penalty and a step then mean the same
for any number of features.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor

from brainfed.engines.stacked import members, record_moments, score_alone
from brainfed.federation import Ledger, add_up, record_downloads, record_uploads
from brainfed.models import LogisticRegression
from brainfed.runtime import BoolArray, Float32, Float64, IntArray
from brainfed.runtime.jobs import Run
from brainfed.samples import Arrays, FittedModel, MethodInputs, Scored, of_two_classes, with_alike_shared

NUMBER = ((), 8)
"""Shape and bytes of a float64 number on the wire."""
COUNT = ((), 4)


@dataclass(frozen=True)
class Design:
    """The subjects of one institution in one fold.

    Attributes:
        nodes: positions of its subjects.
        training: (n,) mask of those with a label.
        rows: (n, d).
        unit: (d,) units of the rows in those of the features; 0 of a constant feature.
        mean: (d,) of the features.
        divisor: (d,) of the centred features; infinite of a constant one.
    """

    nodes: IntArray
    training: BoolArray
    rows: Tensor
    unit: Tensor
    mean: Tensor
    divisor: Tensor


def designs(
    inputs: MethodInputs, fold: int, standardise: Literal["institution", "none"], run: Run, ledger: Ledger
) -> tuple[Design, ...]:
    """The institutions in one fold.

    With `standardise: none` the mean of all training subjects, which is summed too, is subtracted. An institution
    without training subjects takes the mean of the others' moments.
    """
    groups = [inputs.members(place) for place in range(len(inputs.institutions))]
    scaled = members(inputs, groups, [fold], ledger, standardise=standardise == "institution")
    features, dtype = inputs.fold_features(fold), getattr(torch, run.precision)
    rows, masks, units = [], [], []
    for member in scaled:
        own = torch.from_numpy(features[member.nodes]).to(run.device, dtype)
        if member.mean is not None and member.sd is not None:
            own = (own - torch.from_numpy(member.mean[0]).to(own)) / torch.from_numpy(member.sd[0]).to(own)
        unit = torch.ones(own.shape[1], dtype=torch.float64) if member.sd is None else torch.from_numpy(member.sd[0])
        units.append(unit.where(unit.isfinite(), torch.zeros_like(unit)).to(run.device))
        rows.append(own)
        masks.append(inputs.training(fold)[member.nodes])
    seen = {code: int(mask.sum()) for code, mask in enumerate(masks) if mask.any()}
    subjects = {code: len(member.nodes) for code, member in enumerate(scaled) if len(member.nodes)}
    trained, own_sums = {code: subjects[code] for code in seen}, {"training-subjects": np.array(sum(seen.values()))}
    record_uploads(ledger, trained, {"training-subjects": COUNT, "squared-norm": NUMBER})
    record_downloads(ledger, subjects, {"squared-norm": NUMBER})
    if standardise == "institution" and inputs.unseen.any():
        record_moments(inputs, fold, ledger, subjects)
    if standardise == "none":
        content = {"feature-sum": ((features.shape[1],), 8)}
        record_uploads(ledger, trained, content)
        record_downloads(ledger, subjects, content)
        sums = [own[torch.from_numpy(mask)].double().sum(dim=0) for own, mask in zip(rows, masks, strict=True)]
        own_sums["feature-sum"] = torch.stack(sums).sum(dim=0).cpu().numpy()
    total = add_up(inputs.link, ledger, len(inputs.subjects), own_sums)
    count, mean = int(total["training-subjects"]), torch.zeros(features.shape[1])
    if standardise == "none":
        mean = torch.from_numpy(total["feature-sum"] / count)
        rows = [own - mean.to(own) for own in rows]
    own_squares = np.array(sum((float(rows[code][masks[code]].double().square().sum()) for code in seen), 0.0))
    squares = add_up(inputs.link, ledger, len(inputs.subjects), {"squared-norm": own_squares})["squared-norm"]
    norm = (float(squares) / count) ** 0.5 or 1.0
    means = [mean if member.mean is None else torch.from_numpy(member.mean[0]) for member in scaled]
    sds = [torch.ones_like(mean) if member.sd is None else torch.from_numpy(member.sd[0]) for member in scaled]
    parts = zip(scaled, masks, rows, units, means, sds, strict=True)
    return tuple(
        Design(member.nodes, mask, own / norm, norm * unit, centre, norm * sd)
        for member, mask, own, unit, centre, sd in parts
    )


# Patterns of federated logistic regression (Haufe et al. 2014, eq. 6), from one more sum over institutions.
#
# The rows x of the training subjects have mean 0 over all institutions. Of the scores m = x'w an institution sends the
# sums of m and m^2, that of m x in the units of its own features, and its numbers of subjects by class. With the totals
# over N subjects
#
#     A = sum m x / (N sd(m)),        sd(m)^2 = sum m^2 / N - (sum m / N)^2
#
# is the change of every feature, without differences between institutions, for one standard deviation of the score.

MARGIN_SUMS = ("margin-sum", "squared-margin-sum", "feature-margin-sum")
"""Names on the wire; their shapes are those of the results of `margin_sums`."""


def margin_sums(design: Design, weight: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over the training subjects of an institution, float64.

    Args:
        weight: (P, d) of the models.

    Returns:
        Of the scores (P,), of their squares (P,), and of their products with the features (P, d).
    """
    rows = design.rows[torch.from_numpy(design.training)].double()
    scores = rows @ weight.double().T
    return scores.sum(dim=0), scores.square().sum(dim=0), (scores.T @ rows) * design.unit


def haufe_patterns(sums: Mapping[str, Float64]) -> Float64:
    """Patterns (P, d) from the sums of all institutions; 0 of a model without two classes to separate.

    Args:
        sums: those of `MARGIN_SUMS`; `training-subjects`, a number; `class-counts` (P,), how many have the class of
            each model. Where none or all have it, what is left of the score is the optimiser's last step.
    """
    count, positives = float(sums["training-subjects"]), sums["class-counts"]
    total, squares, products = (sums[name] for name in MARGIN_SUMS)
    deviation = np.sqrt(np.maximum(squares / count - (total / count) ** 2, 0.0))
    learnt = (positives > 0) & (positives < count) & (deviation > 0)
    return np.where(learnt[:, None], products / (count * np.where(learnt, deviation, 1.0)[:, None]), 0.0)


# The kept model of federated logistic regression, and scores of new patients by it.
#
# The rows are (x - mean) / sd / norm; of two classes p = sigmoid(w z + b), of more each class against the rest, divided
# by their sum.


def kept_logistic(designs: Sequence[Design], weight: Tensor, bias: Tensor) -> FittedModel:
    """The model of one fold of `solver: lbfgs`.

    Args:
        weight: (P, d).
        bias: (P,).
    """
    moments = {name: np.stack([getattr(own, name).cpu().numpy() for own in designs]) for name in ("mean", "divisor")}
    return with_alike_shared({"weight": weight.cpu().numpy(), "bias": bias.cpu().numpy()}, moments)


def score(model: Arrays, features: Float32, settings: Mapping[str, Any]) -> Scored:
    """Probabilities (n, C) of features (n, d)."""
    if settings["solver"] == "fedavg":
        dimensions, classes = model["weight-0"].shape
        return score_alone(LogisticRegression(dimensions, classes), model, features)
    rows = (features - model["mean"].astype(np.float64)) / model["divisor"]
    shares = expit(rows @ model["weight"].T.astype(np.float64) + model["bias"])
    if shares.shape[1] == 1:
        return Scored(of_two_classes(shares[:, 0], "probability"), rows)
    return Scored(shares / shares.sum(axis=1, keepdims=True), rows)
