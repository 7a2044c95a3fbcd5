"""Data that cross institutions for one graph over all subjects: all inputs of an edge."""

import numpy as np

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import columns, record_pool
from brainfed.graphs.population.embedding import FloatArray
from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.fitted.rfe import IntArray

CROSSES = {"features": ("subjects", "features")} | dict.fromkeys(("site", "sex", "age", "labels"), ("subjects",))


def crossings_of(
    features: FloatArray, institution: IntArray, settings: GraphSettings
) -> tuple[dict[str, int | str], ...]:
    """Rows of the ledger; none under scope `local`, where every institution builds its own graph.

    Other scopes send the features, the compared phenotypes, and under the embedding `rfe` the labels that select its
    features. Cutting edges between institutions afterwards (`global_cut`) does not change this.

    Args:
        features: (n, d).
        institution: (n,) codes.
        settings: settings of the graph, with known phenotypes only.
    """
    codes, counts = np.unique(institution, return_counts=True)
    if settings.scope == "local" or len(codes) == 1:
        return ()
    ledger = Ledger(CROSSES, {"features": features.shape[1]}, "graph")
    labels = ("labels",) if settings.embedding == "rfe" else ()
    sent = {"features": (features.shape[1:], features.itemsize)} | columns(*settings.phenotypes, *labels)
    record_pool(ledger, dict(zip(codes.tolist(), counts.tolist(), strict=True)), sent)
    return ledger.rows()
