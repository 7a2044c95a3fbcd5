"""Figures of a cohort's subjects and scans: exclusions, people, quality, motion."""

import textwrap
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.ticker import MaxNLocator
from scipy import stats

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.settings.cohort import FlagSettings
from brainfed.reporting.figures.style import (
    FAINT,
    HALF,
    INK,
    PATIENT,
    RULE,
    SEX_COLOURS,
    UNLABELLED,
    WIDE,
    bare,
    class_colours,
    drawing,
    horizontal_rows,
    new_figure,
    note_figure,
    placed_figure,
    save_svg,
    titled,
)
from brainfed.reporting.people import read_cohort, site_table, used
from brainfed.reporting.rounding import rounded, significant_digits
from brainfed.reporting.tables.flow import FlowStep, flow_steps
from brainfed.runtime.artefacts import read_table

# The flow chart of exclusions: a box a step, below it the excluded subjects with their reasons, as wide as a phone.

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


# Sites and ages of the subjects.

JITTER_SEED = 0


def sites_figure(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """Analysed subjects by site, as bars of the classes and of subjects without a label."""
    counts = site_table(people, words)
    figure = new_figure(HALF, max(2.9, 0.95 + 0.22 * len(counts)))
    axes = figure.add_subplot()
    left = np.zeros(len(counts))
    rows = range(len(counts))
    colours = class_colours(words.count)
    parts = {**{words.short[code]: colours[code] for code in words.shown}, "unlabelled": UNLABELLED}
    shown = {column: colour for column, colour in parts.items() if column in counts}
    for column, colour in shown.items():
        values = counts[column].to_numpy(dtype=np.float64)
        axes.barh(rows, values, left=left, height=0.72 if len(counts) > 6 else 0.6, color=colour)
        for row, value, start in zip(rows, values, left, strict=True):
            if value >= 0.05 * counts[list(shown)].sum(axis=1).max():
                axes.text(
                    start + value / 2,
                    row,
                    rounded(value, 0),
                    ha="center",
                    va="center",
                    color="white" if colour == PATIENT else INK,
                    fontsize=7.5,
                )
        left += values
    horizontal_rows(axes, [str(site) for site in counts["site"]])
    axes.set_xlabel(f"analysed subjects (n = {int(left.sum())})")
    _key(axes, list(shown.items()))
    return figure


def _key(axes: Axes, items: list[tuple[str, str]]) -> None:
    """Coloured words above the axes in place of a legend."""
    for index, (text, colour) in enumerate(items):
        axes.annotate(
            text, (0, 1), (80 * index, 6), xycoords="axes fraction", textcoords="offset points",
            color=colour, fontweight="bold", va="bottom",
        )  # fmt: skip


def ages_figure(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Figure:
    """Age of the analysed subjects by class and sex: every subject a dot, quartiles as a box."""
    kept = used(people)
    if words.target == "sex":
        kept = kept.assign(sex=kept["diagnosis"].map(words.one))
    groups = [
        (
            sex if words.target == "sex" else f"{sex}\n{words.short[code]}",
            SEX_COLOURS[sex],
            kept.loc[(kept["diagnosis"] == code) & (kept["sex"] == sex)],
        )
        for code in words.shown
        for sex in ("male", "female")
        if words.target != "sex" or words.one[code] == sex
    ]
    figure = new_figure(HALF, 2.9)
    axes = figure.add_subplot()
    for place, (_, colour, group) in enumerate(groups):
        strip(axes, place, group["age"].dropna().to_numpy(dtype=np.float64), colour)
    axes.set_xticks(range(len(groups)), [f"{title}\nn = {len(group)}" for title, _, group in groups])
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("age (years)")
    axes.grid(axis="y")
    unknown = int(kept[["age", "sex"]].isna().any(axis=1).sum())
    if unknown:
        axes.set_title(f"{unknown} without age or sex not shown", fontweight="normal", fontsize=8)
    return figure


def strip(axes: Axes, place: float, values: np.ndarray[tuple[int], np.dtype[np.float64]], colour: str) -> None:
    """Every value a dot beside a box of its quartiles, at one place of the x axis."""
    if not len(values):
        return
    spread = np.random.default_rng(JITTER_SEED).uniform(-0.3, 0.02, len(values))
    axes.scatter(place + spread, values, s=7, color=colour, alpha=0.45, linewidths=0, rasterized=len(values) > 2000)
    axes.boxplot(
        values, positions=[place + 0.2], widths=0.16, showfliers=False, manage_ticks=False,
        medianprops={"color": INK, "linewidth": 1.4}, boxprops={"color": INK, "linewidth": 0.8},
        whiskerprops={"color": INK, "linewidth": 0.8}, capprops={"color": INK, "linewidth": 0.8},
    )  # fmt: skip


# Quality of the scans: length by site, similarity of connectivity, signal to noise, coverage, silent regions.

ACCENT = "#44559a"
ODD = "#b45309"


def series_figure(people: pd.DataFrame) -> Figure:
    """Number of volumes, repetition time and length of the scans of every site."""
    kept = used(people)
    if kept["timepoints"].isna().all():
        return note_figure("there are no scans in time: nothing has a length")
    kept = kept.assign(minutes=kept["kept_seconds"] / 60)
    sites = list(kept["site"].value_counts(sort=False).sort_index().index)
    scrubbed = (kept["timepoints"] < kept["volumes"]).any()
    panels = [
        ("timepoints", "volumes left after scrubbing" if scrubbed else "volumes"),
        ("tr", "repetition time (s)"),
        ("minutes", "minutes left after scrubbing" if scrubbed else "scan length (min)"),
    ]
    panels = [panel for panel in panels if kept[panel[0]].notna().any()]
    figure = new_figure(WIDE, 0.75 + 0.24 * len(sites))
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (column, title) in zip(all_axes, panels, strict=True):
        for row, site in enumerate(sites):
            _range(axes, row, kept.loc[kept["site"] == site, column].dropna().to_numpy(dtype=np.float64))
        axes.set_xlabel(title)
        axes.margins(x=0.2)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.grid(axis="x")
    horizontal_rows(all_axes[0], [f"{site} (n = {(kept['site'] == site).sum()})" for site in sites])
    for axes in all_axes[1:]:
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    if kept["tr"].isna().all():
        all_axes[-1].annotate(
            "repetition times are not known", (1, 1), xycoords="axes fraction", ha="right", va="bottom", color=FAINT
        )
    return figure


def _range(axes: Axes, row: int, values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Smallest to largest value as a line, the median as a dot with its number."""
    if not len(values):
        return
    median = float(np.median(values))
    axes.plot([values.min(), values.max()], [row, row], color=ACCENT, alpha=0.5, linewidth=2.5, solid_capstyle="round")
    axes.plot(median, row, "o", color=ACCENT, markersize=5)
    text = significant_digits(median, 3)
    axes.annotate(text, (median, row), (0, 4), textcoords="offset points", va="bottom", ha="center", fontsize=7.5)


def quality_figure(people: pd.DataFrame, coverage: pd.DataFrame, unlike: float) -> Figure:
    """Similarity of each subject's connectivity to the others', signal to noise, coverage, regions without signal.

    Args:
        people: the participants with their measures.
        coverage: subject, region, coverage.
        unlike: a robust z below minus this value marks a subject unlike the others.
    """
    kept = used(people)
    covered = coverage[coverage["subject"].isin(set(kept["subject"]))]
    panels: list[Callable[[Axes], None]] = [lambda axes: _likeness(axes, kept, unlike)]
    if kept["tsnr"].notna().any():
        panels.append(lambda axes: _tsnr(axes, kept))
    if len(covered):
        panels.append(lambda axes: _coverage(axes, covered))
    if kept["silent_regions"].notna().any():
        panels.append(lambda axes: _silent(axes, kept))
    figure = new_figure(WIDE, 2.9)
    for draw, axes in zip(panels, figure.subplots(1, len(panels), squeeze=False)[0], strict=True):
        draw(axes)
    return figure


def _likeness(axes: Axes, kept: pd.DataFrame, unlike: float) -> None:
    known = kept.dropna(subset=["typicality"])
    if known.empty:
        titled(axes, "Likeness of connectivity")
        _say(axes, "not measured")
        return
    odd = (known["typicality_z"] < -unlike).to_numpy()
    r = known["typicality"].to_numpy(dtype=np.float64)
    order = np.argsort(r, kind="stable")
    places = np.arange(1, len(r) + 1)
    axes.plot(places[~odd[order]], r[order][~odd[order]], "o", color=ACCENT, markersize=2, markeredgewidth=0)
    axes.plot(places[odd[order]], r[order][odd[order]], "o", color=ODD, markersize=4, markeredgewidth=0)
    axes.set_xlabel(f"subjects, least alike first (of {len(r)})")
    axes.set_ylabel("correlation with the others' mean")
    found = f"{int(odd.sum())} unlike the others" if odd.any() else "nobody unlike the others"
    titled(axes, "Likeness of connectivity", found, ODD if odd.any() else FAINT)


def _tsnr(axes: Axes, kept: pd.DataFrame) -> None:
    values = kept["tsnr"].dropna().to_numpy(dtype=np.float64)
    axes.hist(values, bins=24, color="#9aa7c7", edgecolor="white", linewidth=0.3)
    axes.axvline(float(np.median(values)), color=INK)
    axes.set_xlabel("temporal SNR, median over regions")
    axes.set_ylabel(f"subjects (of {len(values)})")
    median, lowest = significant_digits(float(np.median(values)), 3), significant_digits(float(values.min()), 3)
    titled(axes, "Signal to noise", f"line: median {median}; lowest {lowest}")


def _say(axes: Axes, text: str) -> None:
    """Write text in place of a plot."""
    axes.text(0.5, 0.55, text, ha="center", transform=axes.transAxes, color=FAINT)
    axes.set(xticks=[], yticks=[])
    axes.spines[["left", "bottom"]].set_visible(False)


def _coverage(axes: Axes, coverage: pd.DataFrame) -> None:
    by_region = coverage.groupby("region")["coverage"].agg(["mean", "min"]).sort_values("mean")
    order = np.arange(1, len(by_region) + 1)
    series_only = coverage["coverage"].isin([0, 1]).all()
    if not series_only:
        axes.fill_between(
            order, 100 * by_region["min"].to_numpy(), 100 * by_region["mean"].to_numpy(),
            color=ACCENT, alpha=0.18, linewidth=0, step="mid",
        )  # fmt: skip
    axes.step(order, 100 * by_region["mean"].to_numpy(), where="mid", color=ACCENT)
    axes.set_xlabel(f"regions, lowest first (of {len(by_region)})")
    axes.set_ylabel("subjects with a signal (%)" if series_only else "voxels with a signal (%)")
    axes.set_ylim(-2, 104)
    if by_region["min"].min() >= 1:
        note = "every region seen in every subject"
    else:
        note = f"lowest: {by_region.index[0]}, mean {rounded(100 * by_region['mean'].iloc[0], 1)} %"
    titled(axes, "Coverage of regions", note)


def _silent(axes: Axes, kept: pd.DataFrame) -> None:
    count = kept["silent_regions"].fillna(0).astype("int64")
    affected = np.sort(count[count > 0].to_numpy())[::-1]
    if not len(affected):
        titled(axes, "Regions without signal")
        _say(axes, f"none in {len(kept)} subjects")
        return
    places = np.arange(1, len(affected) + 1)
    axes.vlines(places, 0, affected, color=ACCENT, alpha=0.5, linewidth=1.6 if len(affected) < 40 else 1)
    axes.plot(places, affected, "o", color=ACCENT, markersize=4 if len(affected) < 40 else 2.5)
    axes.set_ylim(0, 1.05 * affected[0])
    axes.set_xlim(0.2, len(affected) + 0.8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel(f"affected subjects ({len(affected)} of {len(kept)})")
    axes.set_ylabel("regions without signal")
    titled(axes, "Regions without signal", f"most in one subject: {affected[0]}")


# Motion: between patients and controls, between sites, and in the connectivity itself (QC-FC).


def motion_figure(
    people: pd.DataFrame, connections: pd.DataFrame, limit: float, words: ClassWords = DIAGNOSIS_WORDS
) -> Figure:
    """Mean framewise displacement by diagnosis and by site, and its correlation with every connection.

    Args:
        people: the participants with their measures.
        connections: table of `imaging.quality.qc_fc`; empty if nothing could be correlated.
        limit: mean displacement in mm that marks strong motion.
        words: names of the classes.
    """
    kept = used(people)
    if kept["mean_fd"].isna().all():
        return note_figure("motion was not measured")
    sites = sorted(kept["site"].unique())
    figure = new_figure(WIDE, max(2.9, 0.95 + 0.16 * len(sites)))
    groups, by_site, related = figure.subplots(1, 3, width_ratios=[0.85, 1.1, 1.15])
    _groups(groups, kept, limit, words)
    _sites(by_site, kept, sites, limit)
    _related(related, connections, int(kept["mean_fd"].notna().sum()))
    return figure


def _groups(axes: Axes, kept: pd.DataFrame, limit: float, words: ClassWords) -> None:
    ticks, colours = [], class_colours(words.count)
    for place, code in enumerate(words.shown):
        values = kept.loc[kept["diagnosis"] == code, "mean_fd"].dropna().to_numpy(dtype=np.float64)
        strip(axes, place, values, colours[code])
        ticks.append(f"{words.short[code]}\nn = {len(values)}")
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_xlim(-0.55, len(ticks) - 0.45)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("mean framewise displacement (mm)")
    known = kept["mean_fd"].dropna()
    axes.set_ylim(0, 1.05 * max(float(known.max()), limit))
    axes.axhline(limit, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    above = f"{int((known > limit).sum())} of {len(known)} above {limit:g} mm"
    titled(axes, words.listed[:1].upper() + words.listed[1:], above)


def _sites(axes: Axes, kept: pd.DataFrame, sites: list[str], limit: float) -> None:
    titled(axes, "Sites", "dot: median; line: middle half of the subjects")
    for row, site in enumerate(sites):
        values = kept.loc[kept["site"] == site, "mean_fd"].dropna().to_numpy(dtype=np.float64)
        if len(values):
            low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
            axes.plot([low, high], [row, row], color=ACCENT, alpha=0.5, linewidth=2.5, solid_capstyle="round")
            axes.plot(median, row, "o", color=ACCENT, markersize=4)
    axes.axvline(limit, color=FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    axes.set_xlim(left=0)
    axes.set_xlabel("mean framewise displacement (mm)")
    axes.grid(axis="x")
    horizontal_rows(axes, [str(site) for site in sites])
    axes.tick_params(axis="y", labelsize=7.5 if len(sites) > 12 else 8)


def _related(axes: Axes, connections: pd.DataFrame, subjects: int) -> None:
    titled(axes, "Connections (QC-FC)", "line: expected if motion left no trace")
    r = connections["r"].dropna().to_numpy(dtype=np.float64)
    if not len(r):
        axes.text(0.5, 0.5, "not measured", ha="center", transform=axes.transAxes, color=FAINT)
        axes.set(xticks=[], yticks=[])
        return
    chance = 1 / np.sqrt(max(subjects - 1, 1))
    reach = max(1.05 * float(np.abs(r).max()), 3.5 * chance)
    edges = np.linspace(-reach, reach, 51)
    counts, _, _ = axes.hist(r, list(edges), color="#9aa7c7", edgecolor="white", linewidth=0.3)
    grid = np.linspace(-reach, reach, 300)
    expected = stats.norm.pdf(grid, scale=chance) * len(r) * (edges[1] - edges[0])
    axes.plot(grid, expected, color=INK)
    axes.set_ylim(0, 1.05 * max(float(np.max(counts)), float(expected.max())))
    axes.set_xlabel("correlation with mean FD, over subjects")
    axes.set_ylabel(f"connections (of {len(r):,})")


# Draw the figures that describe a cohort's subjects and scans.


def draw_cohort(
    participants: str,
    included: str,
    measures: str,
    connections: str,
    coverage: Sequence[str],
    flag: FlagSettings,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the SVGs called flow, sites, ages, series, motion and quality.

    Args:
        participants: the phenotype artefact.
        included: the subjects of the analysis.
        measures: the measures of quality.
        connections: correlation of every connection with motion.
        coverage: the coverage tables of all parts.
        flag: limits beyond which a subject is listed.
        outputs: figure -> path.
        words: names of the classes.
    """
    people = read_cohort(participants, included, measures)
    covered = pd.concat([read_table(path, ["subject", "region", "coverage"]) for path in coverage], ignore_index=True)
    with drawing():
        save_svg(flow_figure(people, words), outputs["flow"])
        save_svg(sites_figure(people, words), outputs["sites"])
        save_svg(ages_figure(people, words), outputs["ages"])
        save_svg(series_figure(people), outputs["series"])
        save_svg(motion_figure(people, read_table(connections, ["r", "p"]), flag.mean_fd, words), outputs["motion"])
        save_svg(quality_figure(people, covered, flag.unlike), outputs["quality"])
