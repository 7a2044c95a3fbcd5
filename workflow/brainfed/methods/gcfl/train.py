"""The torch side of the GIN alone, on pooled graphs, under FedAvg and FedProx, GCFL and GCFL+."""

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from brainfed.engines import Server, train_networks
from brainfed.engines.graphs import GraphTraining
from brainfed.federation.strategies import GCFL, GradientNorms, Similarity, UpdateCosine
from brainfed.methods import Method
from brainfed.methods.gcfl.declaration import (
    CENTRAL_GIN,
    FEDAVG_GIN,
    LAYERS,
    SELFTRAIN,
    FederatedGINSettings,
    GCFLSettings,
    SoloGINSettings,
)
from brainfed.methods.gcfl.declaration import GCFL as GCFL_METHOD
from brainfed.models import GIN
from brainfed.runtime.jobs import Run
from brainfed.samples import GraphInputs, Outcome


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

    return train(GCFL_METHOD, inputs, settings, run, server, sends_gradient_norm=plus)


def train(
    method: Method,
    inputs: GraphInputs,
    settings: SoloGINSettings | FederatedGINSettings,
    run: Run,
    server: Server | None = None,
    *,
    sends_gradient_norm: bool = False,
) -> Outcome:
    """Train a GIN alone, on pooled graphs, or under a server: the mean of the convolutions by default."""
    assert method.topology != "setting"
    training = GraphTraining(
        inputs,
        settings.schedule(),
        run,
        method.topology,
        method.crossing.tensors,
        server=server,
        network=partial(GIN, hidden=settings.hidden, layers=LAYERS, dropout=settings.dropout),
        sends_gradient_norm=sends_gradient_norm,
    )
    return train_networks(training)


train_selftrain = partial(train, SELFTRAIN)
train_central = partial(train, CENTRAL_GIN)
train_fedavg = partial(train, FEDAVG_GIN)
