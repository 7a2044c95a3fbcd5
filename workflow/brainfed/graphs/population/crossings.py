"""What crosses institutions where one graph is built over everybody: all that an edge depends on."""

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
    """Rows of the ledger: nothing under scope `local`, where every institution builds its own graph.

    Else the features, the phenotypes that are compared, and under the embedding `rfe` the labels that choose its
    features. Cutting the edges between institutions afterwards (`global_cut`) takes none of it back.

    Args:
        features: (n, d).
        institution: (n,) codes.
        settings: of the graph, its phenotypes those that somebody has.
    """
    codes, counts = np.unique(institution, return_counts=True)
    if settings.scope == "local" or len(codes) == 1:
        return ()
    ledger = Ledger(CROSSES, {"features": features.shape[1]}, "graph")
    labels = ("labels",) if settings.embedding == "rfe" else ()
    sent = {"features": (features.shape[1:], features.itemsize)} | columns(*settings.phenotypes, *labels)
    record_pool(ledger, dict(zip(codes.tolist(), counts.tolist(), strict=True)), sent)
    return ledger.rows()
