"""The torch side of FGLBC, of FedAvg and FedGNN beside it, and of their networks alone and on pooled series."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from brainfed.engines.crossings import sizes_of
from brainfed.engines.private.cohort import PrivateCohort, SeriesWindows, mean_adjacencies
from brainfed.engines.private.training import PrivateTraining
from brainfed.engines.training import Server, train_networks
from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import record_downloads, record_help, record_pools, record_uploads
from brainfed.federation.strategies.similarity_weighted import SimilarityWeighted
from brainfed.federation.wire import SIZE_BYTES
from brainfed.methods.fglbc.declaration import (
    FEDAVG_STGCN,
    FEDGNN,
    FGLBC,
    GNN_CENTRAL,
    GNN_LOCAL,
    MEAN_ADJACENCY,
    STGCN_CENTRAL,
    STGCN_LOCAL,
    FedAvgSTGCNSettings,
    FedGNNSettings,
    FGLBCSettings,
    RegionGNNSettings,
    SoloRegionGNNSettings,
    SoloSTGCNSettings,
    STGCNSettings,
)
from brainfed.methods.method import Method
from brainfed.models.fglbc import STGCN, RegionGNN
from brainfed.runtime.jobs.checkpoints import Run
from brainfed.samples.inputs import Outcome
from brainfed.samples.series import SeriesInputs, wrapped

SUM_ENTRY = 8
"""Bytes of an entry of a sum of correlations."""


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
            network = STGCN(
                inputs.regions,
                inputs.classes,
                settings.channels,
                settings.kernel,
                settings.strides,
                settings.groups,
                edge_importance=settings.edge_importance,
            )
        else:
            network = RegionGNN(
                inputs.regions,
                settings.window,
                inputs.classes,
                settings.hidden,
                settings.layers,
                settings.groups,
                edge_importance=settings.edge_importance,
            )
        network.start(inputs.streams, fold, place)
        return network

    def cohort(self) -> PrivateCohort:
        """Windows and graphs of the institutions' subjects."""
        members = self.members
        if not self.mean_adjacency:
            windows = SeriesWindows(self.inputs, members, self.settings.window)
        else:
            means = np.zeros((len(members), self.inputs.folds), dtype=np.int64) + np.arange(self.inputs.folds)
            pools = members
            if self.federated:
                pools = [np.arange(len(self.inputs.subjects))]
            else:
                means += self.inputs.folds * np.arange(len(members))[:, None]
            ledger = Ledger(MEAN_ADJACENCY, self.axes)
            adjacencies = mean_adjacencies(self.inputs, pools, ledger, self.inputs.link)
            windows = SeriesWindows(self.inputs, members, self.settings.window, means, adjacencies)
        return PrivateCohort.of(self.inputs, members, windows.arguments, windows.windows_of)

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
        if self.topology == "central":
            lengths = np.bincount(self.inputs.institution, self.inputs.lengths).astype(int)
            series, entry = self.inputs.regions, self.inputs.series.itemsize
            contents = {
                code: {"series": ((int(lengths[code]), series), entry), "labels": ((size,), 1)}
                for code, size in sizes.items()
            }
            record_pools(ledger, sizes, contents)
        elif self.mean_adjacency:
            shape = (self.inputs.regions, self.inputs.regions)
            sums = {"adjacency-sum": (shape, SUM_ENTRY), "training-subjects": ((), SIZE_BYTES)}
            trains = set(self.inputs.institution[self.inputs.training(0)].tolist())
            trained = {code: size for code, size in sizes.items() if code in trains}
            if self.federated:
                record_uploads(ledger, trained, sums)
                record_downloads(ledger, sizes, {"adjacency-sum": (shape, SUM_ENTRY)})
            else:
                others = {code: size for code, size in sizes.items() if code not in trains}
                record_help(ledger, trained, others, sums)


def train_fglbc(inputs: SeriesInputs, settings: FGLBCSettings, run: Run) -> Outcome:
    """Weigh institutions by the likeness of their updates to the server's last one (Chen and Su 2024)."""

    def server(institutions: tuple[int, ...], start: Mapping[str, Tensor]) -> SimilarityWeighted:
        printed = settings.aggregation == "printed"
        return SimilarityWeighted(
            institutions, start, settings.temperature, settings.components or None, literal=printed
        )

    return _train(FGLBC, inputs, settings, run, server)


def train_fedavg(inputs: SeriesInputs, settings: FedAvgSTGCNSettings, run: Run) -> Outcome:
    """Average the networks of all institutions."""
    return _train(FEDAVG_STGCN, inputs, settings, run)


def train_fedgnn(inputs: SeriesInputs, settings: FedGNNSettings, run: Run) -> Outcome:
    """Average the networks without convolution over time of all institutions."""
    return _train(FEDGNN, inputs, settings, run)


def train_solo(
    method: Method, inputs: SeriesInputs, settings: SoloSTGCNSettings | SoloRegionGNNSettings, run: Run
) -> Outcome:
    """Train without rounds, in every institution or on pooled series."""
    return _train(method, inputs, settings, run)


def _train(
    method: Method,
    inputs: SeriesInputs,
    settings: FGLBCSettings | FedAvgSTGCNSettings | FedGNNSettings | SoloSTGCNSettings | SoloRegionGNNSettings,
    run: Run,
    server: Server | None = None,
) -> Outcome:
    assert method.topology != "setting"
    schedule, tensors = settings.schedule(), method.crossing.tensors
    training = SeriesTraining(inputs, schedule, run, method.topology, tensors, server=server, settings=settings)
    return train_networks(training)


train_stgcn_local = partial(train_solo, STGCN_LOCAL)
train_stgcn_central = partial(train_solo, STGCN_CENTRAL)
train_gnn_local = partial(train_solo, GNN_LOCAL)
train_gnn_central = partial(train_solo, GNN_CENTRAL)
