"""Charts of what crosses institutions and what models reveal: AUC against bytes, and against attacks on membership."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from math import cos, pi, sin
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.audit import LIRA, LOSS
from brainfed.reporting.charts.scores import CHANCE
from brainfed.reporting.charts.style import (
    Chart,
    IntervalRow,
    headed,
    height_of,
    interval_panel,
    note_chart,
    save_chart,
    shown_ones,
    tooltip,
)
from brainfed.reporting.intervals import Interval
from brainfed.reporting.rounding import rounded
from brainfed.reporting.tables.exchanges import crossings_of, readable_bytes
from brainfed.reporting.tables.robustness import ATTACK_TITLES, Leak, read_leaks
from brainfed.reporting.variants import Groups, ShownVariant, by_family, places

# AUC against the bytes that cross institutions: a method is best at the top left.

TRAFFIC_WIDTH, TRAFFIC_HEIGHT = 700, 380
NOTHING = 100
"""Place on the axis, in bytes, of methods that send nothing."""
BYTES = {NOTHING: "nothing", **{10**power: readable_bytes(10**power).replace(".0", "") for power in range(3, 13)}}
"""Tick -> its words."""
MARK, LETTERS = 6.0, 11.5
"""Pixels of a mark's radius, and of the size of letters."""
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
        [text_size(title) for title in table.loc[chosen, "method"]],
        [MARK] * int(chosen.sum()),
        Box(0, 0, TRAFFIC_WIDTH, TRAFFIC_HEIGHT),
        marks,
    )
    left = [reach[0] * 10 ** (decades * box.left / TRAFFIC_WIDTH) for box in places]
    at = [height[0] + (height[1] - height[0]) * (box.bottom + box.top) / 2 / TRAFFIC_HEIGHT for box in places]
    return table[chosen].assign(left=np.round(left, 1), at=np.round(at, 4))


# Places of labels beside points, so that no label lies on another one or on a marker. All lengths are in pixels.

DIRECTIONS = tuple(pi * part / 8 for part in (0, 8, 4, 12, 2, 6, 14, 10, 1, 7, 15, 9, 3, 5, 13, 11))
"""Right, left, above and below come first."""
STEP = 3.0
"""From one ring of places around a point to the next."""


class Box(NamedTuple):
    """A rectangle; y grows upwards."""

    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: "Box") -> bool:
        """Whether the two share an area."""
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the rectangle that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.bottom), self.top)


def text_size(text: str) -> tuple[float, float]:
    """Width and height of a text of one line in the charts' font, a little more than it takes."""
    return 0.63 * LETTERS * len(text), LETTERS


def label_places(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    radii: Sequence[float],
    frame: Box,
    others: Sequence[Box] = (),
) -> list[Box]:
    """The place of each label: the nearest free one inside the frame; without a free one the nearest.

    Args:
        points: centres of the markers.
        sizes: width and height of the labels.
        radii: of the markers.
        frame: where labels may lie.
        others: what no label may cover, beside the markers.
    """
    taken = [*others, *(Box(x - r, y - r, x + r, y + r) for (x, y), r in zip(points, radii, strict=True))]
    found: list[Box] = []
    for point, size, radius in zip(points, sizes, radii, strict=True):
        inside = (box for box in _places(point, size, radius, frame) if _inside(box, frame))
        first = next(inside, next(_places(point, size, radius, frame)))
        free = (box for box in chain([first], inside) if not any(map(box.overlaps, taken)))
        found.append(next(free, first))
        taken.append(found[-1])
    return found


def _places(point: tuple[float, float], size: tuple[float, float], radius: float, frame: Box) -> Iterator[Box]:
    """Places around a point, ring after ring, until the rings leave the frame."""
    (x, y), (width, height) = point, size
    reach = frame.right - frame.left + frame.top - frame.bottom
    for ring in range(1 + int(reach / STEP)):
        away = radius + 1.5 + ring * STEP
        for angle in DIRECTIONS:
            middle_x, middle_y = x + cos(angle) * (away + width / 2), y + sin(angle) * (away + height / 2)
            yield Box(middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)


def _inside(box: Box, frame: Box) -> bool:
    return box.left >= frame.left and box.right <= frame.right and box.bottom >= frame.bottom and box.top <= frame.top


# What models reveal of their training subjects: a row a method, its AUC beside that of an attack and what it sends.

SENT = 90
"""Pixels of the column of bytes."""


def draw_leakage(
    variants: Sequence[ShownVariant], summary: str, audit: str, output: str, words: ClassWords = DIAGNOSIS_WORDS
) -> None:
    """Write the chart as SVG; the first arguments are those of `read_leaks`, the words are nouns of the cohort."""
    save_chart(leakage_chart(read_leaks(variants, summary, audit), words), output)


def leakage_chart(leaks: Sequence[Leak], words: ClassWords = DIAGNOSIS_WORDS) -> Chart:
    """Every method's AUC, the AUC of the attack on it, and the bytes that it sends; the best method first."""
    if not leaks:
        return note_chart("no method gives the scores of its training subjects")
    ordered = sorted(leaks, key=lambda leak: (-leak.score, leak.variant.name))
    own = [
        IntervalRow(leak.variant, Interval(leak.score, np.nan, np.nan, 0), leak.variant.place, rounded(leak.score, 2))
        for leak in ordered
    ]
    attacks = [
        IntervalRow(
            leak.variant, Interval(leak.auc, leak.low, leak.high, SURE), leak.variant.place, rounded(leak.auc, 2)
        )
        for leak in ordered
    ]
    groups = places(words)
    titles = "AUC of the method", f"AUC of {_attacks(leaks)}"
    score = interval_panel(own, titles[0], groups, width=230, zero=CHANCE)
    revealed = interval_panel(
        attacks, titles[1], groups, width=300, zero=CHANCE, zero_title="reveals nothing", named=False
    )
    table = pd.DataFrame({
        "variant": [leak.variant.name for leak in ordered], "method": [leak.variant.title for leak in ordered],
        "sent": [readable_bytes(leak.sent) if leak.sent else "nothing" for leak in ordered],
    })  # fmt: skip
    sent = (
        alt.Chart(table, title=alt.Title("sent in one run", fontWeight="normal", fontSize=11, offset=4))
        .transform_filter(shown_ones()[1])
        .mark_text(align="left")
        .encode(
            x=alt.value(4), text="sent:N",
            y=alt.Y("method:N", sort=list(table["method"]), axis=alt.Axis(labels=False, title=None, domain=False, ticks=False)),
        )
        .properties(width=SENT, height=height_of(ordered))
    )  # fmt: skip
    return headed(alt.hconcat(score, revealed, sent, spacing=50), _finding(leaks))


SURE = 100
"""Runs of an interval over people: enough to draw it."""


def _attacks(leaks: Sequence[Leak]) -> str:
    """The attack, or that it is the stronger one of each method."""
    made = {leak.attack for leak in leaks}
    if len(made) > 1:
        return f"the stronger attack ({ATTACK_TITLES[LIRA]} or {ATTACK_TITLES[LOSS]})"
    return f"an attack ({ATTACK_TITLES[made.pop()]})"


def _finding(leaks: Sequence[Leak]) -> str:
    """The best-scoring method of the federated ones, or of all, and what it reveals."""
    federated = [leak for leak in leaks if leak.variant.topology == "federated"]
    best = max(federated or leaks, key=lambda leak: (leak.score, leak.variant.name))
    which = "federated method" if federated else "method"
    above = "its interval contains 0.5" if best.low <= 0.5 else "its interval lies above 0.5"
    return f"{best.variant.title}, the best-scoring {which}: AUC of the attack {rounded(best.auc, 2)}, {above}"
