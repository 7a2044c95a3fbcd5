"""Scores of made-up methods: runs around a mean."""

import numpy as np
import pandas as pd

WOBBLE = np.array([-0.02, -0.01, 0.0, 0.01, 0.02, -0.02, -0.01, 0.0, 0.01, 0.02])


def runs_of(**values):
    """Institution AUCs of ten runs: each variant its mean and a wobble of its own."""
    return pd.DataFrame(
        [
            (variant.replace("_", "-"), index // 5, index % 5, "institution", "auc", mean + wobble)
            for number, (variant, mean) in enumerate(values.items())
            for index, wobble in enumerate(np.roll(WOBBLE, number))
        ],
        columns=["variant", "repeat", "fold", "scope", "metric", "value"],
    )
