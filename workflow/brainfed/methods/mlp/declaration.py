"""Multilayer perceptrons on features alone: in every institution, on pooled data, and by FedAvg."""

from brainfed.federation import ROBUSTNESS_KEYS
from brainfed.methods import (
    BETWEEN_SITES,
    MOMENTS_TENSORS,
    NETWORK_TENSORS,
    QUICK_EPOCHS,
    QUICK_ROUNDS,
    ROUNDS_TENSORS,
    Capabilities,
    Comparison,
    Crossing,
    FederatedClassifierSettings,
    Method,
    SoloSettings,
)

LOCALMLP = Method(
    name="localmlp",
    title="LocalMLP",
    settings=SoloSettings,
    entry="brainfed.methods.mlp.train:train_localmlp",
    family="graph",
    topology="local",
    crossing=Crossing({**NETWORK_TENSORS, **MOMENTS_TENSORS}),
    capabilities=Capabilities(model="brainfed.methods.mlp.kept:score", without_model={"choose": "inner"}, gpu=True),
    quick=QUICK_EPOCHS,
    variants={"localmlp": {}, "localmlp-centred": {"centre": "subject"}},
)
"""FedMLP's classifier in every institution alone: the local counterpart of FedMLP.

Nothing crosses institutions except under leave-one-site-out: the other sites' models score the unseen one.
"""

CENTRALMLP = Method(
    name="centralmlp",
    title="CentralMLP",
    settings=SoloSettings,
    entry="brainfed.methods.mlp.train:train_centralmlp",
    family="graph",
    topology="central",
    crossing=Crossing({"features": ("subjects", "features"), "labels": ("subjects",)}),
    capabilities=Capabilities(model="brainfed.methods.mlp.kept:score", without_model={"choose": "inner"}, gpu=True),
    quick=QUICK_EPOCHS,
    variants={"centralmlp": {}, "centralmlp-centred": {"centre": "subject"}},
)
"""FedMLP's classifier on the pooled data of all institutions: the pooled counterpart of FedMLP."""

FEDMLP = Method(
    name="fedmlp",
    title="FedMLP",
    settings=FederatedClassifierSettings,
    entry="brainfed.methods.mlp.train:train_fedmlp",
    family="federated",
    topology="federated",
    comparison=Comparison("localmlp", "centralmlp", apart=ROBUSTNESS_KEYS),
    crossing=Crossing({**NETWORK_TENSORS, **ROUNDS_TENSORS}, between_sites=BETWEEN_SITES, leaves_out=True),
    capabilities=Capabilities(model="brainfed.methods.mlp.kept:score", without_model={"choose": "inner"}, gpu=True),
    quick=QUICK_ROUNDS,
    variants={"fedmlp": {}, "fedmlp-centred": {"centre": "subject"}},
)
"""FedAvg over the same classifier without a graph (FedNI Sec. 9)."""
