"""Gain of institutions from federation: a method minus its own twins, the same model alone and on pooled data."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.reporting.charts.style import Panel, height_of, shown_ones, tooltip
from brainfed.reporting.rounding import signed
from brainfed.reporting.scored import Scored
from brainfed.reporting.variants import ShownVariant, by_family

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
