"""Figures of generated nodes: fidelity, distribution of features, doses."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MultipleLocator, PercentFormatter
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from brainfed.papers.fedni_figures import cost_figure, readings_figure, surface_figure
from brainfed.papers.fedni_nodes import (
    AGREEMENT_ROWS,
    COSINE_ROWS,
    EDGE_ROWS,
    Measured,
    ShownFidelity,
    read_fidelity,
)
from brainfed.papers.fedni_readings import (
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
from brainfed.reporting.figures.interval_rows import text_column
from brainfed.reporting.figures.of_papers import Drawing
from brainfed.reporting.figures.style import (
    FAINT,
    GENERATED,
    INK,
    MALE,
    REAL,
    RULE,
    SERIES,
    WIDE,
    headed,
    horizontal_rows,
    key_below,
    new_figure,
    note_figure,
)
from brainfed.reporting.figures.sweeps import axis_title
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded, signed
from brainfed.reporting.scored import Scored, read_scored
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import read_arrays

# Fidelity of generated nodes: counts, features, phenotypes and edges against their baselines.

FloatMatrix = NDArray[np.float32]


FEWEST_PARENTS = 10
"""Smallest number of parents for a normal interval."""

Reads = Callable[[ShownFidelity], Mapping[str, Measured]]


def fidelity_figure(outline: ExperimentOutline) -> Figure:
    """Above: calibration and edges; below: cosine and phenotypes. Filled: generated; hollow: baselines."""
    shown = read_fidelity(outline.variants)
    if not shown:
        return note_figure("fidelity is known under `graph.scope: global_cut` alone")
    figure = new_figure(WIDE, 6.6)
    grid = figure.subplots(3, 2, height_ratios=(1.55, 1, 1))
    _calibration(grid[0, 0], shown)
    _rows(grid[0, 1], shown, EDGE_ROWS, lambda one: {row: Measured(one.edges[row], np.nan) for row in EDGE_ROWS})
    grid[0, 1].set_title("Joined to the right subjects?")
    grid[0, 1].set_xlabel("F1 of recovered edges")
    _rows(grid[1, 0], shown, COSINE_ROWS, lambda one: one.cosine)
    grid[1, 0].set_title("Features like theirs?")
    grid[1, 0].set_xlabel("cosine with the true missing neighbours")
    _rows(grid[1, 1], shown, COSINE_ROWS, lambda one: one.centred)
    grid[1, 1].set_title("... beyond the institution's mean?")
    grid[1, 1].set_xlabel("centred cosine (0: knows that mean alone)")
    for axes in grid[1:, 1]:
        axes.tick_params(labelleft=False)
    for axes, name, reads in ((grid[2, 0], "sex", _sex), (grid[2, 1], "age", _age)):
        _rows(axes, shown, AGREEMENT_ROWS, reads)
        axes.set_title(f"Of the right {name}?")
        axes.set_xlabel("share of pairs that agree")
    named = next((one for one in shown if one.variant.name == outline.reference), shown[0])
    headed(figure, fidelity_finding(named))
    key = [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=f"{one.variant.title} (hollow: its baselines)")
        for one, (colour, marker) in zip(shown, SERIES, strict=False)
    ]
    key_below(figure, key, columns=2)
    return figure


def fidelity_finding(found: ShownFidelity) -> str:
    """Whether generated features beat the mean of the visible neighbours."""
    gain = found.gain
    if not gain.known or not np.isfinite(gain.reach) or found.parents < FEWEST_PARENTS:
        number = "none" if found.parents == 0 else f"only {found.parents}"
        return f"{found.variant.title}: {number} of the subjects got generated neighbours, too few to judge"
    spread = f"{signed(gain.mean)} [{signed(gain.mean - gain.reach)}, {signed(gain.mean + gain.reach)}]"
    nearer = "closer to" if gain.mean > 0 else "further from"
    if abs(gain.mean) <= gain.reach:
        nearer = "not shown to be closer to"
    return (
        f"{found.variant.title}: generated features are {nearer} the true missing neighbours than the mean of the "
        f"visible ones (centred cosine {spread}, {found.parents} subjects)"
    )


def _sex(found: ShownFidelity) -> Mapping[str, Measured]:
    return found.sex


def _age(found: ShownFidelity) -> Mapping[str, Measured]:
    return found.age


def _calibration(axes: Axes, shown: Sequence[ShownFidelity]) -> None:
    points = [point for one in shown for point in one.calibration]
    right = 1.15 * max([0.5, *(point.predicted for point in points)])
    top = 1.12 * max([0.5, *(point.true for point in points)])
    end = min(right, top)
    axes.plot([0, end], [0, end], color=RULE, linewidth=0.9)
    axes.annotate("exact", (end, end), (-2, 3), textcoords="offset points", ha="right", color=FAINT, fontsize=7.5)
    for one, (colour, marker) in zip(shown, SERIES, strict=False):
        axes.errorbar(
            [point.predicted for point in one.calibration], [point.true for point in one.calibration],
            yerr=np.nan_to_num([point.reach for point in one.calibration]), color=colour, marker=marker, markersize=5,
            linewidth=1, elinewidth=1,
        )  # fmt: skip
    found = " \u00b7 ".join(rounded(one.correlation, 2) for one in shown)
    baseline = " \u00b7 ".join(rounded(one.degree_correlation, 2) for one in shown)
    axes.set(xlim=(0, right), ylim=(0, top))
    axes.set_title("How many are missing?")
    axes.set_xlabel(f"predicted number\nrank correlation {found} (number of visible ones: {baseline})")
    axes.set_ylabel("true number")
    axes.grid(axis="y")


def _rows(axes: Axes, shown: Sequence[ShownFidelity], rows: Mapping[str, str], reads: Reads) -> None:
    texts = []
    for place, row in enumerate(rows):
        said = []
        for number, one in enumerate(shown):
            colour, marker = SERIES[number % len(SERIES)]
            found = reads(one)[row]
            y = place + 0.22 * (number - (len(shown) - 1) / 2)
            said.append(rounded(found.mean, 2) if found.known else "\u2013")
            if not found.known:
                continue
            if np.isfinite(found.reach):
                axes.plot([found.mean - found.reach, found.mean + found.reach], [y, y], color=colour, alpha=0.55)
            axes.plot(
                found.mean,
                y,
                marker,
                color=colour,
                markersize=5.5,
                markerfacecolor=colour if row == "generated" else "white",
            )
        texts.append(" \u00b7 ".join(said))
    horizontal_rows(axes, [rows[row].removeprefix("baseline: ") for row in rows])
    axes.margins(x=0.1)
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.0), max(high, 0.05))
    axes.grid(axis="x")
    text_column(axes, texts, range(len(texts)))


# Features of real and generated nodes, with and without the discriminator (FedNI Fig. 5).

BINS = 80
MOST_POINTS = 600
DASH = (0, (4, 1.2))


@dataclass(frozen=True)
class Nodes:
    """Real and generated nodes of one variant, first repeat.

    Attributes:
        real: (n, d).
        generated: (g, d).
    """

    real: FloatMatrix
    generated: FloatMatrix

    @property
    def spread(self) -> float:
        """Spread of the generated nodes around their mean, as a share of the spread of the real nodes."""
        return _reach(self.generated) / _reach(self.real)


def read_nodes(variant: ShownVariant) -> Nodes:
    """Read the features of a variant's subjects and generated nodes, of the first repeat (and fold)."""
    real = read_arrays(variant.feature_files[0], ["features"]).arrays["features"]
    generated = read_arrays(variant.fused[0], ["features"]).arrays["features"]
    return Nodes(real, generated)


def distribution_figure(outline: ExperimentOutline) -> Figure:
    """One column a variant: principal components above, values of all features below."""
    shown = [variant for variant in outline.variants if variant.fused and variant.feature_files]
    held = {variant.name: read_nodes(variant) for variant in shown}
    shown = [variant for variant in shown if len(held[variant.name].generated)]
    if not shown:
        return note_figure("no method of this experiment generates nodes")
    figure = new_figure(WIDE, 5.0)
    grid = figure.subplots(2, len(shown), squeeze=False, sharex="row", sharey="row", height_ratios=(1.35, 1))
    for column, variant in enumerate(shown):
        nodes = held[variant.name]
        _components(grid[0, column], nodes)
        _values(grid[1, column], nodes)
        grid[0, column].set_title(variant.title)
        if column:
            for axes in grid[:, column]:
                axes.tick_params(labelleft=False)
    grid[1, 0].set_ylim(0, None)
    grid[0, 0].set_ylabel("second principal component")
    grid[1, 0].set_ylabel("density")
    spreads = [f"{variant.title} {rounded(100 * held[variant.name].spread, 0)} %" for variant in shown]
    headed(figure, f"How far generated nodes spread, where real ones have 100 %: {', '.join(spreads)}")
    key_below(
        figure,
        [
            Line2D([], [], marker="o", markersize=5, color=REAL, label="real subjects"),
            Line2D([], [], marker="^", markersize=5, color=GENERATED, linestyle=DASH, label="generated nodes"),
        ],
    )
    return figure


def _reach(rows: FloatMatrix) -> float:
    """Root of the summed variance of all features."""
    return float(np.sqrt(rows.var(axis=0, dtype=np.float64).sum()))


def _components(axes: Axes, nodes: Nodes) -> None:
    """The first two components of the real nodes; at most `MOST_POINTS` of either kind are drawn, evenly chosen."""
    plane = PCA(2, svd_solver="randomized", random_state=0).fit(nodes.real)
    for rows, colour, marker, size in ((nodes.real, REAL, "o", 9), (nodes.generated, GENERATED, "^", 8)):
        chosen = rows[np.unique(np.linspace(0, len(rows) - 1, MOST_POINTS).astype(int))]
        x, y = plane.transform(chosen).T
        axes.scatter(x, y, s=size, color=colour, marker=marker, alpha=0.55, linewidths=0)
    share = 100 * plane.explained_variance_ratio_.sum()
    axes.set_xlabel(f"first principal component (both hold {rounded(share, 0)} % of the variance)")


def _values(axes: Axes, nodes: Nodes) -> None:
    low = float(min(nodes.real.min(), nodes.generated.min()))
    high = float(max(nodes.real.max(), nodes.generated.max()))
    edges = np.linspace(low, high, BINS + 1)
    for rows, colour, style in ((nodes.real, REAL, "-"), (nodes.generated, GENERATED, DASH)):
        density = np.histogram(rows, bins=edges, density=True)[0]
        axes.stairs(density, edges, color=colour, linewidth=1.5, linestyle=style)
        axes.stairs(density, edges, color=colour, alpha=0.12, fill=True)
    axes.set_xlabel("value of a feature, all nodes and features")


# Scores of simulated cohorts against their dose, for completed and cut graphs.

MARKS = (*SERIES, (MALE, "X"))
LEVELS = ((0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (4, 2)))
SHARES = (-1.0, 2.0)
"""Limits of the shares' axis: the interval of a small gap is unbounded."""
MEANING = {"simulate.group_agreement": "group agreement\n(0: groups say nothing of the diagnosis, 1: each shares one)"}
NO_GAP = "no certain gap"
KEYS = 3
"""Columns of the key."""
TITLE = 42
"""Letters in a line above a panel."""


def dose_figure(axis: str, members: Sequence[ExperimentOutline], scored: Mapping[str, Scored]) -> Figure:
    """Above accuracy, below the recovered share of the gap; a column for few new nodes and one for many.

    Args:
        axis: the swept setting, `simulate.group_agreement`.
        members: one experiment, a cohort each.
        scored: cohort -> its scores.
    """
    doses = read_doses(axis, members, scored)
    variants = members[0].variants
    columns = by_cap(variants)
    marks = _marks(columns)
    figure = new_figure(WIDE, 6.1 + 0.17 * (-(-(len(marks) + 4) // KEYS)))
    panels = figure.subplots(2, len(columns), sharex=True, sharey="row", squeeze=False, height_ratios=(1.25, 1))
    for place, shown in enumerate(columns):
        upper, lower = panels[:, place]
        _scores(upper, doses, variants, shown, marks)
        _shares(lower, doses, shown, marks)
        upper.set_title(textwrap.fill(limit_words(shown), TITLE))
        lower.set_xlabel(MEANING.get(axis, axis_title(axis)))
        lower.set_xticks([dose.value for dose in doses], [f"{dose.value:g}" for dose in doses])
    panels[0, 0].set_ylabel("accuracy (mean over runs)")
    panels[1, 0].set_ylabel("share of the gap recovered")
    panels[1, 0].set_ylim(_frame(doses))
    panels[1, 0].yaxis.set_major_locator(MultipleLocator(0.5))
    panels[1, 0].yaxis.set_major_formatter(PercentFormatter(1, symbol="\u00a0%"))
    figure.align_ylabels(panels[:, 0])
    headed(figure, dose_finding(axis_title(axis), doses, variants), width=108)
    key_below(figure, _key(variants, marks), columns=KEYS)
    return figure


def _marks(columns: Sequence[Sequence[ShownVariant]]) -> dict[str, tuple[str, str]]:
    """Name of the new nodes -> colour and marker, the same in every column."""
    words = dict.fromkeys(node_words(variant, shown) for shown in columns for variant in shown)
    return {word: MARKS[number % len(MARKS)] for number, word in enumerate(words)}


def _scores(
    axes: Axes,
    doses: Sequence[Dose],
    variants: Sequence[ShownVariant],
    shown: Sequence[ShownVariant],
    marks: Mapping[str, tuple[str, str]],
) -> None:
    values = [dose.value for dose in doses]
    for number, variant in enumerate(_levels(variants)):
        means = [dose.scores[variant.name].mean for dose in doses]
        axes.plot(values, means, color=FAINT, linestyle=LEVELS[number % len(LEVELS)], linewidth=1.1)
    for method, style in ((UPPER, "-"), (LOWER, "--")):
        name = of_method(variants, method).name
        low, high = ([getattr(dose.scores[name], end) for dose in doses] for end in ("low", "high"))
        axes.fill_between(values, low, high, color=INK, alpha=0.07, linewidth=0)
        axes.plot(values, [dose.scores[name].mean for dose in doses], color=INK, linestyle=style, linewidth=1.6)
    for number, variant in enumerate(shown):
        colour, marker = marks[node_words(variant, shown)]
        found = [dose.scores[variant.name] for dose in doses]
        reach = np.nan_to_num(np.array([[one.mean - one.low, one.high - one.mean] for one in found])).T
        axes.errorbar(
            _beside(values, number, len(shown)), [one.mean for one in found], yerr=reach, color=colour, marker=marker,
            markersize=5, linewidth=1.2, elinewidth=1,
        )  # fmt: skip
    axes.grid(axis="y")


def _shares(
    axes: Axes, doses: Sequence[Dose], shown: Sequence[ShownVariant], marks: Mapping[str, tuple[str, str]]
) -> None:
    certain = [dose for dose in doses if dose.certain]
    for level, style in ((1.0, "-"), (0.0, "--")):
        axes.axhline(level, color=INK, linestyle=style, linewidth=1.2)
    for number, variant in enumerate(shown):
        colour, marker = marks[node_words(variant, shown)]
        shares = [dose.shares[variant.name] for dose in certain]
        places = np.array(_beside([dose.value for dose in doses], number, len(shown)))
        x = places[[dose.certain for dose in doses]]
        reach = np.array([[one.share - one.low, one.high - one.share] for one in shares]).reshape(-1, 2).T
        axes.errorbar(
            x, [one.share for one in shares], yerr=reach, color=colour, marker=marker, markersize=5, linewidth=1.2,
            elinewidth=1,
        )  # fmt: skip
    for dose in doses:
        if not dose.certain:
            axes.text(dose.value, 0.5, NO_GAP, rotation=90, ha="center", va="center", color=FAINT, fontsize=7.5)
    axes.grid(axis="y")


def _frame(doses: Sequence[Dose]) -> tuple[float, float]:
    """Lower and upper end of the shares' axis: all intervals, as far as `SHARES`."""
    shares = [share for dose in doses if dose.certain for share in dose.shares.values()]
    low, high = min([0.0, *(share.low for share in shares)]), max([1.0, *(share.high for share in shares)])
    return max(low - 0.08, SHARES[0]), min(high + 0.08, SHARES[1])


def _beside(values: Sequence[float], number: int, count: int) -> list[float]:
    """Points moved sideways by a hundredth of the axis, so that intervals do not hide each other."""
    step = 0.014 * (values[-1] - values[0])
    return [value + step * (number - (count - 1) / 2) for value in values]


def _levels(variants: Sequence[ShownVariant]) -> list[ShownVariant]:
    """The variants that neither complete a graph nor bound the gap."""
    held = {variant.name for variant in completing(variants)}
    return [variant for variant in variants if variant.name not in held and variant.method not in (LOWER, UPPER)]


def _key(variants: Sequence[ShownVariant], marks: Mapping[str, tuple[str, str]]) -> list[Line2D]:
    pooled, cut = (of_method(variants, method).title for method in (UPPER, LOWER))
    lines = [
        Line2D([], [], color=INK, linewidth=1.6, label=f"{pooled}: pooled data, nobody missing"),
        Line2D([], [], color=INK, linewidth=1.6, linestyle="--", label=f"{cut}: the cut graph as it is"),
    ]
    lines += [
        Line2D([], [], color=colour, marker=marker, markersize=5, label=word)
        for word, (colour, marker) in marks.items()
    ]
    return lines + [
        Line2D([], [], color=FAINT, linestyle=LEVELS[number % len(LEVELS)], label=variant.title)
        for number, variant in enumerate(_levels(variants))
    ]


# Figures of FedNI's paper that belong to it alone.

FIGURES: Mapping[str, Drawing] = {
    "surface": lambda outline: surface_figure(outline, read_scored(outline)),
    "distribution": distribution_figure,
    "cost": cost_figure,
    "fidelity": fidelity_figure,
    "dose": lambda outline: dose_figure(
        outline.axes[0], outline.members, {member.cohort: read_scored(member) for member in outline.members}
    ),
    "readings": lambda outline: readings_figure(outline, read_scored(outline)),
}
"""Kind -> what draws it."""
