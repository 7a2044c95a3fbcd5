"""Learning curves: test loss and test accuracy after every round; all methods in grey, the strongest in colour."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.reporting.charts.curves import Curves, curve_layers
from brainfed.reporting.charts.style import shown_ones
from brainfed.reporting.figures.histories import CURVES
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import Groups, ShownVariant, by_family, places

WIDTH, HEIGHT = 330, 300
"""Pixels of a panel."""
STEEP = 30
"""Ratio of the largest to the smallest loss above which the axis is logarithmic."""
MOST_POINTS = 60
"""Points of a curve; of more rounds, evenly chosen ones and the last are drawn."""
DEFAULT = places()
"""Words and colours of a cohort of patients and controls."""
EPOCHS = "local epochs or rounds"


def learning_chart(
    history: pd.DataFrame,
    variants: Sequence[ShownVariant],
    front: Sequence[ShownVariant],
    groups: Groups = DEFAULT,
    classes: int = 2,
) -> alt.TopLevelMixin | None:
    """Two panels of all methods, mean over runs and one standard deviation; None if no method trains in rounds.

    Args:
        history: as `read_history` returns it.
        variants: in any order; those without curves are left out.
        front: those in colour; their training loss is dashed.
        groups: places of training.
        classes: their number; the dotted line is one over it.
    """
    shown = [variant for variant in by_family(variants) if (history["variant"] == variant.name).any()]
    if not shown:
        return None
    table = pd.concat([_points(history[history["variant"] == variant.name], variant) for variant in shown])
    coloured = [variant for variant in front if variant in shown]
    notes = {
        variant.name: f"accuracy {rows['test_accuracy_shown'].iloc[-1]}"
        for variant in coloured
        if len(rows := table[table["variant"] == variant.name])
    }
    tip = ("method", EPOCHS, "test loss", "training loss", "test accuracy")
    losses = table[["training_loss", "test_loss"]].to_numpy(dtype=np.float64)
    positive = losses[np.isfinite(losses) & (losses > 0)]
    steep = len(positive) > 0 and float(positive.max()) > STEEP * max(float(np.quantile(positive, 0.05)), 1e-3)
    scale = alt.Scale(type="symlog", constant=0.1) if steep else alt.Scale(zero=True)
    x = alt.X("epochs:Q", axis=alt.Axis(title=EPOCHS, tickCount=5), scale=alt.Scale(nice=False))
    loss = curve_layers(
        Curves(table, "epochs", "test_loss", tip, "test_loss_low", "test_loss_high"), shown, coloured, notes, x,
        alt.Y("test_loss:Q", title="test loss (dashed: training loss)", scale=scale),
        groups,
    )  # fmt: skip
    _, kept = shown_ones()
    mine = alt.Chart(table).transform_filter(kept).transform_filter(
        alt.FieldOneOfPredicate("variant", [variant.name for variant in coloured])
    )  # fmt: skip
    training = mine.mark_line(strokeDash=[4, 3], strokeWidth=1.4).encode(
        x=x, y="training_loss:Q", color="variant:N", detail="variant:N"
    )
    accuracy = curve_layers(
        Curves(table, "epochs", "test_accuracy", tip, "test_accuracy_low", "test_accuracy_high"), shown, coloured,
        notes, x, alt.Y("test_accuracy:Q", title="test accuracy", scale=alt.Scale(zero=False)), groups,
    )  # fmt: skip
    chance = alt.Chart(pd.DataFrame({"at": [1 / classes]})).mark_rule(strokeDash=[2, 3], style="soft").encode(y="at:Q")
    panels = [
        alt.layer(*layers).properties(width=WIDTH, height=HEIGHT) for layers in ([training, *loss], [chance, *accuracy])
    ]
    return alt.hconcat(*panels, spacing=40).add_params(shown_ones()[0])


def _points(history: pd.DataFrame, variant: ShownVariant) -> pd.DataFrame:
    """Mean and deviation over runs at every drawn point, and their texts."""
    epochs = history["round"] * max(variant.epochs_a_round, 1)
    grouped = history.assign(epochs=epochs).groupby("epochs")[list(CURVES)]
    mean, deviation = grouped.mean(), grouped.std(ddof=1)
    kept = np.unique(np.linspace(0, len(mean) - 1, min(len(mean), MOST_POINTS)).round().astype(int))
    mean, deviation = mean.iloc[kept], deviation.iloc[kept]
    table = pd.DataFrame({"variant": variant.name, "method": variant.title, "epochs": mean.index.to_numpy()})
    table[EPOCHS] = table["epochs"].astype(str)
    for curve in CURVES:
        middle = mean[curve].to_numpy(dtype=np.float64)
        reach = np.nan_to_num(deviation[curve].to_numpy(dtype=np.float64))
        table[curve] = middle.round(4)
        table[f"{curve}_low"], table[f"{curve}_high"] = (middle - reach).round(4), (middle + reach).round(4)
        table[f"{curve}_shown"] = [rounded(value, 2) for value in middle]
        table[curve.replace("_", " ")] = [
            f"{rounded(value, 2)} (sd {rounded(spread, 2)})" for value, spread in zip(middle, reach, strict=True)
        ]
    return table
