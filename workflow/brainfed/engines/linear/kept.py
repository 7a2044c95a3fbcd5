"""The model of a federated ridge regression that is kept: scaling, weights and intercepts of one fold.

The score of class k is w_k z + b_k for z = scale (x - mean) / deviation, of features of one view.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from brainfed.engines.linear._design import Curves
from brainfed.runtime import Float32
from brainfed.samples import Arrays, FittedModel, Scaling, Scored, of_two_classes


def kept_ridge(scaling: Scaling, curves: Curves) -> FittedModel:
    """The model of one fold.

    Raises:
        ValueError: the features have several views.
    """
    if len(scaling.views) > 1 or len(scaling.views[0].means) > 1:
        raise ValueError("expected features of one view with one mean, found several")
    (own,) = scaling.views
    return FittedModel(
        {
            "mean": own.means[0],
            "deviation": own.deviation,
            "scale": np.array(own.scale),
            "weights": curves.weights,
            "intercepts": curves.intercepts,
        }
    )


def score(model: Arrays, features: Float32, _settings: Mapping[str, Any]) -> Scored:
    """Margins (n, C) of features (n, d)."""
    rows = model["scale"] * ((features - model["mean"]) / model["deviation"])
    margins = rows @ model["weights"].T + model["intercepts"]
    return Scored(of_two_classes(margins[:, 0], "margin") if margins.shape[1] == 1 else margins, rows)
