"""Methods that stand beside others wherever both were run, as the papers of their families compare them."""

from collections.abc import Mapping

BESIDE: Mapping[str, tuple[str, ...]] = {"fedni": ("fedgcn", "fedsage-plus", "fedmlp", "ridge-central")}
"""Variant -> variants that it is compared with on the first screen and in a sentence of its own.

FedGCN is FedNI without generated nodes, FedSage+ another generator, FedMLP the same network without a graph, and
central ridge regression a linear model on pooled data. The tests of these and of the method's own variants are one
family of comparisons.
"""
