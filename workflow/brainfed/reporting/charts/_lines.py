"""Lines of scores: over a setting, and over the rounds of a training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from brainfed.reporting import FAINT, INK, SERIES, Groups, Interval, ShownVariant, by_family, rounded
from brainfed.reporting.charts._curves import Curves, curve_layers
from brainfed.reporting.charts._scores import DEFAULT
from brainfed.reporting.charts._style import FILTER, NOT_HIDDEN, Panel, tooltip
from brainfed.runtime import IntArray, read_table

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


ENOUGH = 100
"""Runs of an interval that comes from people in their place, so that it is drawn."""


def over_people(mean: float, low: float, high: float) -> Interval:
    """An interval that comes from people in place of runs."""
    return Interval(mean, low, high, ENOUGH)


def numbered(
    number: int, title: str, points: Sequence[tuple[float, Interval]] = (), *, dashed: bool = False
) -> DrawnLine:
    """A line with the colour and mark of its number; dashed where these come again."""
    colour, shape = SERIES[number % len(SERIES)]
    return DrawnLine(title, colour, points, shape, DASHED if dashed or number >= len(SERIES) else SOLID)


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
        width, height: pixels.
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
    named = {line.title: line for line in [*key, *lines]}
    legend = alt.Legend(title=None, orient="bottom", columns=columns, labelLimit=460, symbolSize=70, symbolOpacity=1)

    def look(channel: Any, values: Sequence[Any]) -> Any:
        return channel("series:N", scale=alt.Scale(domain=list(named), range=values), legend=legend)

    colour = look(alt.Color, [line.colour for line in named.values()])
    shape = look(alt.Shape, [line.shape or "stroke" for line in named.values()])
    dash = look(alt.StrokeDash, [list(line.dash) for line in named.values()])
    scale = alt.Scale(zero=False) if domain is None else alt.Scale(domain=list(domain), nice=False, clamp=True)
    y = alt.Y("mean:Q", title=upwards, scale=scale, axis=alt.Axis(format=".0%") if per_cent else alt.Axis())
    ends: dict[str, Any] = {"y": alt.Y("low:Q", scale=scale), "y2": "high:Q"}
    base = alt.Chart(table).encode(
        x=_setting_axis(table, across, ticks, log=log), color=colour, tooltip=tooltip("series", "value", "score")
    )

    def of(kept: Sequence[DrawnLine]) -> alt.Chart:
        return base.transform_filter(alt.FieldOneOfPredicate("series", [line.title for line in kept]))

    layers: list[alt.Chart] = []
    if bands := [line for line in lines if line.band]:
        layers.append(of(bands).mark_area(opacity=0.1).encode(**ends))
    if bars := [line for line in lines if not line.band and any(np.isfinite(score.low) for _, score in line.points)]:
        layers.append(of(bars).mark_rule(strokeWidth=1.3, opacity=0.7).encode(**ends))
    drawn = [line for line in lines if len(line.points) > 1]
    for thick in sorted({line.width for line in drawn}):
        chart = of([line for line in drawn if line.width == thick])
        layers.append(chart.mark_line(strokeWidth=thick).encode(y=y, strokeDash=dash))
    if marked := [line for line in lines if line.shape]:
        layers.append(of(marked).mark_point(filled=True, size=55, opacity=1).encode(y=y, shape=shape))
    if printed is not None:
        mark = alt.Chart(pd.DataFrame({"at": [printed[0]], "mean": [printed[1]]})).mark_point(
            shape="diamond", size=60, filled=False, opacity=1, strokeWidth=1.6, stroke=INK
        )
        layers.append(mark.encode(x="at:Q", y="mean:Q"))
    return alt.layer(*layers).properties(width=width, height=height)


def _setting_axis(
    table: pd.DataFrame, title: str | list[str], ticks: Mapping[float, str] | None, *, log: bool
) -> alt.X:
    """The horizontal axis of `lines_panel`, with all points and ticks inside."""
    first, last = float(table["at"].min()), float(table["at"].max())
    labels: dict[str, Any] = {}
    if ticks is not None:
        words = {(int(at) if at == int(at) else at): word for at, word in ticks.items()}
        labels = {"values": list(ticks), "labelExpr": f"{words}[datum.value]"}
        first, last = min([*ticks, first]), max([*ticks, last])
    if log:
        scale = alt.Scale(type="log", domain=[round(0.96 * first, 6), round(1.04 * last, 6)], nice=False)
    else:
        scale = alt.Scale(domain=[first, last], nice=False, padding=10, zero=False)
    return alt.X("at:Q", title=title, scale=scale, axis=alt.Axis(labelOverlap=True, grid=False, **labels))


def _table(lines: Sequence[DrawnLine], *, log: bool, aside: bool) -> pd.DataFrame:
    """series, at, mean, low, high, value, score; marks of several lines at one place stand side by side."""
    marked = [line for line in lines if aside and line.shape and len(line.points) > 1]
    places = [at for line in lines for at, _ in line.points]
    first, last = min(places), max(places)
    rows = []
    for line in lines:
        step = marked.index(line) - (len(marked) - 1) / 2 if line in marked else 0.0
        for at, score in line.points:
            known = np.isfinite(score.low)
            moved = at * (last / first) ** (SIDEWAYS * step) if log else at + SIDEWAYS * step * (last - first)
            rows.append({
                "series": line.title, "at": round(float(moved), 6), "mean": _four(score.mean),
                "low": _four(score.low if known else score.mean), "high": _four(score.high if known else score.mean),
                "value": f"{at:g}", "score": str(score) if known else rounded(score.mean, 3),
            })  # fmt: skip
    return pd.DataFrame(rows)


def _four(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


# Learning curves: test loss and test accuracy after every round; all methods in grey, the strongest in colour.

LEARNING_WIDTH, LEARNING_HEIGHT = 330, 300
"""Pixels of a panel."""
STEEP = 30
"""Ratio of the largest to the smallest loss above which the axis is logarithmic."""
MOST_POINTS = 60
"""Points of a curve; of more rounds, evenly chosen ones and the last are drawn."""
EPOCHS = "local epochs or rounds"
CURVES = ("training_loss", "test_loss", "test_accuracy")


def drawn_of(points: int) -> IntArray:
    """Positions of the points of a curve that are drawn."""
    return np.unique(np.linspace(0, points - 1, min(points, MOST_POINTS)).round().astype(np.int64))


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
        classes: their number; the dotted line is one over it.
    """
    shown = [variant for variant in by_family(variants) if (history["variant"] == variant.name).any()]
    if not shown:
        return None
    table = pd.concat([_points(history[history["variant"] == variant.name], variant) for variant in shown])
    last = table.groupby("variant")["test_accuracy_shown"].last()
    notes = {variant.name: f"accuracy {last[variant.name]}" for variant in front if variant in shown}
    losses = table[["training_loss", "test_loss"]].to_numpy(dtype=np.float64)
    positive = losses[np.isfinite(losses) & (losses > 0)]
    steep = len(positive) > 0 and float(positive.max()) > STEEP * max(float(np.quantile(positive, 0.05)), 1e-3)
    scale = alt.Scale(type="symlog", constant=0.1) if steep else alt.Scale(zero=True)
    x = alt.X("epochs:Q", axis=alt.Axis(title=EPOCHS, tickCount=5), scale=alt.Scale(nice=False))

    def layers(y: alt.Y, curve: str) -> list[alt.Chart]:
        tip = ("method", EPOCHS, "test loss", "training loss", "test accuracy")
        return curve_layers(Curves(table, x, y, tip, f"{curve}_low", f"{curve}_high"), shown, front, notes, groups)

    loss = layers(alt.Y("test_loss:Q", title="test loss (dashed: training loss)", scale=scale), "test_loss")
    accuracy = layers(alt.Y("test_accuracy:Q", title="test accuracy", scale=alt.Scale(zero=False)), "test_accuracy")
    mine = alt.Chart(table).transform_filter(NOT_HIDDEN)
    mine = mine.transform_filter(alt.FieldOneOfPredicate("variant", list(notes)))
    training = mine.mark_line(strokeDash=[4, 3], strokeWidth=1.4).encode(
        x=x, y="training_loss:Q", color="variant:N", detail="variant:N"
    )
    chance = alt.Chart(pd.DataFrame({"at": [1 / classes]})).mark_rule(strokeDash=[2, 3], style="soft").encode(y="at:Q")
    panels = [
        alt.layer(*drawn).properties(width=LEARNING_WIDTH, height=LEARNING_HEIGHT)
        for drawn in ([training, *loss], [chance, *accuracy])
    ]
    return alt.hconcat(*panels, spacing=40).add_params(FILTER)


def _points(history: pd.DataFrame, variant: ShownVariant) -> pd.DataFrame:
    """Mean and deviation over runs at every drawn point, and their texts."""
    epochs = history["round"] * max(variant.epochs_a_round, 1)
    grouped = history.assign(epochs=epochs).groupby("epochs")[list(CURVES)]
    mean, deviation = grouped.mean(), grouped.std(ddof=1)
    kept = drawn_of(len(mean))
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
