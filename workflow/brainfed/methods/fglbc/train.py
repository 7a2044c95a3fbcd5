"""The torch side of FGLBC, of FedAvg and FedGNN beside it, and of their networks alone and on pooled series."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from brainfed.engines import Server, series_content, sizes_of, train_networks
from brainfed.engines.private import PrivateCohort, PrivateTraining, SeriesWindows, mean_adjacencies
from brainfed.federation import SIZE_BYTES, Ledger, record_downloads, record_help, record_pools, record_uploads
from brainfed.federation.strategies import SimilarityWeighted
from brainfed.methods import Method
from brainfed.methods.fglbc.declaration import (
    FEDAVG_STGCN,
    FEDGNN,
    FGLBC,
    GNN_CENTRAL,
    GNN_LOCAL,
    MEAN_ADJACENCY,
    STGCN_CENTRAL,
    STGCN_LOCAL,
    FederatedRegionGNNSettings,
    FederatedSTGCNSettings,
    FGLBCSettings,
    RegionGNNSettings,
    SoloRegionGNNSettings,
    SoloSTGCNSettings,
    STGCNSettings,
)
from brainfed.models import STGCN, RegionGNN
from brainfed.runtime.jobs import Run
from brainfed.samples import Outcome, SeriesInputs, wrapped

SUM_ENTRY = 8
"""Bytes of an entry of a sum of correlations."""

SoloSettings = SoloSTGCNSettings | SoloRegionGNNSettings
FederatedSettings = FederatedSTGCNSettings | FederatedRegionGNNSettings


@dataclass(frozen=True, kw_only=True)
class SeriesTraining(PrivateTraining[SeriesInputs]):
    """A network on windows of region series.

    Attributes:
        settings: of the network; those of the training are its `schedule`.
    """

    settings: STGCNSettings | RegionGNNSettings

    @property
    def counts(self) -> dict[str, int]:
        """Subjects whose series are shorter than a window, which start again at their end."""
        return {"wrapped_subjects": wrapped(self.inputs.lengths, self.settings.window)}

    def network(self, fold: int, place: int) -> torch.nn.Module:
        """The network of an institution before the first step."""
        settings, inputs = self.settings, self.inputs
        network: STGCN | RegionGNN
        if isinstance(settings, STGCNSettings):
            sizes = (
                inputs.regions,
                inputs.classes,
                settings.channels,
                settings.kernel,
                settings.strides,
                settings.groups,
            )
            network = STGCN(*sizes, edge_importance=settings.edge_importance)
        else:
            widths = inputs.regions, settings.window, inputs.classes, settings.hidden
            network = RegionGNN(*widths, settings.layers, settings.groups, edge_importance=settings.edge_importance)
        network.start(inputs.streams, fold, place)
        return network

    def cohort(self) -> PrivateCohort:
        """Windows and graphs of the institutions' subjects."""
        inputs, members, means, adjacencies = self.inputs, self.members, None, None
        if self.mean_adjacency:
            # Institutions of a federation share one mean a fold.
            pools = [np.arange(len(inputs.subjects))] if self.federated else members
            own_pool = np.zeros(len(members), dtype=np.int64) if self.federated else np.arange(len(members))
            means = inputs.folds * own_pool[:, None] + np.arange(inputs.folds)
            adjacencies = mean_adjacencies(inputs, pools, Ledger(MEAN_ADJACENCY, self.axes), inputs.link)
        windows = SeriesWindows(inputs, members, self.settings.window, means, adjacencies)
        return PrivateCohort.of(inputs, members, windows.arguments, windows.windows_of)

    @property
    def mean_adjacency(self) -> bool:
        """Whether all subjects of a trainer share a graph."""
        return self.settings.adjacency == "cohort_mean"

    @property
    def axes(self) -> Mapping[str, int]:
        """Sizes of axes that the ledger knows."""
        known = {"regions": self.inputs.regions, "classes": self.inputs.classes}
        if isinstance(self.settings, STGCNSettings):
            return known | {"inputs": 1, "channels": self.settings.channels, "kernel": self.settings.kernel}
        return known | {"window": self.settings.window, "channels": self.settings.hidden, "taps": 1}

    def record_data(self, ledger: Ledger) -> None:
        """Record the series of a pooled training, and the sums of a shared adjacency, in the first fold."""
        sizes = sizes_of(self.inputs.institution)
        if self.pooled:
            contents = {code: series_content(self.inputs, self.inputs.members(code)) for code in sizes}
            record_pools(ledger, sizes, contents)
        elif self.mean_adjacency:
            matrix = (self.inputs.regions, self.inputs.regions), SUM_ENTRY
            sums = {"adjacency-sum": matrix, "training-subjects": ((), SIZE_BYTES)}
            trains = set(self.inputs.institution[self.inputs.training(0)].tolist())
            trained = {code: size for code, size in sizes.items() if code in trains}
            if self.federated:
                record_uploads(ledger, trained, sums)
                record_downloads(ledger, sizes, {"adjacency-sum": matrix})
            else:
                others = {code: size for code, size in sizes.items() if code not in trains}
                record_help(ledger, trained, others, sums)


def train(
    method: Method,
    inputs: SeriesInputs,
    settings: SoloSettings | FederatedSettings,
    run: Run,
    server: Server | None = None,
) -> Outcome:
    """Train the network of a method alone, on pooled series, or under a server: the mean of all networks by default."""
    assert method.topology != "setting"
    schedule, tensors = settings.schedule(), method.crossing.tensors
    training = SeriesTraining(inputs, schedule, run, method.topology, tensors, server=server, settings=settings)
    return train_networks(training)


def train_fglbc(inputs: SeriesInputs, settings: FGLBCSettings, run: Run) -> Outcome:
    """Weigh institutions by the likeness of their updates to the server's last one (Chen and Su 2024)."""

    def server(institutions: tuple[int, ...], start: Mapping[str, Tensor]) -> SimilarityWeighted:
        printed = settings.aggregation == "printed"
        return SimilarityWeighted(
            institutions, start, settings.temperature, settings.components or None, literal=printed
        )

    return train(FGLBC, inputs, settings, run, server)


train_stgcn_local = partial(train, STGCN_LOCAL)
train_stgcn_central = partial(train, STGCN_CENTRAL)
train_gnn_local = partial(train, GNN_LOCAL)
train_gnn_central = partial(train, GNN_CENTRAL)
train_fedavg = partial(train, FEDAVG_STGCN)
train_fedgnn = partial(train, FEDGNN)
