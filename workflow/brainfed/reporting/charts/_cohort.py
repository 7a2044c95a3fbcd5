"""Charts of a cohort's subjects and scans: exclusions, sites, ages, length of the scans, motion, quality."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.cohort.settings import FlagSettings
from brainfed.reporting import (
    ACCENT,
    FAINT,
    INK,
    KEPT,
    ODD,
    PATIENT,
    RULE,
    SEX_COLOURS,
    UNLABELLED,
    class_colours,
    read_cohort,
    rounded,
    significant_digits,
    site_table,
    used,
)
from brainfed.reporting.charts._distributions import box_rows, histogram
from brainfed.reporting.charts._style import (
    Chart,
    Line,
    apart,
    dot_rows,
    height_of,
    note_chart,
    save_chart,
    titled,
    tooltip,
)
from brainfed.reporting.tables import Count, flow_steps
from brainfed.runtime import read_table

Values = NDArray[np.float64]
SMALL, TALL = 205, 200
"""Pixels of each side of a panel of three or four."""

THREE_DIGITS, TWO_DECIMALS = partial(significant_digits, digits=3), partial(rounded, digits=2)

# The flow chart of exclusions: a box a step, beside the line down the excluded subjects with their reasons.

WIDTH, SIDE, BOX, LINE_HEIGHT, GAP = 360, 56, 48, 17, 16
"""Pixels: the chart, the left edge of the boxes beside the line, a box, a line of text, the space between boxes."""
LETTERS = 44
"""Of a line in a box beside the line."""


def flow_chart(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Chart:
    """From the rows of the phenotype table to the analysed subjects, with the exclusions of every step."""
    everybody, steps = flow_steps(people)
    boxes, lines, texts = [], [], []

    def box(top: float, count: int, title: str, classes: str, colour: str) -> None:
        boxes.append({"left": 0, "right": WIDTH, "top": top, "bottom": top + BOX})
        middle = top + BOX / 2
        texts.append({"x": 12, "y": middle, "words": str(count), "colour": colour, "size": 22, "bold": True})
        left = 26 + 14 * max(len(str(count)), 3)
        texts.append({"x": left, "y": middle - (8 if classes else 0), "words": title, "colour": colour, "bold": True})
        texts.append({"x": left, "y": middle + 9, "words": classes})

    box(0, everybody.subjects, "in the phenotype table", everybody.described(words), FAINT)
    top = float(BOX)
    for step in steps or (None,):
        said = ["nobody was left out"]
        if step is not None:
            texts.append({"x": SIDE + 10, "y": top + GAP + 15, "bold": True, "colour": ODD,
                          "words": f"{sum(count.subjects for _, count in step.reasons)} left out"})  # fmt: skip
            said = [line for reason in step.reasons for line in _reason(*reason, words)]
        head = 18 if step is not None else 0
        height = 12 + head + LINE_HEIGHT * len(said)
        bottom = top + height + 2 * GAP
        boxes.append({"left": SIDE, "right": WIDTH, "top": top + GAP, "bottom": top + GAP + height})
        lines.append({"x": 24, "x2": 24, "y": top, "y2": bottom - 5})
        lines.append({"x": 24, "x2": SIDE, "y": top + GAP + height / 2, "y2": top + GAP + height / 2})
        texts.append({"x": 24, "y": bottom - 4, "words": "\u25bc", "colour": FAINT, "middle": True})
        first = top + GAP + 15 + head
        for row, line in enumerate(said):
            texts.append(
                {"x": SIDE + 10 + 14 * line.startswith(" "), "y": first + LINE_HEIGHT * row, "words": line.strip()}
            )
        remaining = step.remaining if step is not None else everybody
        last = step is None or step is steps[-1]
        title = "analysed" if last or step is None else step.passed
        box(bottom, remaining.subjects, title, remaining.described(words), KEPT if last else FAINT)
        top = bottom + BOX
    scale = alt.Scale(domain=[0, WIDTH], nice=False), alt.Scale(domain=[top, 0], nice=False)
    x, y = alt.X("x:Q", scale=scale[0], axis=None), alt.Y("y:Q", scale=scale[1], axis=None)
    frames = alt.Chart(pd.DataFrame(boxes)).mark_rect(fill="transparent", stroke=RULE, cornerRadius=5)
    words_of = pd.DataFrame(texts).fillna({"colour": INK, "size": 11.5, "bold": False, "middle": False})
    base = alt.Chart(words_of).encode(
        x=x, y=y, text="words:N", color=alt.Color("colour:N", scale=None), size=alt.Size("size:Q", scale=None)
    )
    said_layers = [
        base.transform_filter(
            f"datum.bold === {str(bold).lower()} && datum.middle === {str(middle).lower()}"
        ).mark_text(align="center" if middle else "left", baseline="middle", fontWeight="bold" if bold else "normal")
        for bold, middle in ((True, False), (False, True), (False, False))
    ]
    rules = alt.Chart(pd.DataFrame(lines)).mark_rule(color=FAINT).encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    framed = frames.encode(
        x=alt.X("left:Q", scale=scale[0], axis=None), x2="right:Q", y=alt.Y("top:Q", scale=scale[1], axis=None),
        y2="bottom:Q",
    )  # fmt: skip
    return alt.layer(rules, framed, *said_layers).properties(width=WIDTH, height=round(top))


def _reason(why: str, count: Count, words: ClassWords) -> list[str]:
    """A reason with its number; a long one continues in an indented line."""
    classes = count.described(words)
    text = f"{count.subjects} {why}" + (f" ({classes})" if classes else "")
    return textwrap.wrap(text, LETTERS, subsequent_indent="  ")


# Sites and ages of the subjects.


def sites_chart(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Chart:
    """Analysed subjects by site, as bars of the classes and of subjects without a label."""
    counts = site_table(people, words)
    colours = class_colours(words.count)
    parts = {**{words.short[code]: colours[code] for code in words.shown}, "unlabelled": UNLABELLED}
    shown = {name: colour for name, colour in parts.items() if name in counts}
    table = counts.melt("site", list(shown), "class", "subjects").assign(site=lambda rows: rows["site"].astype(str))
    end = table.groupby("site")["subjects"].cumsum()
    table = table.assign(start=end - table["subjects"], end=end, middle=end - table["subjects"] / 2)
    named = table[table["subjects"] >= 0.05 * end.max()]
    order = [str(site) for site in counts["site"]]
    y = alt.Y("site:N", sort=order, axis=alt.Axis(title=None, labelPadding=8))
    x = alt.X("start:Q", axis=alt.Axis(title=f"analysed subjects (n = {table['subjects'].sum()})", tickCount=5))
    colour = alt.Color(
        "class:N", scale=alt.Scale(domain=list(shown), range=list(shown.values())),
        legend=alt.Legend(title=None, orient="top", symbolType="square"),
    )  # fmt: skip
    tip = tooltip("site", "class", "subjects")
    bars = alt.Chart(table).mark_bar().encode(x=x, x2="end:Q", y=y, color=colour, tooltip=tip)
    numbers = alt.Chart(named).mark_text(fontSize=10.5).encode(
        x="middle:Q", y=y, text="subjects:Q", tooltip=tip,
        color=alt.condition(f"datum.class === '{words.short[1]}'", alt.value("white"), alt.value("#1d2228"))
        if colours[1] == PATIENT else alt.value("#1d2228"),
    )  # fmt: skip
    return alt.layer(bars, numbers).properties(width=300, height=height_of(order))


def ages_chart(people: pd.DataFrame, words: ClassWords = DIAGNOSIS_WORDS) -> Chart:
    """Age of the analysed subjects by class and sex: every subject a dot, quartiles as a box."""
    kept = used(people)
    if words.target == "sex":
        kept = kept.assign(sex=kept["diagnosis"].map(words.singular))
    groups: dict[str, tuple[str, Values]] = {}
    for code in words.shown:
        for sex in ("male", "female"):
            if words.target != "sex" or words.singular[code] == sex:
                ages = kept.loc[(kept["diagnosis"] == code) & (kept["sex"] == sex), "age"]
                name = sex if words.target == "sex" else f"{sex} {words.short[code]}"
                groups[f"{name} (n = {len(ages)})"] = SEX_COLOURS[sex], _known(ages)
    unknown = int(kept[["age", "sex"]].isna().any(axis=1).sum())
    note = f"{unknown} without age or sex not shown" if unknown else ""
    panel = box_rows(groups, "age (years)", width=270, dots=True)
    return titled(panel, "", note) if note else panel


def _known(values: "pd.Series[float]") -> Values:
    return np.asarray(values.dropna(), dtype=np.float64)


# Length of the scans by site, and their quality: similarity of connectivity, signal to noise, coverage, silent regions.


def series_chart(people: pd.DataFrame) -> Chart:
    """Number of volumes, repetition time and length of the scans of every site."""
    kept = used(people)
    if kept["timepoints"].isna().all():
        return note_chart("there are no scans in time: nothing has a length")
    kept = kept.assign(minutes=kept["kept_seconds"] / 60)
    after = " left after scrubbing" if (kept["timepoints"] < kept["volumes"]).any() else ""
    titles = {
        "timepoints": f"volumes{after}", "tr": "repetition time (s)",
        "minutes": f"minutes{after}" if after else "scan length (min)",
    }  # fmt: skip
    shown = [column for column in titles if kept[column].notna().any()]
    named = kept.groupby("site")["site"].transform(lambda site: f"{site.iloc[0]} (n = {len(site)})")
    panels = [
        _by_site(kept[column], named, titles[column], (0.0, 1.0), THREE_DIGITS, named=column == shown[0])
        for column in shown
    ]
    if kept["tr"].isna().all():
        panels[-1] = titled(panels[-1], "", "repetition times are not known")
    return alt.hconcat(*panels, spacing=60)


def _by_site(
    values: "pd.Series[float]",
    sites: "pd.Series[str]",
    title: str,
    ends: tuple[float, float],
    text: Callable[[float], str],
    *,
    named: bool,
    lines: Sequence[Line] = (),
) -> Chart:
    """A row a site: the median as a dot, a line from one quantile to another, and the median's number."""
    rows = []
    for site, own in values.groupby(sites):
        known = _known(own)
        low, middle, high = np.quantile(known, [ends[0], 0.5, ends[1]]) if len(known) else [np.nan] * 3
        shown = text(float(middle))
        rows.append({"site": str(site), "low": low, "mean": middle, "high": high, "shown": shown, "median": shown})
    table = pd.DataFrame(rows).assign(group="", hollow=False).round({"low": 4, "mean": 4, "high": 4})
    groups = {"": ("", ACCENT)}
    tip = ("site", "median")
    return dot_rows(table, title, groups, tip, width=SMALL, row="site", lines=lines, named=named, legend=False)


def quality_chart(people: pd.DataFrame, coverage: pd.DataFrame, unlike: float) -> Chart:
    """Similarity of each subject's connectivity to the others', signal to noise, coverage, regions without signal.

    Args:
        people: the participants with their measures.
        coverage: subject, region, coverage.
        unlike: a robust z below minus this value marks a subject unlike the others.
    """
    kept = used(people)
    covered = coverage[coverage["subject"].isin(set(kept["subject"]))]
    panels = [_likeness(kept, unlike)]
    if kept["tsnr"].notna().any():
        panels.append(_tsnr(_known(kept["tsnr"])))
    if len(covered):
        panels.append(_coverage(covered))
    if kept["silent_regions"].notna().any():
        panels.append(_silent(kept["silent_regions"].fillna(0).astype("int64")))
    return alt.hconcat(*panels, spacing=26)


def _likeness(kept: pd.DataFrame, unlike: float) -> Chart:
    known = kept.dropna(subset=["typicality"]).sort_values("typicality", kind="stable")
    title = "Likeness of connectivity"
    if known.empty:
        return titled(note_chart("not measured", SMALL, TALL), title, "not measured")
    odd = known["typicality_z"] < -unlike
    table = pd.DataFrame({"place": range(1, len(known) + 1), "r": known["typicality"].round(4), "odd": odd})
    chart = alt.Chart(table).mark_circle(opacity=1).encode(
        x=alt.X("place:Q", title=f"subjects, least alike first (of {len(known)})", axis=alt.Axis(tickCount=4)),
        y=alt.Y("r:Q", title="correlation with the others' mean", scale=alt.Scale(zero=False)),
        color=alt.condition("datum.odd", alt.value(ODD), alt.value(ACCENT)),
        size=alt.condition("datum.odd", alt.value(40), alt.value(10)), tooltip=tooltip("place", "r"),
    )  # fmt: skip
    note = f"{int(odd.sum())} unlike the others" if odd.any() else "nobody unlike the others"
    return titled(chart.properties(width=SMALL, height=TALL), title, note)


def _tsnr(values: Values) -> Chart:
    low, high, median = float(values.min()), float(values.max()), float(np.median(values))
    edges = np.linspace(low, high if high > low else low + 1, 25)
    panel = histogram(
        values, edges, "temporal SNR, median over regions", f"subjects (of {len(values)})", width=SMALL, height=TALL
    )
    line = alt.Chart(pd.DataFrame({"at": [round(median, 4)]})).mark_rule(color=INK, strokeWidth=1.6).encode(x="at:Q")
    note = f"line: median {significant_digits(median, 3)}; lowest {significant_digits(low, 3)}"
    return titled(panel + line, "Signal to noise", note)


def _coverage(coverage: pd.DataFrame) -> Chart:
    regions = coverage.groupby("region")["coverage"].agg(["mean", "min"]).sort_values("mean").reset_index()
    series_only = coverage["coverage"].isin([0, 1]).all()
    table = pd.DataFrame({
        "place": range(1, len(regions) + 1), "region": regions["region"].astype(str),
        "mean": (100 * regions["mean"]).round(2), "least": (100 * regions["min"]).round(2),
    })  # fmt: skip
    x = alt.X("place:Q", axis=alt.Axis(title=f"regions, lowest first (of {len(regions)})", tickCount=4))
    y = alt.Y("mean:Q", title="subjects with a signal (%)" if series_only else "voxels with a signal (%)",
              scale=alt.Scale(domain=[0, 102], nice=False))  # fmt: skip
    base = alt.Chart(table).encode(x=x, tooltip=tooltip("region", "mean", "least"))
    band = (
        []
        if series_only
        else [base.mark_area(color=ACCENT, opacity=0.18, interpolate="step").encode(y=y, y2="least:Q")]
    )
    line = base.mark_line(color=ACCENT, interpolate="step", strokeWidth=1.6).encode(y=y)
    lowest = f"lowest: {table['region'].iloc[0]}, mean {rounded(100 * regions['mean'].iloc[0], 1)} %"
    note = "every region seen in every subject" if regions["min"].min() >= 1 else lowest
    return titled(alt.layer(*band, line).properties(width=SMALL, height=TALL), "Coverage of regions", note)


def _silent(count: "pd.Series[int]") -> Chart:
    affected = np.sort(count[count > 0].to_numpy())[::-1]
    if not len(affected):
        return titled(note_chart("none", SMALL, TALL), "Regions without signal", f"none in {len(count)} subjects")
    table = pd.DataFrame({"subject": range(1, len(affected) + 1), "regions": affected})
    whole = alt.Axis(tickMinStep=1, format="d", tickCount=4)
    x = alt.X("subject:Q", title=f"affected subjects ({len(affected)} of {len(count)})", axis=whole,
              scale=alt.Scale(domain=[0.2, len(affected) + 0.8], nice=False))  # fmt: skip
    base = alt.Chart(table).encode(
        x=x, y=alt.Y("regions:Q", title="regions without signal", axis=whole), tooltip=tooltip("regions")
    )
    stems = base.mark_rule(color=ACCENT, opacity=0.5, strokeWidth=1.6).encode(y2=alt.datum(0))
    dots = base.mark_circle(color=ACCENT, opacity=1, size=40 if len(affected) < 40 else 16)
    panel = alt.layer(stems, dots).properties(width=SMALL, height=TALL)
    return titled(panel, "Regions without signal", f"most in one subject: {affected[0]}")


# Motion: between patients and controls, between sites, and in the connectivity itself (QC-FC).

FD = "mean framewise displacement (mm)"


def motion_chart(
    people: pd.DataFrame, connections: pd.DataFrame, limit: float, words: ClassWords = DIAGNOSIS_WORDS
) -> Chart:
    """Mean framewise displacement by diagnosis and by site, and its correlation with every connection.

    Args:
        people: the participants with their measures.
        connections: table of `imaging._quality`; empty if nothing could be correlated.
        limit: mean displacement in mm that marks strong motion.
        words: names of the classes.
    """
    kept = used(people)
    if kept["mean_fd"].isna().all():
        return note_chart("motion was not measured")
    known, colours = _known(kept["mean_fd"]), class_colours(words.count)
    own = {code: _known(kept.loc[kept["diagnosis"] == code, "mean_fd"]) for code in words.shown}
    groups = {f"{words.short[code]} (n = {len(values)})": (colours[code], values) for code, values in own.items()}
    above = f"{int((known > limit).sum())} of {len(known)} above {limit:g} mm"
    sites = _by_site(kept["mean_fd"], kept["site"], FD, (0.25, 0.75), TWO_DECIMALS, named=True,
                     lines=[Line(0, dash=(1, 0)), Line(limit, dash=(4, 3))])  # fmt: skip
    r = _known(connections["r"])
    related: Chart = note_chart("not measured", SMALL, TALL)
    if len(r):
        chance = 1 / np.sqrt(max(int(kept["mean_fd"].notna().sum()) - 1, 1))
        reach = max(1.05 * float(np.abs(r).max()), 3.5 * chance)
        related = histogram(
            r, np.linspace(-reach, reach, 51), "correlation with mean FD, over subjects",
            f"connections (of {len(r):,})", chance=chance, width=SMALL, height=TALL,
        )  # fmt: skip
    listed = words.listed[:1].upper() + words.listed[1:]
    panels = (
        titled(box_rows(groups, FD, width=SMALL, dots=True, limit=limit, start=0), listed, above),
        titled(sites, "Sites", "dot: median; line: middle half of the subjects"),
        titled(related, "Connections (QC-FC)", "line: expected if motion left no trace"),
    )
    return apart(alt.hconcat(*panels, spacing=40))


# Draw the charts that describe a cohort's subjects and scans.


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
    save_chart(flow_chart(people, words), outputs["flow"])
    save_chart(sites_chart(people, words), outputs["sites"])
    save_chart(ages_chart(people, words), outputs["ages"])
    save_chart(series_chart(people), outputs["series"])
    save_chart(motion_chart(people, read_table(connections, ["r", "p"]), flag.mean_fd, words), outputs["motion"])
    save_chart(quality_chart(people, covered, flag.unlike), outputs["quality"])
