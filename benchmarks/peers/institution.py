"""FedMLP and FedGCN as a user of PyTorch and PyG writes them: networks, and one institution in one fold."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, elu
from torch_geometric.nn import GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import subgraph

from brainfed.models import GCN, MLP, Classifier
from brainfed.samples import MethodInputs

HIDDEN, CLASSES = (64, 32), 2
State = dict[str, Tensor]


class TorchMLP(nn.Module):
    """FC(d, 64) ELU -> FC(64, 32) -> FC(32, 2)."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(features, HIDDEN[0]), nn.Linear(*HIDDEN)
        self.last = nn.Linear(HIDDEN[1], CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, 2) of features (n, d)."""
        return self.last(self.second(elu(self.first(x))))


class TorchGCN(nn.Module):
    """G-conv(d, 64) ELU -> G-conv(64, 32) -> FC(32, 2), on edges that are normalised."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.first = GCNConv(features, HIDDEN[0], normalize=False)
        self.second = GCNConv(*HIDDEN, normalize=False)
        self.last = nn.Linear(HIDDEN[1], CLASSES)

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        """Logits (n, 2) of features (n, d) on edges (2, E)."""
        return self.last(self.second(elu(self.first(x, edges, weight)), edges, weight))


def network_of(inputs: MethodInputs, *, graph: bool, fold: int, dtype: torch.dtype) -> TorchMLP | TorchGCN:
    """The peer's network with our initial weights of a fold."""
    features = inputs.features[0].shape[1]
    ours: Classifier = (GCN if graph else MLP)(features, HIDDEN, CLASSES)
    ours.start(inputs.streams, fold)
    network = (TorchGCN if graph else TorchMLP)(features)
    # In order: weight and bias of each layer; PyG has the bias first.
    matrices = [parameter for parameter in network.parameters() if parameter.dim() == 2]
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        for matrix, start in zip(matrices, (ours.weight_0, ours.weight_1, ours.weight_2), strict=True):
            matrix.copy_(start.T)
    return network.to(dtype)


@dataclass(frozen=True)
class Institution:
    """What one institution trains on and scores in one fold.

    Attributes:
        training, tested: arguments of the network.
        training_rows, tested_rows: rows of its output that count.
        labels: of the training rows.
        subjects: positions of the tested subjects among all.
    """

    training: tuple[Tensor, ...]
    tested: tuple[Tensor, ...]
    training_rows: Tensor | slice
    tested_rows: Tensor | slice
    labels: Tensor
    subjects: np.ndarray

    def train(self, network: nn.Module, epochs: int, learning_rate: float) -> None:
        """Steps of Adam with all training subjects."""
        optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
        for _ in range(epochs):
            optimiser.zero_grad()
            cross_entropy(network(*self.training)[self.training_rows], self.labels).backward()
            optimiser.step()

    @torch.no_grad()
    def probabilities(self, network: nn.Module) -> np.ndarray:
        """Of the patients' class, of the tested subjects."""
        return torch.softmax(network(*self.tested)[self.tested_rows], dim=1)[:, 1].double().numpy()


def institution_of(inputs: MethodInputs, code: int, fold: int, *, graph: bool, dtype: torch.dtype) -> Institution:
    """Z-score an institution's features with its training subjects; on a graph, also cut out and normalise its own."""
    members = inputs.members(code)
    training = np.flatnonzero(inputs.training(fold)[members])
    tested = np.flatnonzero(inputs.tested(fold)[members])
    x = torch.from_numpy(inputs.features[0][members]).to(dtype)
    sd, mean = torch.std_mean(x[training], dim=0, correction=0)
    x = (x - mean) / sd
    labels = torch.from_numpy(inputs.labels[fold, members[training]])
    if not graph:
        every = slice(None)
        return Institution((x[training],), (x[tested],), every, every, labels, members[tested])
    whole = inputs.graphs[0]
    pairs = torch.from_numpy(np.stack([whole.column, whole.row]))
    weight = torch.from_numpy(whole.weight).to(dtype)
    pairs, weight = subgraph(torch.from_numpy(members), pairs, weight, relabel_nodes=True, num_nodes=whole.nodes)
    arguments = (x, *gcn_norm(pairs, weight, len(members), add_self_loops=False))
    rows = torch.from_numpy(training), torch.from_numpy(tested)
    return Institution(arguments, arguments, *rows, labels, members[tested])
