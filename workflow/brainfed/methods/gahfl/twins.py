"""Twins of the distilled federations: the institutions' networks alone, and the global one on pooled series."""

from brainfed.federation.robustness_settings import NOT_OF_TWINS
from brainfed.methods.method import Twins

TWINS = Twins(
    "recurrent-local",
    "recurrent-central",
    "The twins keep all their training subjects at home, or pool all of them; no public set is needed. The kinds of "
    "their networks are settings of their own.",
    apart=(
        "model",
        "models",
        "assignment",
        "global_epochs",
        "alpha",
        "beta",
        "gamma",
        "epsilon",
        "xi",
        "momentum",
        "gcna_training",
        "without",
        "self_evaluation",
        "pool",
        "consensus",
        "diversity",
        "ensemble",
        *NOT_OF_TWINS,
    ),
)
