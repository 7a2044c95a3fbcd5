"""The torch side of FedSage+'s classifier: FedAvg over GraphSAGE on the completed graphs (Zhang et al. 2021)."""

from dataclasses import replace

from brainfed.graphs import neighbour_mean
from brainfed.methods import FederatedClassifierSettings, train_classifier
from brainfed.methods.fedsage.declaration import FEDSAGE_PLUS
from brainfed.models import GraphSAGE
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, with_generated, without_generated


def train(inputs: MethodInputs, settings: FederatedClassifierSettings, run: Run) -> Outcome:
    """Train FedSage+'s classifier on one repeat's fused graphs."""
    return without_generated(train_sage(with_generated(inputs), settings, run), len(inputs.subjects))


def train_sage(inputs: MethodInputs, settings: FederatedClassifierSettings, run: Run) -> Outcome:
    """Train a federated GraphSAGE on the graphs of `inputs`."""
    # If every fold has a graph, products are formed by fold on scaled features: one order of sums for both reads.
    if len(inputs.graphs) > len(inputs.features):
        inputs = replace(inputs, features=inputs.features * inputs.folds)
    module = GraphSAGE(inputs.features[0].shape[1], settings.hidden, inputs.classes)
    return train_classifier(FEDSAGE_PLUS, module, inputs, settings, run, neighbour_mean)
