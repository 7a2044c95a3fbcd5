"""Connectivity and measures of two groups: effect sizes and mean matrices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats
from scipy.cluster.hierarchy import leaves_list, linkage

from brainfed.cohort.classes import DIAGNOSIS_WORDS, ClassWords
from brainfed.imaging.connectivity import connectivity, to_matrices
from brainfed.imaging.morphometry.tables import measure_of
from brainfed.imaging.settings import FeatureSettings
from brainfed.reporting.figures.style import (
    COLD,
    FAINT,
    HALF,
    INK,
    RULE,
    SERIES,
    WARM,
    WIDE,
    drawing,
    new_figure,
    placed_figure,
    save_svg,
)
from brainfed.reporting.rounding import significant_digits
from brainfed.runtime.artefacts import canonical_json, read_arrays, read_table, write_text

# Effect sizes of connections and mean connectivity of patients and controls, or of a class and all others.
#
# Descriptive: it uses every analysed subject and no method reads it.

Vector = NDArray[np.float64]


FALSE_DISCOVERY_RATE = 0.05


@dataclass(frozen=True)
class GroupEffects:
    """One value a feature.

    Attributes:
        effect: Cohen's d, patients minus controls; 0 without variance.
        p: two-sided p of Student's t-test.
        counts: number of patients and of controls.
        words: names of the groups.
    """

    effect: Vector
    p: Vector
    counts: tuple[int, int]
    words: ClassWords

    @property
    def chance_sd(self) -> float:
        """Standard deviation of d for equal groups (large samples)."""
        return float(np.sqrt(1 / self.counts[0] + 1 / self.counts[1]))

    @property
    def discoveries(self) -> int:
        """Features that differ at a false discovery rate of 5 % (Benjamini & Hochberg)."""
        return int((stats.false_discovery_control(self.p) <= FALSE_DISCOVERY_RATE).sum())

    @property
    def counted(self) -> dict[str, int]:
        """Discoveries and subjects, as entries of a summary."""
        return {"discoveries": self.discoveries, "patients": self.counts[0], "controls": self.counts[1]}

    def strongest(self, count: int) -> NDArray[np.int64]:
        """Positions of the `count` largest |d|, the strongest first."""
        return np.argsort(-np.abs(self.effect), kind="stable")[:count]


@dataclass(frozen=True)
class GroupConnectivity(GroupEffects):
    """The same for every connection by its Fisher z, in `np.triu_indices(R, 1)` order.

    Attributes:
        regions: R names.
        patients: mean correlation of the patients (averaged as Fisher z).
        controls: the same of the controls.
    """

    regions: tuple[str, ...]
    patients: Vector
    controls: Vector

    def ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The two regions of every connection."""
        return np.triu_indices(len(self.regions), 1)


def compare_groups(
    series: Mapping[str, NDArray[np.float32]],
    diagnosis: Mapping[str, int],
    regions: tuple[str, ...],
    words: ClassWords = DIAGNOSIS_WORDS,
    runs: Mapping[str, Sequence[int]] | None = None,
) -> GroupConnectivity:
    """Compare the Pearson connectivity of patients (1) and controls (0).

    Args:
        series: subject -> (time, R).
        diagnosis: subject -> 1 or 0, the same subjects.
        regions: R names.
        words: names of the classes.
        runs: subject -> lengths of its runs, for subjects with the mean connectivity over runs.
    """
    z = connectivity(series, FeatureSettings("pearson", fisher_z=True), runs).astype(np.float64)
    patient = np.array([diagnosis[subject] == 1 for subject in sorted(series)])
    found = group_effects(z, patient, words)
    means = np.tanh(z[patient].mean(axis=0)), np.tanh(z[~patient].mean(axis=0))
    return GroupConnectivity(found.effect, found.p, found.counts, words, regions, *means)


def group_effects(
    values: NDArray[np.float64], patient: NDArray[np.bool_], words: ClassWords = DIAGNOSIS_WORDS
) -> GroupEffects:
    """Compare the rows of `values` (n, d) of patients, in the mask (n,), with the others."""
    first, second = values[patient], values[~patient]
    counts = (len(first), len(second))
    pooled = ((counts[0] - 1) * first.var(axis=0, ddof=1) + (counts[1] - 1) * second.var(axis=0, ddof=1)) / (
        sum(counts) - 2
    )
    difference = first.mean(axis=0) - second.mean(axis=0)
    effect = np.divide(difference, np.sqrt(pooled), out=np.zeros_like(difference), where=pooled > 0)
    t = effect / np.sqrt(1 / counts[0] + 1 / counts[1])
    p = 2 * stats.t.sf(np.abs(t), sum(counts) - 2)
    return GroupEffects(effect, p, counts, words)


def joined(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The summary of one contrast, or of several under `contrasts`."""
    return summaries[0] if len(summaries) == 1 else {"contrasts": list(summaries)}


def networks(regions: tuple[str, ...]) -> list[tuple[str, int, int]]:
    """Runs of regions with the same name before the last `-` or `_`: (name, first, last + 1).

    Empty if the names have no networks: fewer than two runs, or runs of fewer than two regions on average.
    """
    prefixes = [_prefix(name) for name in regions]
    starts = [index for index in range(len(regions)) if index == 0 or prefixes[index] != prefixes[index - 1]]
    ends = [*starts[1:], len(regions)]
    if not 2 <= len(starts) <= len(regions) / 2 or "" in prefixes:
        return []
    return [(prefixes[start], start, end) for start, end in zip(starts, ends, strict=True)]


def _prefix(name: str) -> str:
    cut = max(name.rfind("-"), name.rfind("_"))
    return name[:cut] if cut > 0 else ""


# Connectivity of two groups (patients and controls): mean matrices, their difference, the spread of effect sizes.

ABOVE, BELOW, GAP = 0.35, 0.85, 0.14
"""Inches over and under the matrices, and between them."""


def means_figure(contrasts: Sequence[GroupConnectivity]) -> Figure:
    """Mean correlation of two groups and their difference on its own scale, one row a contrast."""
    left = 1.05 if networks(contrasts[0].regions) else 0.2
    side = (WIDE - left - 2 * GAP - 0.15) / 3
    height = (ABOVE + side + BELOW) * len(contrasts)
    figure = placed_figure(WIDE, height)
    order = drawing_order(contrasts[0])
    for row, groups in enumerate(reversed(contrasts)):
        bottom = BELOW + row * (ABOVE + side + BELOW)
        shared = _limit(np.concatenate([groups.patients, groups.controls]))
        difference = groups.patients - groups.controls
        first, second = (_capitalised(groups.words.many[code]) for code in (1, 0))
        panels = (
            (f"{first} (n = {groups.counts[0]})", groups.patients, shared, "mean correlation"),
            (f"{second} (n = {groups.counts[1]})", groups.controls, shared, "mean correlation"),
            (f"{first} minus {groups.words.many[0]}", difference, _limit(difference), "difference of means"),
        )
        for number, (title, values, limit, unit) in enumerate(panels):
            place = ((left + number * (side + GAP)) / WIDE, bottom / height, side / WIDE, side / height)
            axes = figure.add_axes(place)
            image = axes.imshow(
                to_matrices(values, diagonal=np.nan)[np.ix_(order, order)], cmap="RdBu_r", vmin=-limit, vmax=limit,
                interpolation="nearest",
            )  # fmt: skip
            axes.set_title(title)
            _network_ticks(axes, groups.regions, names=number == 0)
            bar = figure.colorbar(image, cax=axes.inset_axes((0.15, -0.14, 0.7, 0.03)), orientation="horizontal")
            bar.outline.set_visible(False)
            bar.set_label(unit)
            bar.set_ticks(
                [-limit, 0, limit], labels=[f"\u2212{significant_digits(limit, 2)}", "0", significant_digits(limit, 2)]
            )
    return figure


def _capitalised(words: str) -> str:
    return words[:1].upper() + words[1:]


def drawing_order(groups: GroupConnectivity) -> NDArray[np.int64]:
    """(R,) the order of the atlas if region names have networks; else correlated regions are adjacent.

    The clustering is of the mean over patients and controls alike (average linkage of 1 - r).
    """
    if networks(groups.regions) or len(groups.regions) < 3:
        return np.arange(len(groups.regions))
    overall = np.average([groups.patients, groups.controls], axis=0, weights=groups.counts)
    return np.asarray(leaves_list(linkage(1 - overall, "average", optimal_ordering=True)), dtype=np.int64)


def _limit(values: NDArray[np.float64]) -> float:
    """A round symmetric limit for nearly all values."""
    return max(float(f"{np.quantile(np.abs(values), 0.995):.1g}"), 0.01)


def _network_ticks(axes: Axes, regions: tuple[str, ...], *, names: bool) -> None:
    runs = networks(regions)
    axes.tick_params(length=0)
    axes.set_xticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    if not runs:
        axes.set_yticks([])
        axes.set_xlabel(f"{len(regions)} regions, clustered by their overall mean", fontsize=7.5)
        return
    for _, start, _ in runs[1:]:
        axes.axhline(start - 0.5, color="white", linewidth=0.8)
        axes.axvline(start - 0.5, color="white", linewidth=0.8)
    axes.set_yticks([(start + end - 1) / 2 for _, start, end in runs], [name if names else "" for name, _, _ in runs])
    axes.tick_params(axis="y", labelsize=7)


def effects_figure(contrasts: Sequence[GroupConnectivity]) -> Figure:
    """Histogram of Cohen's d over connections, against its distribution for equal groups."""
    figure = new_figure(HALF, 2.9 * len(contrasts))
    for row, groups in enumerate(contrasts):
        _effects(figure.add_subplot(len(contrasts), 1, row + 1), groups)
    return figure


def _effects(axes: Axes, groups: GroupConnectivity) -> None:
    reach = 1.05 * float(np.abs(groups.effect).max() or 1)
    edges = np.linspace(-reach, reach, 61)
    axes.hist(groups.effect, list(edges), color="#9aa7c7", edgecolor="white", linewidth=0.3)
    grid = np.linspace(-reach, reach, 400)
    expected = stats.norm.pdf(grid, scale=groups.chance_sd) * len(groups.effect) * (edges[1] - edges[0])
    axes.plot(grid, expected, color=INK)
    axes.margins(y=0.22)
    top = int(np.argmax(expected))
    axes.annotate(
        "expected if the\ngroups did not differ", (grid[top + 45], expected[top + 45]), (28, 14),
        textcoords="offset points", fontsize=7.5, arrowprops={"arrowstyle": "-", "color": FAINT, "lw": 0.7},
    )  # fmt: skip
    axes.annotate(f"weaker in {groups.words.many[1]}", (0.03, 0.93), xycoords="axes fraction", color=COLD, fontsize=7.5)
    axes.annotate(
        f"stronger in {groups.words.many[1]}", (1, 0.93), xycoords="axes fraction", ha="right", color=WARM, fontsize=7.5
    )
    axes.set_xlabel("effect size of a connection (Cohen's d)")
    axes.set_ylabel(f"connections (of {len(groups.effect):,})")


# Effect size of every FreeSurfer measure between patients and controls, or a class and all others.
#
# Descriptive: it uses every analysed subject and no method reads it.

KINDS = ("volume", "thickness", "area")
SHOWN = 20


def draw_measures(
    measures: str,
    participants: str,
    included: str,
    outputs: Mapping[str, str],
    words: ClassWords = DIAGNOSIS_WORDS,
) -> None:
    """Write the SVG called measures, and the numbers called summary.

    Args:
        measures: the cohort's FreeSurfer measures.
        participants: the phenotype artefact.
        included: the subjects of the analysis.
        outputs: figure -> path.
        words: names of the classes.
    """
    decided = read_table(included, ["subject", "included"])
    subjects = sorted(decided.loc[decided["included"], "subject"])
    known = read_table(participants, ["subject", "diagnosis"]).set_index("subject")["diagnosis"].dropna()
    file = read_arrays(measures, ["measures"])
    place = {subject: row for row, subject in enumerate(file.subjects)}
    labelled = [subject for subject in subjects if subject in known.index]
    values = file.arrays["measures"][[place[subject] for subject in labelled]].astype(np.float64)
    codes = known[labelled].to_numpy(dtype=np.int64)
    contrasts = [group_effects(values, codes == code, named) for code, named in words.contrasts]
    names = tuple(file.metadata["regions"])
    with drawing():
        save_svg(measures_figure(contrasts, names), outputs["measures"])
    summary = {
        "regions": len(names),
        "constant": int((np.ptp(values, axis=0) == 0).sum()),
        **joined([_summary(effects, names) for effects in contrasts]),
    }
    write_text(outputs["summary"], canonical_json(summary) + "\n")


def _summary(effects: GroupEffects, names: tuple[str, ...]) -> dict[str, Any]:
    strongest = [{"name": names[index], "d": round(float(effects.effect[index]), 3)} for index in effects.strongest(10)]
    return {**effects.counted, "strongest": strongest}


def measures_figure(contrasts: Sequence[GroupEffects], names: tuple[str, ...]) -> Figure:
    """The strongest Cohen's d, and all of them by kind of measure with the interval of chance; one row a contrast."""
    figure = new_figure(WIDE, 3.9 * len(contrasts))
    rows = figure.subplots(len(contrasts), 2, width_ratios=[1.5, 1], squeeze=False)
    for (largest, kinds), effects in zip(rows, contrasts, strict=True):
        _draw(largest, kinds, effects, names)
    return figure


def _draw(largest: Axes, kinds: Axes, effects: GroupEffects, names: tuple[str, ...]) -> None:
    chosen = effects.strongest(SHOWN)[::-1]
    colours = dict(zip(KINDS, (colour for colour, _ in SERIES), strict=False))
    reach, words = 1.96 * effects.chance_sd, effects.words
    for row, index in enumerate(chosen):
        colour = colours.get(measure_of(names[index]), FAINT)
        largest.plot([0, effects.effect[index]], [row, row], color=colour, alpha=0.5, linewidth=2)
        largest.plot(effects.effect[index], row, "o", color=colour, markersize=5)
    largest.set_yticks(range(len(chosen)), [names[index] for index in chosen], fontsize=7)
    largest.set_title(f"The {len(chosen)} strongest of {len(names)}")
    present = [kind for kind in KINDS if kind in {str(measure_of(name)) for name in names}]
    for row, kind in enumerate(present):
        values = effects.effect[_of_kind(names, kind)]
        spread = np.random.default_rng(0).uniform(-0.28, 0.28, len(values))
        kinds.scatter(values, row + spread, s=9, color=colours[kind], alpha=0.6, linewidths=0)
    kinds.set_yticks(range(len(present)), [f"{kind}\nn = {len(_of_kind(names, kind))}" for kind in present])
    kinds.set_title("All, by kind")
    for axes in (largest, kinds):
        axes.axvspan(-reach, reach, color=RULE, alpha=0.35, zorder=0, linewidth=0)
        axes.axvline(0, color=FAINT, linewidth=0.8)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(f"effect size, {words.many[1]} minus {words.many[0]} (Cohen's d)")


def _of_kind(names: tuple[str, ...], kind: str) -> NDArray[np.int64]:
    return np.flatnonzero([measure_of(name) == kind for name in names])
