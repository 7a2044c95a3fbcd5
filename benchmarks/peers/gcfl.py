"""Rounds of GCFL on connectomes: a loop of PyTorch and PyG over the institutions, and ours.

The loop follows the authors' code: a client is a GIN with Adam, the server cuts with networkx's `stoer_wagner`. A
client has all its training graphs in one step, and collates them once. Thresholds are such that clusters are cut from
the second round on.
"""

from functools import partial

import networkx as nx
import numpy as np
import torch
from graphs_speed import REGIONS, SITES, connectomes
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, relu
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.utils import to_torch_csr_tensor

from brainfed.methods.gcfl.declaration import GCFLSettings
from brainfed.methods.gcfl.train import train_gcfl
from brainfed.models import GIN
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Run
from brainfed.samples import UNTESTED, GraphInputs, GraphSamples, hidden_labels
from peers.comparison import Comparison, Result, agreed, compared, named, timed

TOLERANCE, EXACT = 1e-2, 1e-9
"""Largest difference of a probability or of the logarithm of a loss, in float32 and in float64."""
HIDDEN, CLASSES = 64, 2


class TorchGIN(nn.Module):
    """FC(d, 64) -> 3 x [GIN convolution, ReLU] -> sum over nodes -> FC(64, 64) ReLU -> FC(64, 2)."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.pre = nn.Linear(features, HIDDEN)
        self.convs = nn.ModuleList(
            GINConv(nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN))) for _ in range(3)
        )
        self.post, self.readout = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def forward(self, batch: Batch) -> Tensor:
        """Logits (n, 2) of n graphs."""
        hidden = self.pre(batch.x)
        for conv in self.convs:
            hidden = relu(conv(hidden, batch.adj_t))
        return self.readout(relu(self.post(global_add_pool(hidden, batch.batch, batch.num_graphs))))


class Client:
    """One institution: its network, Adam, training graphs and tested graphs."""

    def __init__(self, inputs: GraphInputs, code: int, settings: GCFLSettings, dtype: torch.dtype) -> None:
        members = inputs.members(code)
        training, self.tested = members[inputs.training(0)[members]], members[inputs.tested(0)[members]]
        start = GIN(inputs.graphs[0].nodes.shape[1], CLASSES, HIDDEN)
        start.start(inputs.streams, 0, code)
        self.network = TorchGIN(start.features)
        self.network.load_state_dict(start.state_dict())
        self.network.to(dtype)
        self.training_batch, self.tested_batch = (
            _batch(inputs.graphs[0], own, dtype) for own in (training, self.tested)
        )
        self.labels = torch.from_numpy(inputs.labels[0, training])
        self.optimiser = torch.optim.Adam(
            self.network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )

    def train(self) -> tuple[Tensor, float]:
        """One step; the update (P,) of the shared parameters, and the loss before."""
        before = self.shared()
        self.optimiser.zero_grad()
        loss = cross_entropy(self.network(self.training_batch), self.labels)
        loss.backward()
        self.optimiser.step()
        return self.shared() - before, loss.item()

    def shared(self) -> Tensor:
        """(P,) parameters of the convolutions."""
        return nn.utils.parameters_to_vector(self.network.convs.parameters()).detach().clone()

    def load(self, shared: Tensor) -> None:
        """Set the parameters of the convolutions."""
        with torch.no_grad():
            nn.utils.vector_to_parameters(shared, self.network.convs.parameters())

    @torch.no_grad()
    def probabilities(self) -> np.ndarray:
        """Of the second class, of the tested graphs."""
        return torch.softmax(self.network(self.tested_batch), dim=1)[:, 1].double().numpy()


def gcfl(quick: bool) -> Comparison:
    """GCFL on connectomes of ABIDE's sites."""
    inputs = _inputs(quick)
    settings = GCFLSettings(rounds=3, dropout=0.0, batch=0, first_cut=1, eps1=10.0, eps2=0.0)
    theirs, ours = (partial(side, inputs, settings) for side in (_by_loop, _by_brainfed))
    exact = agreed("GCFL in float64", theirs(dtype=torch.float64), ours(dtype=torch.float64), EXACT)
    graphs = inputs.graphs[0]
    shape = f"{len(graphs)} graphs of {graphs.node_start[1]} regions, {len(inputs.institutions)} institutions"
    work = f"{shape}, {settings.rounds} rounds: probabilities, losses and clusters of every round"
    peer = f"{named('torch', 'torch_geometric')} (loop)"
    return compared("GCFL", peer, work, timed(theirs), timed(ours), TOLERANCE, exact)


def _inputs(quick: bool) -> GraphInputs:
    """Graphs of ABIDE's sites, of which a fifth is tested."""
    sites, regions = ((12, 10, 8, 7, 5), 20) if quick else (SITES, REGIONS)
    graphs, truth = connectomes(0.1, sum(sites), regions)
    place = np.concatenate([np.arange(size) for size in sites])
    fold = np.where(place % 5 == 0, 0, UNTESTED)
    return GraphInputs(
        subjects=tuple(f"s{number:04d}" for number in range(len(truth))),
        institutions=tuple(f"site-{number}" for number in range(len(sites))),
        institution=np.repeat(np.arange(len(sites)), sites),
        fold=fold,
        labels=hidden_labels(truth, fold, 1),
        streams=Streams(0),
        graphs=(graphs,),
    )


def _by_brainfed(inputs: GraphInputs, settings: GCFLSettings, dtype: torch.dtype = torch.float32) -> Result:
    """Side by side probabilities (T, n), logarithms of losses (T, M), and the first institution of each's cluster."""
    run = Run(precision="float64" if dtype == torch.float64 else "float32")
    found = train_gcfl(inputs, settings, run)
    first = [[np.flatnonzero(row == own)[0] for own in row] for row in found.clusters[:, 0]]
    return np.hstack([found.round_scores[:, 0, :, 1], np.log(found.training_loss[:, :, 0]), first])


def _by_loop(inputs: GraphInputs, settings: GCFLSettings, dtype: torch.dtype = torch.float32) -> Result:
    """The same with PyTorch and PyG."""
    clients = [Client(inputs, code, settings, dtype) for code in range(len(inputs.institutions))]
    sizes = torch.tensor([len(client.labels) for client in clients], dtype=dtype)
    clusters = [list(range(len(clients)))]
    scores, firsts = np.full((settings.rounds, len(inputs.subjects)), np.nan), []
    losses = np.zeros((settings.rounds, len(clients)))
    for number in range(settings.rounds):
        sent = [client.shared() for client in clients]
        updates, losses[number] = zip(*[client.train() for client in clients], strict=True)
        updates = torch.stack(updates)
        if number >= settings.first_cut:
            clusters = [part for cluster in clusters for part in _parts(cluster, updates, settings)]
        for cluster in clusters:
            shares = sizes[cluster] / sizes[cluster].sum()
            for code in cluster:
                clients[code].load(sent[code] + shares @ updates[cluster])
        for client in clients:
            scores[number, client.tested] = client.probabilities()
        firsts.append([min(cluster) for code in range(len(clients)) for cluster in clusters if code in cluster])
    return np.hstack([scores, np.log(losses), firsts])


def _parts(cluster: list[int], updates: Tensor, settings: GCFLSettings) -> list[list[int]]:
    """A cluster, or the two parts of one whose updates are large while their mean is small."""
    own = updates[cluster]
    if len(cluster) < 3 or own.mean(dim=0).norm() >= settings.eps1 or own.norm(dim=1).max() <= settings.eps2:
        return [cluster]
    units = own / own.norm(dim=1, keepdim=True)
    graph = nx.from_numpy_array((units @ units.T + 1).double().numpy())
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    _, parts = nx.stoer_wagner(graph)
    return [sorted(cluster[place] for place in part) for part in parts]


def _batch(graphs: GraphSamples, chosen: np.ndarray, dtype: torch.dtype) -> Batch:
    data = []
    for number in chosen:
        nodes, edges = (slice(*start[number : number + 2]) for start in (graphs.node_start, graphs.edge_start))
        pairs = torch.from_numpy(np.stack([graphs.source[edges], graphs.target[edges]]))
        data.append(Data(torch.from_numpy(graphs.nodes[nodes]).to(dtype), pairs))
    batch = Batch.from_data_list(data)
    # A sparse matrix is several times as fast as the list of edges.
    ones = torch.ones(batch.num_edges, dtype=dtype)
    batch.adj_t = to_torch_csr_tensor(batch.edge_index.flip(0), ones, (batch.num_nodes, batch.num_nodes))
    return batch
