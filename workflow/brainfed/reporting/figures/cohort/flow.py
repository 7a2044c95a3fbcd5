"""The flow chart of exclusions: a box a step, below it the excluded subjects with their reasons, as wide as a phone."""

import textwrap

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from brainfed.cohort.class_words import DIAGNOSIS_WORDS, ClassWords
from brainfed.reporting.figures.style import FAINT, HALF, INK, RULE, bare, placed_figure
from brainfed.reporting.tables.flow import FlowStep, flow_steps

LEFT_OUT = "#b45309"
KEPT = "#0f766e"
MARGIN, DOWN, SIDE, BOX, LINE, GAP = 0.05, 0.3, 0.75, 0.62, 0.175, 0.16
"""Inches: edge, the line downwards, left edge of the boxes beside it, height of a box, of a line, space between."""
LETTERS = 50
"""Letters of a line in a box beside the line."""


def flow_figure(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """From the rows of the phenotype table to the analysed subjects, with the exclusions of every step."""
    everybody, steps = flow_steps(people)
    sides = [_side_lines(step, words) for step in steps] or [["nobody was left out"]]
    heights = [_side_height(lines, headed=bool(steps)) for lines in sides]
    total = 2 * MARGIN + BOX * (len(sides) + 1) + sum(height + 2 * GAP for height in heights)
    figure = placed_figure(HALF, total)
    axes = figure.add_axes((0, 0, 1, 1))
    bare(axes)
    axes.set(xlim=(0, HALF), ylim=(total, 0))
    _box(axes, MARGIN, everybody.subjects, everybody.described(words), "in the phenotype table", FAINT)
    top = MARGIN + BOX
    for index, (lines, height) in enumerate(zip(sides, heights, strict=True)):
        middle = top + GAP + height / 2
        bottom = top + height + 2 * GAP
        _arrow(axes, (DOWN, top), (DOWN, bottom))
        _side(axes, middle, height, lines, steps[index] if steps else None)
        remaining = steps[index].remaining if steps else everybody
        last = index == len(sides) - 1
        title = "analysed" if last else steps[index].passed
        _box(axes, bottom, remaining.subjects, remaining.described(words), title, KEPT if last else FAINT)
        top = bottom + BOX
    return figure


def _side_lines(step: FlowStep, words: ClassWords) -> list[str]:
    """Every reason with its number; long ones continue in an indented line."""
    lines = []
    for why, count in step.reasons:
        classes = count.described(words)
        lines += textwrap.wrap(
            f"{count.subjects}  {why}" + (f" ({classes})" if classes else ""), LETTERS, subsequent_indent="\u00a0" * 4
        )
    return lines


def _side_height(lines: list[str], *, headed: bool) -> float:
    return 0.2 + LINE * len(lines) + (0.22 if headed else 0)


def _side(axes: Axes, middle: float, height: float, lines: list[str], step: FlowStep | None) -> None:
    _arrow(axes, (DOWN, middle), (SIDE, middle))
    _frame(axes, SIDE, middle - height / 2, HALF - MARGIN - SIDE, height)
    place = middle - height / 2 + 0.1
    if step:
        leaving = sum(count.subjects for _, count in step.reasons)
        axes.text(SIDE + 0.14, place, f"{leaving} left out", va="top", fontweight="bold", color=LEFT_OUT)
        place += 0.22
    axes.text(SIDE + 0.14, place, "\n".join(lines), va="top", linespacing=1.46, color=INK, fontsize=8.4)


def _box(axes: Axes, top: float, subjects: int, classes: str, title: str, colour: str) -> None:
    _frame(axes, MARGIN, top, HALF - 2 * MARGIN, BOX)
    number = axes.text(
        MARGIN + 0.14, top + BOX / 2, str(subjects), va="center", fontsize=17, fontweight="bold", color=colour
    )
    number.set_gid("count")
    left = MARGIN + 0.3 + 0.165 * max(len(str(subjects)), 3)
    line = top + BOX / 2 - (0.11 if classes else 0)
    axes.text(left, line, title, va="center", fontweight="bold", color=colour)
    axes.text(left, top + BOX / 2 + 0.11, classes, va="center", fontsize=8)


def _frame(axes: Axes, left: float, top: float, width: float, height: float) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (left, top), width, height, boxstyle="round,pad=0,rounding_size=0.06", facecolor="white", edgecolor=RULE,
            linewidth=1,
        )
    )  # fmt: skip


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": FAINT, "lw": 0.9, "shrinkA": 0, "shrinkB": 0}
    )
