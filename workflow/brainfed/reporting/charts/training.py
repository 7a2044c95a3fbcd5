"""Charts of the training: gain from federation, learning curves, traffic."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.charts.curves import Curves, curve_layers
from brainfed.reporting.charts.style import Panel, height_of, shown_ones, tooltip
from brainfed.reporting.figures.of_papers import CURVES
from brainfed.reporting.figures.style import Box, label_places, text_size
from brainfed.reporting.intervals import Interval
from brainfed.reporting.rounding import rounded, signed
from brainfed.reporting.scored import Scored
from brainfed.reporting.tables.exchanges import crossings_of, readable_bytes
from brainfed.reporting.variants import Groups, ShownVariant, by_family, places

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


# AUC against the bytes that cross institutions: a method is best at the top left.

TRAFFIC_WIDTH, TRAFFIC_HEIGHT = 700, 380
NOTHING = 100
"""Place on the axis, in bytes, of methods that send nothing."""
BYTES = {NOTHING: "nothing", **{10**power: readable_bytes(10**power).replace(".0", "") for power in range(3, 13)}}
"""Tick -> its words."""
MARK, LETTERS = 6.0, 11.5
"""Pixels of a mark's radius, and of the size of letters."""
CHANCE = 0.5
NONE, SUMS, SINGLE = "nothing", "models or sums", "entries of single {subjects}"
SHAPES = {NONE: "circle", SUMS: "square", SINGLE: "triangle-up"}
"""What leaves an institution -> shape of the mark."""


def traffic_chart(
    variants: Sequence[ShownVariant],
    scores: Mapping[str, Interval],
    front: Sequence[ShownVariant],
    words: ClassWords = DIAGNOSIS_WORDS,
    named: Groups | None = None,
) -> alt.TopLevelMixin | None:
    """Every method at the bytes of one run, both ways, and at its mean AUC; None if no method has an AUC.

    Args:
        variants: with the `cost.json` of their first repeat, and those of their generators.
        scores: variant -> mean AUC over institutions and runs.
        front: methods whose name is written beside the mark.
        words: nouns of the cohort.
        named: places of training; None: those of the words.
    """
    rows = []
    for variant in by_family(variants):
        score, crossed = scores[variant.name], crossings_of(variant)
        sent, single = sum(one.bytes for one in crossed), any(one.patient_level for one in crossed)
        if not np.isfinite(score.mean):
            continue
        leaves = SINGLE if single else (SUMS if sent else NONE)
        rows.append(
            {
                "variant": variant.name, "method": variant.title, "group": variant.place,
                "place": max(sent, NOTHING), "auc": round(score.mean, 4), "AUC": str(score),
                "sent": readable_bytes(sent) if sent else "nothing", "leaves": leaves.format(subjects=words.subjects),
            }
        )  # fmt: skip
    if not rows:
        return None
    table = pd.DataFrame(rows)
    named = named or places(words)
    held = [group for group in named if group in set(table["group"])]
    shapes = [leaves.format(subjects=words.subjects) for leaves in SHAPES]
    _, kept = shown_ones()
    reach = (NOTHING / 2, 3 * max(float(table["place"].max()), 1e6))
    low, high = min([CHANCE, *table["auc"]]) - 0.02, max([CHANCE, *table["auc"]]) + 0.03
    names = _placed(table, [variant.name for variant in front], reach, (low, high))
    across = alt.X(
        "place:Q",
        scale=alt.Scale(type="log", domain=list(reach), nice=False),
        axis=alt.Axis(
            title="bytes that cross institutions in one run, both ways", values=list(BYTES),
            labelExpr=f"{BYTES}[datum.value]",
        ),
    )  # fmt: skip
    up = alt.Y(
        "auc:Q", title="AUC, mean over institutions and runs",
        scale=alt.Scale(domain=[low, high], nice=False, zero=False),
    )  # fmt: skip
    base = alt.Chart(table).transform_filter(kept)
    marks = base.mark_point(size=90, filled=True, opacity=0.85).encode(
        x=across, y=up, tooltip=tooltip("method", "AUC", "sent", "leaves"),
        color=alt.Color(
            "group:N", scale=alt.Scale(domain=held, range=[named[group][1] for group in held]),
            legend=alt.Legend(title=None, labelExpr=f"{({one: named[one][0] for one in held})}[datum.label]"),
        ),
        shape=alt.Shape(
            "leaves:N", scale=alt.Scale(domain=shapes, range=list(SHAPES.values())),
            legend=alt.Legend(title="what leaves an institution"),
        ),
    )  # fmt: skip
    labels = (
        alt.Chart(names)
        .transform_filter(kept)
        .mark_text(align="left", baseline="middle")
        .encode(x="left:Q", y="at:Q", text="method:N")
    )
    chance = base.mark_rule(strokeDash=[2, 3], style="soft").encode(y=alt.datum(CHANCE, type="quantitative"))
    return (
        alt.layer(chance, marks, labels)
        .properties(width=TRAFFIC_WIDTH, height=TRAFFIC_HEIGHT)
        .add_params(shown_ones()[0])
    )


def _placed(
    table: pd.DataFrame, front: Sequence[str], reach: tuple[float, float], height: tuple[float, float]
) -> pd.DataFrame:
    """The labels of the methods in front with their place: `left` in bytes and `at` as an AUC; none lies on a mark."""
    decades = np.log10(reach[1] / reach[0])
    x = TRAFFIC_WIDTH * np.log10(table["place"] / reach[0]) / decades
    y = TRAFFIC_HEIGHT * (table["auc"] - height[0]) / (height[1] - height[0])
    marks = [Box(a - MARK, b - MARK, a + MARK, b + MARK) for a, b in zip(x, y, strict=True)]
    chosen = table["variant"].isin(front)
    places = label_places(
        list(zip(x[chosen], y[chosen], strict=True)),
        [text_size(title, LETTERS) for title in table.loc[chosen, "method"]],
        [MARK] * int(chosen.sum()),
        Box(0, 0, TRAFFIC_WIDTH, TRAFFIC_HEIGHT),
        marks,
    )
    left = [reach[0] * 10 ** (decades * box.left / TRAFFIC_WIDTH) for box in places]
    at = [height[0] + (height[1] - height[0]) * (box.bottom + box.top) / 2 / TRAFFIC_HEIGHT for box in places]
    return table[chosen].assign(left=np.round(left, 1), at=np.round(at, 4))
