"""Learning curves of all runs, as figures and charts read them."""

from collections.abc import Sequence

import pandas as pd

from brainfed.runtime.artefacts import read_table

CURVES = ("training_loss", "test_loss", "test_accuracy")


def read_history(files: Sequence[tuple[str, int, str]]) -> pd.DataFrame:
    """Curves of all runs, averaged over institutions.

    Args:
        files: (variant, repeat, path of its history).

    Returns:
        variant, repeat, fold, round, training_loss, test_loss, test_accuracy; methods without rounds have no row.
    """
    parts = []
    for variant, repeat, path in files:
        history = read_table(path, ["fold", "institution", "round", *CURVES])
        means = history.groupby(["fold", "round"])[list(CURVES)].mean().reset_index()
        parts.append(means.assign(variant=variant, repeat=repeat))
    return pd.concat(parts, ignore_index=True)
