"""Figures of generated nodes: fidelity, distribution of features, doses."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import altair as alt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from brainfed.papers._fedni_figures import cost_chart, readings_chart, surface_chart
from brainfed.papers._fedni_nodes import MEASURES, ShownFidelity, read_fidelity
from brainfed.papers._fedni_readings import (
    LOWER,
    UPPER,
    Dose,
    by_cap,
    completing,
    dose_finding,
    limit_words,
    node_words,
    of_method,
    read_doses,
)
from brainfed.reporting import (
    GENERATED,
    INK,
    REAL,
    RULE,
    SERIES,
    ExperimentOutline,
    Scored,
    ShownVariant,
    read_scored,
    rounded,
    signed,
)
from brainfed.reporting.charts import (
    DASHED,
    SOLID,
    Chart,
    Drawing,
    DrawnLine,
    Line,
    Panel,
    apart,
    axis_title,
    dot_rows,
    headed,
    level,
    lines_panel,
    note_chart,
    numbered,
    over_people,
    steps,
    sure,
    titled,
)
from brainfed.runtime import Float32, Float64, read_arrays

# Fidelity of generated nodes: counts, features, phenotypes and edges against their baselines.

FEWEST_PARENTS = 10
"""Smallest number of parents for a normal interval."""


def fidelity_chart(outline: ExperimentOutline) -> Chart:
    """Above: calibration and edges; below: cosine and phenotypes. Filled: generated; hollow: baselines."""
    shown = read_fidelity(outline.variants)
    if not shown:
        return note_chart("fidelity is known under `graph.scope: global_cut` alone")
    panels = [titled(_calibration(shown), "How many are missing?")]
    for question, title, measure in (
        ("Joined to the right subjects?", "F1 of recovered edges", "edges"),
        ("Features like theirs?", "cosine with the true missing neighbours", "cosine"),
        ("... beyond the institution's mean?", "centred cosine (0: knows that mean alone)", "centred"),
        ("Of the right sex?", "share of pairs that agree", "sex"),
        ("Of the right age?", "share of pairs that agree", "age"),
    ):
        panels.append(titled(_rows(shown, title, measure), question))
    pairs = [alt.hconcat(*panels[start : start + 2], spacing=60) for start in range(0, len(panels), 2)]
    named = next((fidelity for fidelity in shown if fidelity.variant.name == outline.reference), shown[0])
    return headed(
        apart(alt.vconcat(*map(apart, pairs), spacing=26)),
        fidelity_finding(named),
        "filled: generated nodes; hollow: what a baseline that knows less would reach",
    )


def fidelity_finding(fidelity: ShownFidelity) -> str:
    """Whether generated features beat the mean of the visible neighbours."""
    gain = fidelity.gain
    if not gain.known or fidelity.parents < FEWEST_PARENTS:
        number = "none" if fidelity.parents == 0 else f"only {fidelity.parents}"
        return f"{fidelity.variant.title}: {number} of the subjects got generated neighbours, too few to judge"
    spread = f"{signed(gain.mean)} [{signed(gain.low)}, {signed(gain.high)}]"
    nearer = "closer to" if gain.low > 0 else "further from" if gain.high < 0 else "not shown to be closer to"
    return (
        f"{fidelity.variant.title}: generated features are {nearer} the true missing neighbours than the mean of the "
        f"visible ones (centred cosine {spread}, {fidelity.parents} subjects)"
    )


def _calibration(shown: Sequence[ShownFidelity]) -> Panel:
    points = [point for fidelity in shown for point in fidelity.calibration]
    right = 1.15 * max([0.5, *(predicted for predicted, _ in points)])
    top = 1.12 * max([0.5, *(true.mean for _, true in points)])
    end = min(right, top)
    lines = [
        DrawnLine(fidelity.variant.title, colour, fidelity.calibration, shape)
        for fidelity, (colour, shape) in zip(shown, SERIES, strict=False)
    ]
    lines.append(DrawnLine("exact", RULE, [(0.0, sure(0.0)), (end, sure(end))]))
    correlations = " \u00b7 ".join(rounded(fidelity.correlation, 2) for fidelity in shown)
    baseline = " \u00b7 ".join(rounded(fidelity.degree_correlation, 2) for fidelity in shown)
    across = ["predicted number", f"rank correlation {correlations} (number of visible ones: {baseline})"]
    return lines_panel(lines, across, "true number", width=280, height=150, domain=(0, top), columns=2, aside=False)


def _rows(shown: Sequence[ShownFidelity], title: str, measure: str) -> Panel:
    table = []
    for row, words in MEASURES[measure].items():
        for fidelity in shown:
            measured = fidelity.measures[measure][row]
            low, high = (measured.low, measured.high) if measured.known else (measured.mean, measured.mean)
            table.append({
                "variant": fidelity.variant.name, "method": fidelity.variant.title, "group": fidelity.variant.title,
                "row": words, "hollow": row != "generated", "mean": round(measured.mean, 4),
                "low": round(low, 4), "high": round(high, 4),
                "shown": rounded(measured.mean, 2) if np.isfinite(measured.mean) else "\u2013",
            })  # fmt: skip
    groups = {own.variant.title: (own.variant.title, colour) for own, (colour, _) in zip(shown, SERIES, strict=False)}
    return dot_rows(
        pd.DataFrame(table), title, groups, ("method", "row", "shown"), width=230, row="row",
        lines=[Line(0, dash=(1, 0))], legend=False, lanes=True,
    )  # fmt: skip


# Features of real and generated nodes, with and without the discriminator (FedNI Fig. 5).

BINS = 80
MOST_POINTS = 400
KINDS = {"real subjects": REAL, "generated nodes": GENERATED}


@dataclass(frozen=True)
class Nodes:
    """Real and generated nodes of one variant, first repeat.

    Attributes:
        real: (n, d).
        generated: (g, d).
    """

    real: Float32
    generated: Float32

    @property
    def spread(self) -> float:
        """Spread of the generated nodes around their mean, as a share of the spread of the real nodes."""
        return _reach(self.generated) / _reach(self.real)


def read_nodes(variant: ShownVariant) -> Nodes:
    """Read the features of a variant's subjects and generated nodes, of the first repeat (and fold)."""
    real = read_arrays(variant.feature_files[0], ["features"]).arrays["features"]
    generated = read_arrays(variant.fused[0], ["features"]).arrays["features"]
    return Nodes(real, generated)


def distribution_chart(outline: ExperimentOutline) -> Chart:
    """One column a variant: principal components above, values of all features below."""
    shown = [variant for variant in outline.variants if variant.fused and variant.feature_files]
    nodes = {variant.name: read_nodes(variant) for variant in shown}
    shown = [variant for variant in shown if len(nodes[variant.name].generated)]
    if not shown:
        return note_chart("no method of this experiment generates nodes")
    ends = [(float(part.min()), float(part.max())) for own in nodes.values() for part in (own.real, own.generated)]
    edges = np.linspace(min(low for low, _ in ends), max(high for _, high in ends), BINS + 1)
    width = max(180, 760 // len(shown) - 60)
    columns = [
        alt.vconcat(
            titled(_components(nodes[variant.name], width), variant.title), _values(nodes[variant.name], edges, width)
        )
        for variant in shown
    ]
    spreads = [f"{variant.title} {rounded(100 * nodes[variant.name].spread, 0)} %" for variant in shown]
    finding = f"How far generated nodes spread, where real ones have 100 %: {', '.join(spreads)}"
    return headed(alt.hconcat(*columns, spacing=30), finding)


def _reach(rows: Float32) -> float:
    """Root of the summed variance of all features."""
    return float(np.sqrt(rows.var(axis=0, dtype=np.float64).sum()))


def _components(nodes: Nodes, width: int) -> Panel:
    """The first two components of the real nodes; at most `MOST_POINTS` of either kind are drawn, evenly chosen."""
    plane = PCA(2, svd_solver="randomized", random_state=0).fit(nodes.real)
    parts = []
    for kind, rows in zip(KINDS, (nodes.real, nodes.generated), strict=True):
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, MOST_POINTS).astype(int))]
        first, second = plane.transform(chosen).T
        parts.append(pd.DataFrame({"series": kind, "first": first.round(2), "second": second.round(2)}))
    share = 100 * plane.explained_variance_ratio_.sum()
    titles = ["first principal component", f"(both hold {rounded(share, 0)} % of the variance)"]
    legend = alt.Legend(title=None, orient="top")
    drawn = alt.Chart(pd.concat(parts, ignore_index=True)).mark_point(filled=True, size=22, opacity=0.55).encode(
        x=alt.X("first:Q", title=titles, axis=alt.Axis(tickCount=5, grid=False)),
        y=alt.Y("second:Q", title="second principal component", axis=alt.Axis(tickCount=5, grid=False)),
        color=alt.Color("series:N", scale=_scale(KINDS.values()), legend=legend),
        shape=alt.Shape("series:N", scale=_scale(["circle", "triangle-up"]), legend=legend),
    )  # fmt: skip
    return alt.layer(drawn).properties(width=width, height=230)


def _scale(values: Iterable[str]) -> alt.Scale:
    return alt.Scale(domain=list(KINDS), range=list(values))


def _values(nodes: Nodes, edges: Float64, width: int) -> Panel:
    middles = ((edges[1:] + edges[:-1]) / 2).round(4)
    parts = [
        pd.DataFrame({
            "series": kind, "value": middles, "density": np.histogram(rows, bins=edges, density=True)[0].round(4)
        })
        for kind, rows in zip(KINDS, (nodes.real, nodes.generated), strict=True)
    ]  # fmt: skip
    x = alt.X("value:Q", title="value of a feature, all nodes and features", axis=alt.Axis(tickCount=5, grid=False))
    y = alt.Y("density:Q", title="density", axis=alt.Axis(tickCount=4))
    drawn = steps(pd.concat(parts, ignore_index=True), x, y, KINDS, legend=False)
    return alt.layer(drawn).properties(width=width, height=150)


# Scores of simulated cohorts against their dose, for completed and cut graphs.

SHARES = (-1.0, 2.0)
"""Limits of the shares' axis: the interval of a small gap is unbounded."""
MEANING = {
    "simulate.group_agreement": ["group agreement", "(0: groups say nothing of the diagnosis, 1: each shares one)"]
}
NO_GAP = "no certain gap"
TITLE = 46
"""Letters in a line above a panel."""


def dose_chart(axis: str, members: Sequence[ExperimentOutline], scored: Mapping[str, Scored]) -> Chart:
    """Above accuracy, below the recovered share of the gap; a column for few new nodes and one for many.

    Arguments as of `read_doses`.
    """
    doses, variants = read_doses(axis, members, scored), members[0].variants
    columns = by_cap(variants)
    # A line without points for each name of new nodes, the same in every column.
    words = dict.fromkeys(node_words(variant, shown) for shown in columns for variant in shown)
    marks = {word: numbered(number, word) for number, word in enumerate(words)}
    ticks = {dose.value: f"{dose.value:g}" for dose in doses}
    bounds, others = _bounds(doses, variants), _others(doses, variants)
    key = [*bounds, *marks.values(), *others]
    pairs = []
    for shown in columns:
        lines = [
            replace(marks[node_words(variant, shown)],
                    points=[(dose.value, dose.scores[variant.name]) for dose in doses])
            for variant in shown
        ]  # fmt: skip
        upper = lines_panel(
            [*bounds, *lines, *others], "", "accuracy (mean over runs)", width=360, height=250, ticks=ticks, key=key,
            columns=2,
        )  # fmt: skip
        upper = upper.properties(title=alt.Title(textwrap.wrap(limit_words(shown), TITLE), frame="group"))
        pairs.append((upper, _shares(doses, shown, marks, MEANING.get(axis, axis_title(axis)), key)))
    panels = alt.vconcat(
        *(alt.hconcat(*(pair[row] for pair in pairs), spacing=40).resolve_scale(y="shared") for row in (0, 1))
    )
    return headed(panels, dose_finding(axis_title(axis), doses, variants))


def _bounds(doses: Sequence[Dose], variants: Sequence[ShownVariant]) -> list[DrawnLine]:
    """The two ends of the gap, with bands."""
    words = {UPPER: "pooled data, nobody missing", LOWER: "the cut graph as it is"}
    ends = [(of_method(variants, method), said) for method, said in words.items()]
    return [
        DrawnLine(f"{end.title}: {said}", INK, [(dose.value, dose.scores[end.name]) for dose in doses],
                  dash=DASHED if end.method == LOWER else SOLID, band=True)
        for end, said in ends
    ]  # fmt: skip


def _others(doses: Sequence[Dose], variants: Sequence[ShownVariant]) -> list[DrawnLine]:
    """The variants that neither complete a graph nor bound the gap."""
    completed = {variant.name for variant in completing(variants)}
    rest = [variant for variant in variants if variant.name not in completed and variant.method not in (LOWER, UPPER)]
    return [
        replace(level(number, variant.title, 0.0, (0.0, 0.0)),
                points=[(dose.value, sure(dose.scores[variant.name].mean)) for dose in doses])
        for number, variant in enumerate(rest)
    ]  # fmt: skip


def _shares(
    doses: Sequence[Dose],
    shown: Sequence[ShownVariant],
    marks: Mapping[str, DrawnLine],
    across: str | list[str],
    key: Sequence[DrawnLine],
) -> Panel:
    certain = [dose for dose in doses if dose.certain]
    ends = doses[0].value, doses[-1].value
    bounds = [replace(line, points=[(end, sure(share)) for end in ends], band=False)
              for line, share in zip(key[:2], (1.0, 0.0), strict=True)]  # fmt: skip
    lines = [
        replace(
            marks[node_words(variant, shown)],
            points=[(dose.value, over_people(share.share, share.low, share.high))
                    for dose in certain for share in [dose.shares[variant.name]]],
        )
        for variant in shown
    ]  # fmt: skip
    panel = lines_panel(
        [*bounds, *lines], across, "share of the gap recovered", width=360, height=210, domain=_frame(doses), key=key,
        ticks={dose.value: f"{dose.value:g}" for dose in doses}, per_cent=True, columns=2,
    )  # fmt: skip
    none = pd.DataFrame({"at": [dose.value for dose in doses if not dose.certain], "words": NO_GAP})
    if none.empty:
        return panel
    said = alt.Chart(none).mark_text(angle=270, style="quiet").encode(
        x="at:Q", y=alt.datum(0.5, type="quantitative"), text="words:N"
    )  # fmt: skip
    return alt.layer(panel, said).properties(width=360, height=210)


def _frame(doses: Sequence[Dose]) -> tuple[float, float]:
    """Lower and upper end of the shares' axis: all intervals, as far as `SHARES`."""
    shares = [share for dose in doses if dose.certain for share in dose.shares.values()]
    low, high = min([0.0, *(share.low for share in shares)]), max([1.0, *(share.high for share in shares)])
    return max(low - 0.08, SHARES[0]), min(high + 0.08, SHARES[1])


# Figures of FedNI's paper that belong to it alone.

FIGURES: Mapping[str, Drawing] = {
    "surface": lambda outline: surface_chart(outline, read_scored(outline)),
    "distribution": distribution_chart,
    "cost": cost_chart,
    "fidelity": fidelity_chart,
    "dose": lambda outline: dose_chart(
        outline.axes[0], outline.members, {member.cohort: read_scored(member) for member in outline.members}
    ),
    "readings": lambda outline: readings_chart(outline, read_scored(outline)),
}
"""Kind -> what draws it."""
