"""Charts of the training: learning curves of an experiment, and gain from federation."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.reporting import Groups, Scored, ShownVariant, by_family, places, rounded, signed
from brainfed.reporting.charts._curves import Curves, curve_layers
from brainfed.reporting.charts._style import Panel, height_of, shown_ones, tooltip
from brainfed.runtime import read_table

# Learning curves of all runs.

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


# Gain of institutions from federation: a method minus its own twins, the same model alone and on pooled data.

METRIC = "auc"
SIDES = {"alone": "minus its twin alone", "pooled": "minus its twin on pooled data"}
PANEL, NUMBERS = 300, (8, 58)
"""Pixels of the axis, and from its end to the two columns of numbers."""
SIGNED = "datum.value === 0 ? '0' : format(datum.value, '+.3~f')"
LEAST_RANGE = 0.01
"""The axis reaches this AUC on both sides: a model that equals its twin differs by rounding alone."""


def gain_chart(gain: pd.DataFrame, variants: Sequence[ShownVariant], scored: Scored) -> alt.TopLevelMixin | None:
    """Left the gain over training alone, right over pooled data; None if no federated method has a twin here.

    Args:
        gain: `scores.GAIN_COLUMNS`.
        variants: all variants of the experiment; the federated ones have a row each.
        scored: the runs; they give the mean of a row and its interval.
    """
    shown = [variant for variant in by_family(variants) if (gain["variant"] == variant.name).any()]
    if not shown:
        return None
    twins = {variant.name: variant.title for variant in variants}
    chosen = gain[gain["metric"] == METRIC].dropna(subset=["mean"])
    panels = [_panel(chosen[chosen["against"] == side], side, shown, scored, twins, named=not place)
              for place, side in enumerate(SIDES)]  # fmt: skip
    return alt.hconcat(*panels, spacing=110).add_params(shown_ones()[0])


def _panel(
    gain: pd.DataFrame,
    side: str,
    shown: Sequence[ShownVariant],
    scored: Scored,
    twins: Mapping[str, str],
    *,
    named: bool,
) -> Panel:
    titles = {variant.name: variant.title for variant in shown}
    means = pd.DataFrame([_mean(gain, side, variant, scored, twins) for variant in shown])
    dots = gain[gain["variant"].isin(list(titles))]
    dots = pd.DataFrame(
        {
            "variant": dots["variant"], "method": dots["variant"].map(titles), "institution": dots["institution"],
            "gain": dots["mean"].round(4), "AUC gained": [signed(value) for value in dots["mean"]],
        }
    )  # fmt: skip
    _, kept = shown_ones()
    ends = [-LEAST_RANGE, LEAST_RANGE, *dots["gain"], *means["mean"].dropna()]
    margin = 0.06 * (max(ends) - min(ends))
    across = alt.Scale(domain=[min(ends) - margin, max(ends) + margin], nice=False, zero=False)
    x = alt.X("gain:Q", scale=across, axis=alt.Axis(title=f"AUC {SIDES[side]}", labelExpr=SIGNED, tickCount=6))
    y = alt.Y("method:N", sort=list(titles.values()), axis=alt.Axis(labels=named, title=None, labelPadding=8))
    colour = alt.value(shown[0].colour)
    base, rows = alt.Chart(dots).transform_filter(kept), alt.Chart(means).transform_filter(kept)
    zero = alt.Chart(pd.DataFrame({"gain": [0.0]})).mark_rule(style="soft").encode(x="gain:Q")
    reach = base.mark_rule(strokeWidth=1.2, opacity=0.4).encode(
        x=alt.X("min(gain):Q"), x2="max(gain):Q", y=y, color=colour
    )
    points = base.mark_circle(size=44, opacity=0.55).encode(
        x=x, y=y, color=colour, tooltip=tooltip("method", "institution", "AUC gained")
    )
    held = rows.transform_filter("isValid(datum.mean)")
    diamonds = held.mark_point(shape="diamond", size=95, filled=True, opacity=1, stroke="white", strokeWidth=1).encode(
        x="mean:Q",
        y=y,
        color=colour,
        tooltip=tooltip("method", "twin", "gained", "95 % interval", "better off", "runs"),
    )
    numbers = [
        rows.mark_text(align="left", dx=away).encode(x=alt.value(PANEL), y=y, text=f"{column}:N")
        for away, column in zip(NUMBERS, ("gained", "share"), strict=True)
    ]
    heads = [
        alt.Chart(pd.DataFrame({"words": [words]}))
        .mark_text(align="left", baseline="bottom", dx=away, fontSize=10.5, style="quiet")
        .encode(x=alt.value(PANEL), y=alt.value(-3), text="words:N")
        for away, words in zip(NUMBERS, ("mean", "better off"), strict=True)
    ]
    height = height_of(shown)
    return alt.layer(zero, reach, points, diamonds, *numbers, *heads).properties(width=PANEL, height=height)


def _mean(
    gain: pd.DataFrame, side: str, variant: ShownVariant, scored: Scored, twins: Mapping[str, str]
) -> dict[str, object]:
    """The row of a method: the mean over institutions and runs, without one where it has no such twin."""
    values = gain.loc[gain["variant"] == variant.name, "mean"].to_numpy(dtype=np.float64)
    twin = variant.twin(side).name
    row: dict[str, object] = {"variant": variant.name, "method": variant.title}
    if not twin or not len(values):
        return row | {"mean": None, "gained": "no AUC" if twin else "no twin", "share": ""}
    found = scored.difference(variant.name, twin, METRIC)
    better = int((values > 0).sum())
    share = ("equal", "equal in all runs")
    if not found.nothing:
        share = (f"{better}/{len(values)}", f"{better} of {len(values)} institutions")
    return row | {
        "mean": round(found.mean, 4), "gained": signed(found.mean, found.digits), "share": share[0],
        "better off": share[1], "twin": twins[twin], "runs": found.counted,
        "95 % interval": found.bounds if found.known else "unknown",
    }  # fmt: skip


# Learning curves: test loss and test accuracy after every round; all methods in grey, the strongest in colour.

LEARNING_WIDTH, LEARNING_HEIGHT = 330, 300
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
        alt.layer(*layers).properties(width=LEARNING_WIDTH, height=LEARNING_HEIGHT)
        for layers in ([training, *loss], [chance, *accuracy])
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
