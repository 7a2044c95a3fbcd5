"""Join generated nodes to the population graph (FedNI Sec. III-B.2): what the classifier is trained on.

Edges among subjects stay as they are.
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
    """Ask the generator for missing neighbours and join them to the subjects.

    Args:
        inputs: subjects and their graph; only those that are `fitted` get generated neighbours.
        generator: under `nodes: random` and `true` it says how many, not what they look like.
        settings: cap, rounding, edges and nodes.
        max_generated: generated nodes of one subject; None: as many as are predicted.
        cut: the edges that the graph's cut removed; `nodes: true` needs them.

    Raises:
        UserError: the generator answers with a number that is not finite.
    """
    count = generator.counts()
    _require_finite(count, inputs.subjects)
    parents = _parents(inputs, count, settings, max_generated)
    if settings.nodes == "true":
        if cut is None:
            raise ValueError("nodes: true needs the edges that were cut away")
        parents, born, found = true_neighbours(inputs, parents, cut)
    else:
        born = _born(inputs, generator, parents, settings)
        found = join(inputs, parents, born, settings)
    features = born.features
    if settings.nodes == "shuffled":
        features = shuffled_features(inputs, parents, born.features)
    if settings.nodes == "mean":
        features = institution_means(inputs, parents)
    _say_how_many(inputs, count, len(parents), settings)
    row, column, weight = _joined(inputs, found, len(parents))
    institution = inputs.institution[parents]
    return FusedGraph(row, column, weight, features, institution, parents, born.sex, born.age, count)


def _say_how_many(inputs: InpaintingInputs, count: FloatArray, generated: int, settings: FusingSettings) -> None:
    """One line in the log; a warning where the fused graph is the population graph."""
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


def _born(inputs: InpaintingInputs, generator: NodeGenerator, parents: IntArray, settings: FusingSettings) -> Generated:
    if settings.nodes == "random" or len(parents) == 0:
        return random_nodes(inputs, parents)
    born = generator.draw(parents)
    _require_finite(born.features, tuple(inputs.subjects[parent] for parent in parents))
    return born


def _require_finite(answers: NDArray[np.float32] | FloatArray, subjects: tuple[str, ...]) -> None:
    """Refuse answers (s,) or (s, d) about the subjects (s) that are not finite."""
    finite = np.isfinite(answers) if answers.ndim == 1 else np.isfinite(answers).all(axis=1)
    if not finite.all():
        raise UserError(
            f"subject {subjects[int(np.argmin(finite))]!r}: expected finite numbers from the trained generator, found "
            "NaN or infinity, so its training diverged; lower `learning_rate` under `inpainting:` and run again."
        )


def _parents(
    inputs: InpaintingInputs, count: FloatArray, settings: FusingSettings, max_generated: int | None
) -> IntArray:
    """(g,) whose missing neighbour each new node is, ascending."""
    number = np.zeros(len(inputs.subjects), dtype=np.int64)
    for institution in range(len(inputs.institutions)):
        members = inputs.members(institution)
        lot = inputs.streams.numpy("allotment", inputs.part, institution).permutation(len(members))
        number[members] = allot(
            count[members], rounding=settings.rounding, max_generated=max_generated, cap=settings.cap, lot=lot
        )
    return np.repeat(np.arange(len(number)), number)


def _joined(inputs: InpaintingInputs, found: Edges, number: int) -> tuple[IntArray, IntArray, NDArray[np.float32]]:
    """The subjects' edges, those found in both directions, and self-loops of the new nodes."""
    graph = inputs.graph
    new = symmetric(found, graph.nodes + number)
    loop = graph.nodes + np.arange(number if inputs.graph_settings.self_weight > 0 else 0)
    row = np.concatenate([graph.row, new.row, loop])
    column = np.concatenate([graph.column, new.column, loop])
    loops = np.full(len(loop), inputs.graph_settings.self_weight)
    weight = np.concatenate([graph.weight, new.weight.astype(np.float32), loops.astype(np.float32)])
    order = np.lexsort((column, row))
    return row[order], column[order], weight[order]
