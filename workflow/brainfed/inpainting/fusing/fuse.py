"""Join generated nodes to the population graph: the classifier's training graph (FedNI Sec. III-C.1).

Edges among subjects do not change.
"""

import logging

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.search import Edges, symmetric
from brainfed.inpainting.fusing.allotment import allot
from brainfed.inpainting.fusing.edges import join
from brainfed.inpainting.fusing.fused import FusedGraph
from brainfed.inpainting.fusing.nodes import institution_means, random_nodes, shuffled_features
from brainfed.inpainting.fusing.true_neighbours import true_neighbours
from brainfed.inpainting.inputs import Generated, InpaintingInputs, NodeGenerator
from brainfed.inpainting.settings import FusingSettings
from brainfed.runtime.errors import UserError

logger = logging.getLogger(__name__)

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def fuse(
    inputs: InpaintingInputs,
    generator: NodeGenerator,
    settings: FusingSettings,
    max_generated: int | None,
    cut: Edges | None = None,
) -> FusedGraph:
    """Join a generator's missing neighbours to the subjects (FedNI Algorithm 1, lines 3 and 24).

    Args:
        inputs: subjects and their graph; only `fitted` subjects get generated neighbours.
        generator: under `nodes: random` and `true` only its counts are used.
        settings: cap, rounding, edges and nodes.
        max_generated: largest number of generated nodes of one subject; None: no limit.
        cut: the edges that the graph's cut removed; `nodes: true` needs them.

    Raises:
        UserError: a count or feature of the generator is not finite.
    """
    count = generator.counts()
    _require_finite(count, inputs.subjects)
    parents = _parents(inputs, count, settings, max_generated)
    if settings.nodes == "true":
        if cut is None:
            raise ValueError("nodes: true needs the edges that were cut away")
        parents, new_nodes, found = true_neighbours(inputs, parents, cut)
    else:
        new_nodes = _new_nodes(inputs, generator, parents, settings)
        found = join(inputs, parents, new_nodes, settings)
    features = new_nodes.features
    if settings.nodes == "shuffled":
        features = shuffled_features(inputs, parents, new_nodes.features)
    if settings.nodes == "mean":
        features = institution_means(inputs, parents)
    _log_numbers(inputs, count, len(parents), settings)
    row, column, weight = _joined(inputs, found, len(parents))
    institution = inputs.institution[parents]
    return FusedGraph(row, column, weight, features, institution, parents, new_nodes.sex, new_nodes.age, count)


def _log_numbers(inputs: InpaintingInputs, count: FloatArray, generated: int, settings: FusingSettings) -> None:
    """Log the number of generated nodes; warn where there is none."""
    fitted = int(inputs.fitted.sum())
    logger.log(
        logging.INFO if generated else logging.WARNING,
        "%s for %d subjects, of %.1f missing neighbours expected (mean %.2f; cap: %s)",
        f"{generated} nodes" if generated else "no node is generated",
        fitted,
        count[inputs.fitted].sum(),
        count[inputs.fitted].mean() if fitted else 0.0,
        "none" if settings.cap is None else f"{settings.cap:g} a subject",
    )


def _new_nodes(
    inputs: InpaintingInputs, generator: NodeGenerator, parents: IntArray, settings: FusingSettings
) -> Generated:
    if settings.nodes == "random" or len(parents) == 0:
        return random_nodes(inputs, parents)
    new_nodes = generator.draw(parents)
    _require_finite(new_nodes.features, tuple(inputs.subjects[parent] for parent in parents))
    return new_nodes


def _require_finite(outputs: NDArray[np.float32] | FloatArray, subjects: tuple[str, ...]) -> None:
    """Refuse outputs (s,) or (s, d) of a generator for the subjects (s) that are not finite."""
    finite = np.isfinite(outputs) if outputs.ndim == 1 else np.isfinite(outputs).all(axis=1)
    if not finite.all():
        raise UserError(
            f"subject {subjects[int(np.argmin(finite))]!r}: expected finite numbers from the trained generator, found "
            "NaN or infinity, so its training diverged; lower `learning_rate` under `inpainting:` and run again."
        )


def _parents(
    inputs: InpaintingInputs, count: FloatArray, settings: FusingSettings, max_generated: int | None
) -> IntArray:
    """(g,) parent of each new node, ascending."""
    number = np.zeros(len(inputs.subjects), dtype=np.int64)
    for institution in range(len(inputs.institutions)):
        members = inputs.members(institution)
        tie_order = inputs.streams.numpy("allotment", inputs.part, institution).permutation(len(members))
        number[members] = allot(
            count[members],
            rounding=settings.rounding,
            max_generated=max_generated,
            cap=settings.cap,
            tie_order=tie_order,
        )
    return np.repeat(np.arange(len(number)), number)


def _joined(inputs: InpaintingInputs, found: Edges, number: int) -> tuple[IntArray, IntArray, NDArray[np.float32]]:
    """The subjects' edges, new edges in both directions, and self-loops of new nodes."""
    graph = inputs.graph
    new = symmetric(found, graph.nodes + number)
    loop = graph.nodes + np.arange(number if inputs.graph_settings.self_weight > 0 else 0)
    row = np.concatenate([graph.row, new.row, loop])
    column = np.concatenate([graph.column, new.column, loop])
    loops = np.full(len(loop), inputs.graph_settings.self_weight)
    weight = np.concatenate([graph.weight, new.weight.astype(np.float32), loops.astype(np.float32)])
    order = np.lexsort((column, row))
    return row[order], column[order], weight[order]
