"""What FedNI is always compared with."""

from collections.abc import Mapping

COMPARED: Mapping[str, tuple[str, ...]] = {"fedni": ("fedgcn", "fedsage-plus", "fedmlp", "ridge-central")}
"""FedGCN is FedNI without generated nodes, FedSage+ another generator, FedMLP the same network without a graph, and
central ridge regression a linear model on pooled data."""
