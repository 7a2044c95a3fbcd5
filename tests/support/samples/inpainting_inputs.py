"""Inputs of inpainting jobs: a small cohort whose neighbours resemble each other."""

import numpy as np

from brainfed.graphs import Graph, GraphSettings, build_graph
from brainfed.inpainting import InpaintingInputs
from brainfed.inpainting.fedni._masking import drawn_mask, masked_graph
from brainfed.runtime import Streams


def inpainting_inputs(
    subjects=60,
    dimensions=40,
    institutions=3,
    seed=0,
    fitted=None,
    part="all",
    k=4,
    phenotypes=("sex", "age"),
    scale=1.0,
    scope="local",
):
    """A cohort of correlated features in (-scale, scale), institutions in turn, on its own population graph.

    One sex and one age are unknown.
    """
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, subjects)
    age = rng.uniform(8, 40, subjects)
    sources = rng.standard_normal((subjects, 3)) + sex[:, None] + (age / 20)[:, None]
    features = np.tanh(sources @ rng.standard_normal((3, dimensions)) / 3).astype(np.float32) * scale
    sex[1], age[2] = -1, np.nan
    institution = np.arange(subjects) % institutions
    settings = GraphSettings(k=k, embedding_dimensions=5, age_gap=5.0, phenotypes=phenotypes, scope=scope)
    streams = Streams(seed)
    everybody = np.ones(subjects, dtype=bool) if fitted is None else fitted
    graph = build_graph(
        features, institution, site=institution, sex=sex, age=age, settings=settings, streams=streams,
        training=None if fitted is None else fitted,
    )  # fmt: skip
    return InpaintingInputs(
        subjects=tuple(f"sub-{index:04d}" for index in range(subjects)),
        institutions=tuple(f"site-{index}" for index in range(institutions)),
        institution=institution,
        features=features,
        graph=Graph(graph.row, graph.column, graph.weight, subjects),
        graph_settings=settings,
        site=institution,
        sex=sex,
        age=age,
        fitted=everybody,
        part=part,
        streams=streams,
        correlations=scale <= 1,
    )


def mask_of_epoch(institution, epoch, part, streams, settings):
    """The incomplete graph of one local epoch; None where the mask has fewer than two pairs."""
    drawn = drawn_mask(institution, epoch, part, streams, settings)
    return None if drawn.mask is None else masked_graph(drawn.mask, institution, drawn.noise)
