"""Accuracy against leakage against bytes: a method is best at the top left, with a small mark."""

from collections.abc import Sequence
from math import log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.evaluation.audit import LIRA, LOSS
from brainfed.reporting.figures.style import (
    FAINT,
    INK,
    WIDE,
    Box,
    drawing,
    headed,
    label_places,
    note_figure,
    placed_figure,
    save_svg,
    text_size,
)
from brainfed.reporting.rounding import rounded
from brainfed.reporting.tables.robustness import ATTACK_TITLES, Leak, read_leaks
from brainfed.reporting.variants import ShownVariant, places

HEIGHT, LABEL = 5.8, 7.2
"""Inches of the figure, points of a label."""
LEFT, BOTTOM, RIGHT, TOP = 0.07, 0.175, 0.975, 0.92
"""Edges of the axes, as shares of the figure."""
CHANCE = Box(0, 0, 32, 9)
"""Place of the word beside the line at 0.5, from the line's lower end."""
SHOWN_BYTES = {0: "nothing", 10**3: "1 kB", 10**6: "1 MB", 10**9: "1 GB"}
LONGEST, BAR = 60, 1.0
"""Letters of a label; points that a bar takes above and below its line."""
LINED = 9.0
"""A label farther from its mark than this has a line to it."""


def draw_leakage(
    variants: Sequence[ShownVariant], summary: str, audit: str, output: str, words: ClassWords = DIAGNOSIS_WORDS
) -> None:
    """Write the figure as SVG; the first arguments are those of `read_leaks`, the words are nouns of the cohort."""
    with drawing():
        save_svg(leakage_figure(read_leaks(variants, summary, audit), words), output)


def leakage_figure(leaks: Sequence[Leak], words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """Every method at its AUC and at the AUC of the attack; the area of a mark grows with the bytes that it sends."""
    if not leaks:
        return note_figure("no method gives the scores of its training subjects")
    figure = placed_figure(WIDE, HEIGHT)
    axes = figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, TOP - BOTTOM))
    _limits(axes, leaks)
    axes.axvline(0.5, color=FAINT, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.annotate(
        "chance", (0.5, 0), (3, 2), xycoords=("data", "axes fraction"), textcoords="offset points", color=FAINT,
        fontsize=7, va="bottom",
    )  # fmt: skip
    for leak in leaks:
        axes.plot([leak.low, leak.high], [leak.score] * 2, color=leak.variant.colour, linewidth=0.8, alpha=0.3)
    for leak in sorted(leaks, key=lambda leak: -leak.sent):
        axes.plot(
            leak.auc, leak.score, "o", markersize=2 * radius(leak.sent), color=leak.variant.colour, alpha=0.85,
            markerfacecolor=leak.variant.colour if leak.sent else "white", markeredgewidth=0.8,
        )  # fmt: skip
    _label(axes, leaks)
    axes.grid()
    axes.set_xlabel(f"AUC of {_attacks(leaks)} on membership, with its 95 % interval over people")
    axes.set_ylabel("AUC of the method, mean over institutions and runs")
    headed(figure, _finding(leaks))
    _key(figure, leaks, words)
    return figure


def _attacks(leaks: Sequence[Leak]) -> str:
    """The attack, or that it is the stronger one of each method."""
    made = {leak.attack for leak in leaks}
    if len(made) > 1:
        return f"the stronger attack ({ATTACK_TITLES[LIRA]} or {ATTACK_TITLES[LOSS]})"
    return f"an attack ({ATTACK_TITLES[made.pop()]})"


def radius(sent: int) -> float:
    """Radius of a mark in points."""
    return 2.5 if sent == 0 else 2.5 + 0.9 * max(log10(sent) - 2, 0)


def _limits(axes: Axes, leaks: Sequence[Leak]) -> None:
    """Limits with room for marks and labels; 0.5 is always inside."""
    across = [0.5, *(value for leak in leaks for value in (leak.low, leak.high) if np.isfinite(value))]
    up = [leak.score for leak in leaks]
    for low, high, room, set_limits in (
        (min(across), max(across), 0.06, axes.set_xlim),
        (min(up), max(up), 0.1, axes.set_ylim),
    ):
        margin = max(room * (high - low), 0.03)
        set_limits(low - margin, high + margin)


def _label(axes: Axes, leaks: Sequence[Leak]) -> None:
    width, height = WIDE * 72 * (RIGHT - LEFT), HEIGHT * 72 * (TOP - BOTTOM)
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    points = [
        (width * (leak.auc - left) / (right - left), height * (leak.score - bottom) / (top - bottom)) for leak in leaks
    ]
    titles = [_cut(leak.variant.title) for leak in leaks]
    sizes = [text_size(title, LABEL) for title in titles]
    radii = [radius(leak.sent) for leak in leaks]
    line = width * (0.5 - left) / (right - left)
    bars = [
        Box(width * (leak.low - left) / (right - left), y - BAR, width * (leak.high - left) / (right - left), y + BAR)
        for leak, (_, y) in zip(leaks, points, strict=True)
    ]
    word = Box(line, CHANCE.bottom, line + CHANCE.right, CHANCE.top)
    places = label_places(points, sizes, radii, Box(0, 0, width, height), [word, *bars])
    for leak, point, place, own in zip(leaks, points, places, radii, strict=True):
        end = place.nearest(*point)
        if np.hypot(end[0] - point[0], end[1] - point[1]) > own + LINED:
            axes.annotate(
                "", point, end, xycoords="axes points", textcoords="axes points",
                arrowprops={"arrowstyle": "-", "color": leak.variant.colour, "linewidth": 0.5, "alpha": 0.6},
            )  # fmt: skip
    for leak, title, place in zip(leaks, titles, places, strict=True):
        axes.annotate(
            title, (place.left, (place.bottom + place.top) / 2), xycoords="axes points", va="center",
            fontsize=LABEL, color=leak.variant.colour, path_effects=[withStroke(linewidth=1.6, foreground="white")],
        )  # fmt: skip


def _cut(title: str) -> str:
    """A title without its middle if it is too long: variants of one method differ at the end."""
    half = LONGEST // 2
    return title if len(title) <= LONGEST else f"{title[: half - 1]}\u2026{title[-half:]}"


def _finding(leaks: Sequence[Leak]) -> str:
    """The best-scoring method of the federated ones, or of all, and what it reveals."""
    federated = [leak for leak in leaks if leak.variant.topology == "federated"]
    best = max(federated or leaks, key=lambda leak: (leak.score, leak.variant.name))
    which = "federated method" if federated else "method"
    above = "its interval contains 0.5" if best.low <= 0.5 else "its interval lies above 0.5"
    return f"{best.variant.title}, the best-scoring {which}: AUC of the attack {rounded(best.auc, 2)}, {above}"


def _key(figure: Figure, leaks: Sequence[Leak], words: ClassWords) -> None:
    """Places of training by colour, bytes by size."""
    held = {leak.variant.place for leak in leaks}
    colours = [
        Line2D([], [], marker="o", linestyle="", markersize=6, color=colour, label=title)
        for name, (title, colour) in places(words).items()
        if name in held
    ]
    sizes = [
        Line2D(
            [], [], marker="o", linestyle="", markersize=2 * radius(sent), color=INK, label=words,
            markerfacecolor=FAINT if sent else "white", markeredgewidth=0.8,
        )
        for sent, words in SHOWN_BYTES.items()
    ]  # fmt: skip
    for handles, x, title in ((colours, LEFT, "method"), (sizes, 0.6, "bytes that cross institutions in one run")):
        figure.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(x, 0.008), ncols=4, title=title, title_fontsize=7.5,
            alignment="left", columnspacing=1.2, handletextpad=0.6, borderaxespad=0.2, fontsize=7.5,
        )  # fmt: skip
