from ._settings import GraphSettings, ConnectomeSettings, require_connections
from ._connectome import (
    contents, positive_correlations, normalised, correlation_adjacency, matrices, strongest, adjacency,
    read_connectivity, write_connectomes,
)
from ._embedding import BLOCK_ENTRIES, OVERSAMPLES, EXACT_RANK
from ._neighbours import Nodes, row_blocks, mean_pairwise_distance, similarity, Edges, nearest, symmetric
from ._population import FittedPart, fit_parts, PopulationGraph, build_graph, homophily
from ._propagation import Graph, known_phenotypes, normalised_adjacency, edges_by_block, dense_block, neighbour_mean
from ._tudataset import read_data_set, joined, GraphFiles, write_graphs

__all__ = [
    "GraphSettings", "ConnectomeSettings", "require_connections",
    "contents", "positive_correlations", "normalised", "correlation_adjacency", "matrices", "strongest", "adjacency",
    "read_connectivity", "write_connectomes",
    "BLOCK_ENTRIES", "OVERSAMPLES", "EXACT_RANK",
    "Nodes", "row_blocks", "mean_pairwise_distance", "similarity", "Edges", "nearest", "symmetric",
    "FittedPart", "fit_parts", "PopulationGraph", "build_graph", "homophily",
    "Graph", "known_phenotypes", "normalised_adjacency", "edges_by_block", "dense_block", "neighbour_mean",
    "read_data_set", "joined", "GraphFiles", "write_graphs",
]
