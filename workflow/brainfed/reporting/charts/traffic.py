"""AUC against the bytes that cross institutions: a method is best at the top left."""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.charts.style import shown_ones, tooltip
from brainfed.reporting.figures.labels import Box, label_places, text_size
from brainfed.reporting.intervals import Interval
from brainfed.reporting.tables.exchanges import crossings_of, readable_bytes
from brainfed.reporting.variants import Groups, ShownVariant, by_family, places

WIDTH, HEIGHT = 700, 380
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
    return alt.layer(chance, marks, labels).properties(width=WIDTH, height=HEIGHT).add_params(shown_ones()[0])


def _placed(
    table: pd.DataFrame, front: Sequence[str], reach: tuple[float, float], height: tuple[float, float]
) -> pd.DataFrame:
    """The labels of the methods in front with their place: `left` in bytes and `at` as an AUC; none lies on a mark."""
    decades = np.log10(reach[1] / reach[0])
    x = WIDTH * np.log10(table["place"] / reach[0]) / decades
    y = HEIGHT * (table["auc"] - height[0]) / (height[1] - height[0])
    marks = [Box(a - MARK, b - MARK, a + MARK, b + MARK) for a, b in zip(x, y, strict=True)]
    chosen = table["variant"].isin(front)
    places = label_places(
        list(zip(x[chosen], y[chosen], strict=True)),
        [text_size(title, LETTERS) for title in table.loc[chosen, "method"]],
        [MARK] * int(chosen.sum()),
        Box(0, 0, WIDTH, HEIGHT),
        marks,
    )
    left = [reach[0] * 10 ** (decades * box.left / WIDTH) for box in places]
    at = [height[0] + (height[1] - height[0]) * (box.bottom + box.top) / 2 / HEIGHT for box in places]
    return table[chosen].assign(left=np.round(left, 1), at=np.round(at, 4))
