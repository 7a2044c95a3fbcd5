"""Charts of effect sizes between patients and controls, or between a class and all others.

Descriptive: they use every analysed subject and no method reads them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt
import numpy as np
import pandas as pd

from brainfed.cohort import ClassWords
from brainfed.imaging.morphometry import measure_of
from brainfed.reporting import (
    COLD,
    FAINT,
    RULE,
    SERIES,
    WARM,
    GroupEffects,
    group_effects,
    joined,
    labelled_subjects,
    signed,
)
from brainfed.reporting.charts._distributions import JITTER_SEED, LANE, histogram
from brainfed.reporting.charts._style import (
    Chart,
    Line,
    apart,
    coloured,
    dot_rows,
    height_of,
    save_chart,
    titled,
    tooltip,
)
from brainfed.runtime import canonical_json, read_arrays, write_text

# Of connections: how many have which effect, beside what equal groups give.


def effects_chart(contrasts: Sequence[GroupEffects]) -> Chart:
    """Histogram of Cohen's d over connections, against its distribution for equal groups; one panel a contrast."""
    return alt.vconcat(*map(_effects, contrasts), spacing=30)


def _effects(groups: GroupEffects) -> Chart:
    reach = 1.05 * float(np.abs(groups.effect).max() or 1)
    panel = histogram(
        groups.effect, np.linspace(-reach, reach, 61),
        ["effect size of a connection (Cohen's d)", "line: expected if the groups did not differ"],
        f"connections (of {len(groups.effect):,})", chance=groups.chance_sd, width=320, height=210,
    )  # fmt: skip
    many = groups.words.many[1]
    ends: list[tuple[int, Literal["left", "right"], str, str]] = [
        (0, "left", f"weaker in {many}", COLD),
        (320, "right", f"stronger in {many}", WARM),
    ]
    said = [
        alt.Chart(pd.DataFrame({"words": [words]})).mark_text(align=side, color=colour, fontWeight="bold").encode(
            x=alt.value(place), y=alt.value(-8), text="words:N"
        )
        for place, side, words, colour in ends
    ]  # fmt: skip
    return alt.layer(panel, *said)


# Of FreeSurfer measures: the strongest, and all of them by kind.

KINDS = {kind: colour for kind, (colour, _) in zip(("volume", "thickness", "area"), SERIES, strict=False)}
OTHER = "other"
SHOWN = 20


def draw_measures(
    measures: str, participants: str, included: str, outputs: Mapping[str, str], words: ClassWords
) -> None:
    """Write the SVG called measures, and the numbers called summary, to the paths `outputs`."""
    known = labelled_subjects(participants, included)
    file = read_arrays(measures, ["measures"])
    values = file.arrays["measures"][[file.subjects.index(subject) for subject in known]].astype(np.float64)
    codes = np.array(list(known.values()))
    contrasts = [group_effects(values, codes == code, named) for code, named in words.contrasts]
    names = tuple(file.metadata["regions"])
    save_chart(measures_chart(contrasts, names), outputs["measures"])
    summary = {
        "regions": len(names),
        "constant": int((np.ptp(values, axis=0) == 0).sum()),
        **joined([_summary(effects, names) for effects in contrasts]),
    }
    write_text(outputs["summary"], canonical_json(summary) + "\n")


def _summary(effects: GroupEffects, names: tuple[str, ...]) -> dict[str, Any]:
    strongest = [{"name": names[index], "d": round(float(effects.effect[index]), 3)} for index in effects.strongest(10)]
    return {**effects.counted, "strongest": strongest}


def measures_chart(contrasts: Sequence[GroupEffects], names: tuple[str, ...]) -> Chart:
    """The strongest Cohen's d, and all of them by kind of measure with the interval of chance; one row a contrast."""
    rows = [apart(alt.hconcat(*_measures(effects, names), spacing=60)) for effects in contrasts]
    return rows[0] if len(rows) == 1 else alt.vconcat(*rows, spacing=30)


def _measures(effects: GroupEffects, names: tuple[str, ...]) -> tuple[Chart, Chart]:
    words, d = effects.words, effects.effect.round(4)
    kinds = [str(measure_of(name)) if measure_of(name) in KINDS else OTHER for name in names]
    chosen = effects.strongest(SHOWN)
    title = f"effect size, {words.many[1]} minus {words.many[0]} (Cohen's d)"
    table = pd.DataFrame({
        "measure": [names[index] for index in chosen], "group": [kinds[index] for index in chosen], "mean": d[chosen],
        "low": np.minimum(d[chosen], 0), "high": np.maximum(d[chosen], 0), "hollow": False,
        "shown": [signed(float(value), 2) for value in d[chosen]],
    })  # fmt: skip
    groups = {kind: (kind, colour) for kind, colour in {**KINDS, OTHER: FAINT}.items()}
    largest = dot_rows(table, title, groups, ("measure", "shown"), width=330, row="measure", lines=[Line(0)])
    reach = round(1.96 * effects.chance_sd, 4)
    chance = alt.Chart(pd.DataFrame({"low": [-reach], "high": [reach]})).mark_rect(color=RULE, opacity=0.4)
    chance_band = chance.encode(x="low:Q", x2="high:Q")
    spread = np.random.default_rng(JITTER_SEED).uniform(-1, 1, len(names)).round(3)
    single = pd.DataFrame({"measure": list(names), "kind": kinds, "d": d, "place": spread})
    single = single[single["kind"] != OTHER]
    counted = {kind: f"{kind} (n = {kinds.count(kind)})" for kind in KINDS if kind in kinds}
    single["kind"] = single["kind"].map(counted)
    order = list(counted.values())
    dots = alt.Chart(single).mark_circle(size=24, opacity=0.6).encode(
        x=alt.X("d:Q", title=title), y=alt.Y("kind:N", sort=order, axis=alt.Axis(title=None, labelPadding=8)),
        yOffset=alt.YOffset("place:Q", scale=alt.Scale(domain=[-1.3, 1.3])), tooltip=tooltip("measure", "d"),
        color=coloured("kind", {title: KINDS[kind] for kind, title in counted.items()}, None),
    )  # fmt: skip
    every = alt.layer(chance_band, Line(0).drawn, dots).properties(width=260, height=1.4 * LANE * max(len(order), 1))
    return (
        titled(alt.layer(chance_band, largest).properties(width=330, height=height_of(table)),
               f"The {len(chosen)} strongest of {len(names)}"),
        titled(every, "All, by kind"),
    )  # fmt: skip
