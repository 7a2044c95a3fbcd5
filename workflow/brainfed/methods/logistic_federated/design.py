"""Rows of federated logistic regression: standardised at home, scaled by one number that the institutions sum.

Training subjects have the mean squared norm 1, as in `methods.linear.dual`: a penalty and a step then mean the same for
any number of features.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.stacked.stack import Member, members, record_moments
from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import add_up, record_downloads, record_uploads
from brainfed.runtime.jobs.run import Run
from brainfed.samples.inputs import MethodInputs

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

    nodes: NDArray[np.int64]
    training: NDArray[np.bool_]
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
    found = members(inputs, [fold], ledger, pooled=False, standardise=standardise == "institution")
    features, dtype = inputs.fold_features(fold), getattr(torch, run.precision)
    rows, masks, units = [], [], []
    for member in found:
        own = torch.from_numpy(features[member.nodes]).to(run.device, dtype)
        if member.mean is not None and member.sd is not None:
            own = (own - torch.from_numpy(member.mean[0]).to(own)) / torch.from_numpy(member.sd[0]).to(own)
        unit = torch.ones(own.shape[1], dtype=torch.float64) if member.sd is None else torch.from_numpy(member.sd[0])
        units.append(unit.where(unit.isfinite(), torch.zeros_like(unit)).to(run.device))
        rows.append(own)
        masks.append(inputs.training(fold)[member.nodes])
    seen = {code: int(mask.sum()) for code, mask in enumerate(masks) if mask.any()}
    subjects = {code: len(member.nodes) for code, member in enumerate(found) if len(member.nodes)}
    _record(ledger, {code: subjects[code] for code in seen}, subjects, features.shape[1], standardise)
    if standardise == "institution" and inputs.unseen.any():
        record_moments(inputs, fold, ledger, subjects)
    own_sums = {"training-subjects": np.array(sum(seen.values()))}
    if standardise == "none":
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
    means = [mean if member.mean is None else torch.from_numpy(member.mean[0]) for member in found]
    parts = zip(found, masks, rows, units, means, strict=True)
    return tuple(
        Design(member.nodes, mask, own / norm, norm * unit, centre, norm * _deviation(member, centre))
        for member, mask, own, unit, centre in parts
    )


def _deviation(member: Member, like: Tensor) -> Tensor:
    return torch.ones_like(like) if member.sd is None else torch.from_numpy(member.sd[0])


def _record(ledger: Ledger, seen: dict[int, int], subjects: dict[int, int], features: int, standardise: str) -> None:
    record_uploads(ledger, seen, {"training-subjects": COUNT, "squared-norm": NUMBER})
    record_downloads(ledger, subjects, {"squared-norm": NUMBER})
    if standardise == "none":
        vector = ((features,), 8)
        record_uploads(ledger, seen, {"feature-sum": vector})
        record_downloads(ledger, subjects, {"feature-sum": vector})
