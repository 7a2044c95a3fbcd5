"""Embed new nodes beside the subjects, for the population graph's similarity (FedNI Sec. III-A)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.graphs.neighbours.similarity import Nodes
from brainfed.graphs.population.fitting import FittedPart, fit_parts
from brainfed.inpainting.inputs import Generated, InpaintingInputs

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Placed:
    """Subjects 0 ... n - 1 and new nodes n ... n + g - 1.

    Attributes:
        nodes: (n + g) of them, in the embedding and with the phenotypes that the graph compares.
        parts: institution -> the fitted part of its subjects.
    """

    nodes: Nodes
    parts: dict[int, FittedPart]


def place(inputs: InpaintingInputs, home: IntArray, new_nodes: Generated, site: IntArray) -> Placed:
    """Embed new nodes beside the subjects.

    Args:
        inputs: subjects and their graph.
        home: (g,) the institution whose graph each new node joins.
        new_nodes: their features and phenotypes.
        site: (g,) their sites, -1 unknown.
    """
    settings = inputs.graph_settings
    embedding, parts = fit_parts(inputs.features, inputs.institution, inputs.fitted, settings, selected=inputs.selected)
    part_of = {index: parts[index if settings.scope == "local" else 0] for index in np.unique(home).tolist()}
    placed = np.zeros((len(home), embedding.shape[1]))
    for index, part in part_of.items():
        projected = part.projection(new_nodes.features[home == index])
        placed[home == index, : projected.shape[1]] = projected
    compared: dict[str, IntArray | NDArray[np.float64]] = {
        "site": np.append(inputs.site, site),
        "sex": np.append(inputs.sex, new_nodes.sex),
        "age": np.append(inputs.age, new_nodes.age),
    }
    phenotypes = {str(name): compared[name] for name in settings.phenotypes}
    return Placed(Nodes.of(np.concatenate([embedding, placed]), phenotypes, settings.distance), part_of)
