"""The torch side of the GIN alone, on pooled graphs, under FedAvg and FedProx, GCFL and GCFL+."""

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from brainfed.engines.graphs.training import GraphTraining
from brainfed.engines.training import Server, train_networks
from brainfed.federation.strategies.gcfl import GCFL, GradientNorms, Similarity, UpdateCosine
from brainfed.methods.gcfl.declaration import (
    CENTRAL_GIN,
    FEDAVG_GIN,
    LAYERS,
    SELFTRAIN,
    FedAvgGINSettings,
    FederatedGINSettings,
    GCFLSettings,
    SoloGINSettings,
)
from brainfed.methods.gcfl.declaration import GCFL as GCFL_METHOD
from brainfed.methods.method import Method
from brainfed.models.gcfl import GIN
from brainfed.runtime.jobs.checkpoints import Run
from brainfed.samples.graphs import GraphInputs
from brainfed.samples.inputs import Outcome


def train_solo(method: Method, inputs: GraphInputs, settings: SoloGINSettings, run: Run) -> Outcome:
    """Train without rounds, in every institution or on pooled graphs (Xie et al. 2021, Sec. 5.1)."""
    return _train(method, inputs, settings, run)


def train_fedavg(inputs: GraphInputs, settings: FedAvgGINSettings, run: Run) -> Outcome:
    """Average the convolutions of all institutions."""
    return _train(FEDAVG_GIN, inputs, settings, run)


def train_gcfl(inputs: GraphInputs, settings: GCFLSettings, run: Run) -> Outcome:
    """Average the convolutions inside clusters (Xie et al. 2021)."""
    plus = settings.similarity == "gradient_norms"
    similarity: Similarity = GradientNorms(settings.sequence) if plus else UpdateCosine()

    def server(institutions: tuple[int, ...], start: Mapping[str, Tensor]) -> GCFL:
        return GCFL(
            institutions,
            start,
            similarity,
            eps1=settings.eps1,
            eps2=settings.eps2,
            first_round=settings.first_cut,
            clustering=settings.clustering,
            weighting=settings.weighting,
        )

    return _train(GCFL_METHOD, inputs, settings, run, server, sends_gradient_norm=plus)


def _train(
    method: Method,
    inputs: GraphInputs,
    settings: SoloGINSettings | FederatedGINSettings,
    run: Run,
    server: Server | None = None,
    *,
    sends_gradient_norm: bool = False,
) -> Outcome:
    assert method.topology != "setting"

    def network(features: int, classes: int) -> GIN:
        return GIN(features, classes, settings.hidden, LAYERS, settings.dropout)

    return train_networks(
        GraphTraining(
            inputs,
            settings.schedule(),
            run,
            method.topology,
            method.crossing.tensors,
            server=server,
            network=network,
            sends_gradient_norm=sends_gradient_norm,
        )
    )


train_selftrain = partial(train_solo, SELFTRAIN)
train_central = partial(train_solo, CENTRAL_GIN)
