"""Features of real and generated nodes, with and without the discriminator (FedNI Fig. 5)."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from brainfed.reporting.figures.style import GENERATED, REAL, WIDE, headed, key_below, new_figure, note_figure
from brainfed.reporting.outline import ExperimentOutline
from brainfed.reporting.rounding import rounded
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import read_arrays

BINS = 80
MOST_POINTS = 600
DASH = (0, (4, 1.2))

FloatMatrix = NDArray[np.float32]


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
