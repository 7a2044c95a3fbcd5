"""Lines of scores: over a setting, over the rounds of a training, and between a method and its twins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brainfed.reporting import FAINT, INK, Groups, Interval, Scored, ShownVariant, by_family, places, rounded, signed
from brainfed.reporting.charts._curves import Curves, curve_layers
from brainfed.reporting.charts._style import Panel, height_of, shown_ones, tooltip
from brainfed.runtime import read_table

SOLID, DASHED = (1, 0), (5, 3)
LEVELS = ((4, 2), (1, 2), (6, 2, 1, 2), (2, 2))
"""Dashes of level lines."""
SIDEWAYS = 0.012
"""Share of the axis between points of two lines at one value."""


@dataclass(frozen=True)
class DrawnLine:
    """One line, or a single mark.

    Attributes:
        title: in the legend; unique in a chart.
        colour: of line and marks.
        points: places on the axis, and the score at each.
        shape: of its marks; empty: it has none.
        dash: lengths of its strokes and gaps.
        band: whether its intervals are a band; else bars.
        width: of the line, pixels.
    """

    title: str
    colour: str
    points: Sequence[tuple[float, Interval]]
    shape: str = ""
    dash: tuple[int, ...] = SOLID
    band: bool = False
    width: float = 1.8


def sure(value: float) -> Interval:
    """A number without an interval."""
    return Interval(value, np.nan, np.nan, 0)


def level(number: int, title: str, value: float, ends: tuple[float, float]) -> DrawnLine:
    """The level line of what does not depend on the setting; its dash is that of its number."""
    return DrawnLine(title, FAINT, [(end, sure(value)) for end in ends], dash=LEVELS[number % len(LEVELS)], width=1.3)


def lines_panel(
    lines: Sequence[DrawnLine],
    across: str | list[str],
    upwards: str,
    *,
    width: int,
    height: int,
    ticks: Mapping[float, str] | None = None,
    log: bool = False,
    domain: tuple[float, float] | None = None,
    per_cent: bool = False,
    columns: int = 3,
    printed: tuple[float, float] | None = None,
    key: Sequence[DrawnLine] = (),
    aside: bool = True,
) -> Panel:
    """One panel of lines, with its legend below.

    Args:
        lines: in the order of the legend.
        across: title of the horizontal axis.
        upwards: title of the vertical axis.
        width: pixels.
        height: pixels.
        ticks: value on the horizontal axis -> its words; None: any.
        log: whether that axis is logarithmic.
        domain: ends of the vertical axis; None: all points and intervals.
        per_cent: whether its labels are.
        columns: of the legend.
        printed: place and value of the hollow diamond of a paper's number; None: there is none.
        key: lines of the legend, if other panels have more of them.
        aside: whether marks of several lines at one place stand side by side.
    """
    table = _table(lines, log=log, aside=aside)
    named = list({line.title: line for line in [*key, *lines]}.values())
    titles = [line.title for line in named]

    def scale(values: Sequence[Any]) -> alt.Scale:
        return alt.Scale(domain=titles, range=list(values))

    legend = alt.Legend(
        title=None,
        orient="bottom",
        columns=columns,
        labelLimit=460,
        symbolSize=70,
        symbolOpacity=1,
    )
    colour = alt.Color("series:N", scale=scale([line.colour for line in named]), legend=legend)
    shape = alt.Shape("series:N", scale=scale([line.shape or "stroke" for line in named]), legend=legend)
    dash = alt.StrokeDash("series:N", scale=scale([list(line.dash) for line in named]), legend=legend)
    ends = table["at"].min(), table["at"].max()
    kind: dict[str, Any] = {"type": "log"} if log else {"padding": 10, "zero": False}
    x_axis: dict[str, Any] = {"labelOverlap": True, "grid": False}
    if ticks is not None:
        words = {(int(at) if at == int(at) else at): word for at, word in ticks.items()}
        x_axis |= {"values": list(ticks), "labelExpr": f"{words}[datum.value]"}
        ends = min([*ticks, ends[0]]), max([*ticks, ends[1]])
    reach = [_wider(ends[0], 0.96), _wider(ends[1], 1.04)] if log else list(ends)
    across_scale = alt.Scale(domain=reach, nice=False, **kind)
    x = alt.X("at:Q", title=across, scale=across_scale, axis=alt.Axis(**x_axis))
    y_scale = alt.Scale(zero=False) if domain is None else alt.Scale(domain=list(domain), nice=False, clamp=True)
    y = alt.Y("mean:Q", title=upwards, scale=y_scale, axis=alt.Axis(format=".0%") if per_cent else alt.Axis())
    base = alt.Chart(table).encode(color=colour, tooltip=tooltip("series", "value", "score"))
    layers: list[alt.Chart] = []

    def of(kept: Sequence[DrawnLine]) -> alt.Chart:
        return base.transform_filter(alt.FieldOneOfPredicate("series", [line.title for line in kept]))

    bands = [line for line in lines if line.band]
    bars = [line for line in lines if not line.band and any(np.isfinite(found.low) for _, found in line.points)]
    if bands:
        layers.append(of(bands).mark_area(opacity=0.1).encode(x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q"))
    if bars:
        layers.append(
            of(bars).mark_rule(strokeWidth=1.3, opacity=0.7).encode(x=x, y=alt.Y("low:Q", scale=y_scale), y2="high:Q")
        )
    for thick in sorted({line.width for line in lines}):
        held = [line for line in lines if line.width == thick and len(line.points) > 1]
        if held:
            layers.append(of(held).mark_line(strokeWidth=thick).encode(x=x, y=y, strokeDash=dash))
    marked = [line for line in lines if line.shape]
    if marked:
        layers.append(of(marked).mark_point(filled=True, size=55, opacity=1).encode(x=x, y=y, shape=shape))
    if printed is not None:
        mark = alt.Chart(pd.DataFrame({"at": [printed[0]], "mean": [printed[1]]})).mark_point(
            shape="diamond", size=60, filled=False, opacity=1, strokeWidth=1.6, stroke=INK
        )
        layers.append(mark.encode(x="at:Q", y="mean:Q"))
    return alt.layer(*layers).properties(width=width, height=height)


def _wider(value: float, share: float) -> float:
    return round(float(value) * share, 6)


def _table(lines: Sequence[DrawnLine], *, log: bool, aside: bool) -> pd.DataFrame:
    """series, at, mean, low, high, value, score; marks of several lines at one place stand side by side."""
    marked = [line for line in lines if aside and line.shape and len(line.points) > 1]
    places = [at for line in lines for at, _ in line.points]
    first, last = min(places), max(places)
    rows = []
    for line in lines:
        step = marked.index(line) - (len(marked) - 1) / 2 if line in marked else 0.0
        for at, found in line.points:
            known = np.isfinite(found.low)
            moved = at * (last / first) ** (SIDEWAYS * step) if log else at + SIDEWAYS * step * (last - first)
            rows.append({
                "series": line.title, "at": round(float(moved), 6), "mean": _four(found.mean),
                "low": _four(found.low if known else found.mean), "high": _four(found.high if known else found.mean),
                "value": f"{at:g}", "score": str(found) if known else rounded(found.mean, 3),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _four(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


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
