"""A GIN on whole graphs in every institution: its clients, and its training, all folds side by side."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines import (
    Batches,
    Curves,
    NetworkClients,
    Server,
    Training,
    averaging,
    content_of,
    padded_labels,
    require_finite,
    wire_name,
)
from brainfed.engines.graphs._batch import Block, Graphs, Scored
from brainfed.engines.graphs._network import Copies, KeyedDropout, Parameters, Task, Trainer
from brainfed.federation import (
    GRADIENT_NORM,
    Adam,
    Arrays,
    Content,
    FederationSettings,
    Ledger,
    Message,
    WeightNoise,
    record_pools,
)
from brainfed.models import GIN, SHARED, class_probabilities
from brainfed.runtime import Float64, IntArray, Streams, below
from brainfed.samples import GraphInputs, GraphSamples


@dataclass(frozen=True)
class GraphCohort:
    """The graphs of the institutions.

    Attributes:
        graphs: (M)(F) graphs of each institution in each fold, one object where folds have the same.
        labels: (M, F, n) in {0, ..., C - 1}, -1 without a training label, and beyond an institution's graphs.
        folds: numbers of the F folds; they key the streams.
        classes: number of classes C.
    """

    graphs: Sequence[Sequence[GraphSamples]]
    labels: Tensor
    folds: tuple[int, ...]
    classes: int

    @classmethod
    def of(
        cls,
        graphs: Sequence[GraphSamples],
        labels: IntArray,
        members: Sequence[IntArray],
        folds: tuple[int, ...],
        classes: int,
        widths: Sequence[int] = (),
    ) -> "GraphCohort":
        """Give every institution its own graphs.

        Args:
            graphs: of all subjects, one shared by the folds or one a fold.
            labels: (F, n) of all subjects in these folds, -1 where hidden.
            members: (M,) positions of each institution's subjects.
            widths: (M,) columns of node features that each institution has; empty: all.
        """
        parts = [[each.of(own) for each in graphs] for own in members]
        if widths:
            parts = [[each.narrowed(width) for each in own] for own, width in zip(parts, widths, strict=True)]
        by_fold = [own if len(own) > 1 else own * len(folds) for own in parts]
        return cls(by_fold, padded_labels(labels, members), folds, classes)

    @property
    def subjects(self) -> tuple[int, ...]:
        """(M,) number of graphs of each institution."""
        return tuple(len(own[0].node_start) - 1 for own in self.graphs)

    def hidden(self, place: int, position: int) -> IntArray:
        """Positions of an institution's graphs without a training label in a fold: all that it tests among them."""
        labels = self.labels[place, position, : self.subjects[place]]
        return torch.nonzero(labels < 0)[:, 0].cpu().numpy()

    def largest_first(self) -> list[tuple[int, int]]:
        """All (institution, place of the fold), the largest first, so that threads end at nearly the same time."""
        sizes = {
            (place, position): len(graphs.nodes)
            for place, own in enumerate(self.graphs)
            for position, graphs in enumerate(own)
        }
        return sorted(sizes, key=lambda part: -sizes[part])


# Threads that train institutions side by side: as many as torch may use, and every product on one of them.
#
# A product of an institution is too small to share, and numbers do not depend on the number of threads.

Tool = TypeVar("Tool")
Item = TypeVar("Item")
Result = TypeVar("Result")


class SideBySide(Generic[Tool]):
    """Threads that each hold a tool of their own while they work.

    Args:
        make: makes a tool, as memory to write into.
    """

    def __init__(self, make: Callable[[], Tool]) -> None:
        self._make = make
        self._tools: SimpleQueue[Tool] = SimpleQueue()

    def map(self, work: Callable[[Tool, Item], Result], items: Sequence[Item]) -> list[Result]:
        """`work` on every item, in the order of the items; torch uses one thread an operation meanwhile."""
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            count = min(threads, len(items))
            while self._tools.qsize() < count:
                self._tools.put(self._make())
            if count <= 1:
                return [self._with_tool(work, item) for item in items]
            with ThreadPoolExecutor(count) as pool:
                return list(pool.map(lambda item: self._with_tool(work, item), items))
        finally:
            torch.set_num_threads(threads)

    def _with_tool(self, work: Callable[[Tool, Item], Result], item: Item) -> Result:
        tool = self._tools.get()
        try:
            return work(tool, item)
        finally:
            self._tools.put(tool)


# Institutions that train a GIN on whole graphs, all of one round in one process.
#
# They have the numbers of `ModuleClients` in `tests/reference`, which trains one plain module after the other.
# Institutions and folds are blocks: an institution's activations stay in a core's cache, where small products run at
# the rate of large ones.

MODEL, OPTIMISER = "model/", "optimiser/"


class GraphClients(NetworkClients):
    """M institutions, each with one network a fold.

    Args:
        modules: (M)(F) networks with one rate of dropout; the features and classes may differ between institutions.
            They give the initial values and are not trained.
        streams: random streams of the repeat. Draws in training are keyed by institution, fold, round and step.
        shares: names on the wire of the parameters that leave an institution. If empty, every institution trains
            alone and its optimiser is never reset.
        sends_gradient_norm: whether replies have `GRADIENT_NORM`, of the loss with the proximal term and without the
            optimiser's penalty; 0 in a fold without training graphs.

    Raises:
        ValueError: `shares` has a name that the modules have not.
    """

    # First and last layers are every institution's own.
    global_model = False

    def __init__(
        self,
        modules: Sequence[Sequence[GIN]],
        cohort: GraphCohort,
        settings: FederationSettings,
        streams: Streams,
        shares: Collection[str] = (),
        *,
        sends_gradient_norm: bool = False,
    ) -> None:
        self.cohort, self.settings, self.streams = cohort, settings, streams
        self.shares = _own_names(modules[0][0], shares)
        self.sends_gradient_norm = sends_gradient_norm
        self.parameters = sum(parameter.numel() for parameter in modules[0][0].parameters())
        self.weights = [Copies(own) for own in modules]
        rate, decay = settings.learning_rate, settings.weight_decay
        self.optimisers = [[Adam([vector], rate, decay) for vector in own.values] for own in self.weights]
        first, self.dropout = modules[0][0], KeyedDropout(modules[0][0].dropout, streams)
        self.side_by_side = SideBySide(lambda: Trainer(first.pre.weight.detach(), self.dropout))
        self.graphs = [_graphs(own, graphs) for own, graphs in zip(modules, cohort.graphs, strict=True)]
        self._parts = cohort.largest_first()
        self.samples = (cohort.labels >= 0).sum(dim=2).cpu()
        self.keeps = settings.optimiser_state == "keep" or not shares
        self.batches = Batches(settings.batch, cohort.subjects, cohort.folds, streams, even=False)
        self.gradient_norms = modules[0][0].pre.weight.detach().new_zeros(len(modules), len(cohort.folds))
        self.curves = Curves.of(settings.rounds, cohort.labels, cohort.classes)
        self.curves.probabilities[:, cohort.labels.cpu().numpy() >= 0] = np.nan
        self.hidden = {part: cohort.hidden(*part) for part in self._parts}
        self._to_score: dict[tuple[int, int], list[Scored]] = {}
        self._last: dict[tuple[int, int], tuple[bytes, list[Block]]] = {}

    def start(self) -> dict[str, Tensor]:
        """(F, ...) views of the shared tensors of the first institution before the first round."""
        return self._shared(0)

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Run the local epochs of the chosen institutions.

        Raises:
            UserError: a loss is not finite.
        """
        self.curves.losses[number] = np.nan
        steps = [self.batches.of(self.cohort.labels, number, epoch) for epoch in range(self.settings.local_epochs)]
        parts = [(place, position) for place, position in self._parts if place in chosen]
        losses = self.side_by_side.map(lambda trainer, part: self._train(trainer, number, part, steps), parts)
        for part, loss in zip(parts, losses, strict=True):
            if self.samples[part]:
                require_finite(loss, f"institution {part[0]}", self.cohort.folds[part[1]], number)
            self.curves.losses[number, *part] = loss
        return {place: self._reply(place) for place in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Load the shared tensors; all others stay."""
        for place, message in messages.items():
            own = self._shared(place)
            for name, tensor in message.tensors.items():
                own[name].copy_(tensor)

    def score(self, number: int) -> str:
        """Record every institution's probabilities of its graphs without a training label."""
        parts = [part for part in self._parts if len(self.hidden[part])]
        self.side_by_side.map(lambda trainer, part: self._score(trainer, number, part), parts)
        return self.curves.words(number)

    def content(self, place: int) -> Content:
        """The whole network, with its first and last layers."""
        return content_of({wire_name(name): stack for name, stack in self.weights[place].stacks.items()}, 1)

    def member_probabilities(self) -> Float64:
        """(1, M, F, n, C); 0 of a class that an institution lacks."""
        scores = np.full((1, *self.cohort.labels.shape, self.cohort.classes), np.nan)
        for place, position in np.argwhere(self.samples.numpy() > 0).tolist():
            taught = torch.nonzero(self.cohort.labels[place, position] >= 0)[:, 0].cpu().numpy()
            weights = self.weights[place].parameters[position]
            own = self._probabilities(weights, self.graphs[place][position].scored(taught, len(weights.convs)))
            scores[0, place, position, taught] = 0
            scores[0, place, position, taught, : own.shape[1]] = own
        return scores

    def foreign_probabilities(self, teacher: int, place: int, position: int, tested: IntArray) -> Float64:
        """(b, C) of graphs of an institution, all of which a fold without training graphs scores."""
        return self._probabilities(self.weights[teacher].parameters[position], self._scored(place, position))[tested]

    def _probabilities(self, weights: Parameters, blocks: list[Scored]) -> Float64:
        (logits,) = self.side_by_side.map(lambda trainer, _: trainer.scores(weights, blocks), [0])
        return np.asarray(class_probabilities(logits).cpu().numpy(), dtype=np.float64)

    def state(self, number: int) -> Arrays:
        """The curves, the models, and Adam's moments where later rounds need them."""
        arrays: Arrays = dict(self.curves.until(number))
        for key, vector, optimiser in self._each():
            arrays[f"{MODEL}{key}"] = vector.cpu().numpy()
            if self.keeps and number + 1 < self.settings.rounds:
                arrays |= {f"{OPTIMISER}{key}/{name}": array for name, array in optimiser.arrays().items()}
        return arrays

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a `state`."""
        self.curves.restore(number, arrays)
        for key, vector, optimiser in self._each():
            vector.copy_(torch.from_numpy(np.array(arrays[f"{MODEL}{key}"])))
            if moments := below(f"{OPTIMISER}{key}/", arrays):
                optimiser.load(moments)

    def _each(self) -> list[tuple[str, Tensor, Adam]]:
        return [
            (f"{place}/{position}", vector, self.optimisers[place][position])
            for place, weights in enumerate(self.weights)
            for position, vector in enumerate(weights.values)
        ]

    def _shared(self, place: int) -> dict[str, Tensor]:
        return {wire_name(name): stack for name, stack in self.weights[place].stacks.items() if name in self.shares}

    def _reply(self, place: int) -> Message:
        tensors = self._shared(place)
        if not self.sends_gradient_norm:
            return Message(tensors, self.samples[place])
        norms = {GRADIENT_NORM: self.gradient_norms[place].clone()}
        return Message(tensors | norms, self.samples[place], frozenset(norms))

    def _score(self, trainer: Trainer, number: int, part: tuple[int, int]) -> None:
        place, position = part
        logits = trainer.scores(self.weights[place].parameters[position], self._scored(place, position))
        curve = self.curves.probabilities[number, place, position]
        curve[self.hidden[part], : logits.shape[1]] = class_probabilities(logits).cpu().numpy()

    def _scored(self, place: int, position: int) -> list[Scored]:
        """The graphs of an institution that are scored in a fold."""
        if (place, position) not in self._to_score:
            layers, hidden = len(self.weights[place].parameters[position].convs), self.hidden[place, position]
            self._to_score[place, position] = self.graphs[place][position].scored(hidden, layers)
        return self._to_score[place, position]

    def _train(self, trainer: Trainer, number: int, part: tuple[int, int], steps: Sequence[Sequence[Tensor]]) -> float:
        """Mean loss of one institution's steps in one fold that had a graph; NaN where none had."""
        place, position = part
        weights, optimiser = self.weights[place], self.optimisers[place][position]
        if not self.keeps:
            optimiser.reset()
        pulled = self._pulled(weights, position)
        losses = []
        for epoch, batches in enumerate(steps):
            for step, every in enumerate(batches):
                labels = every[place, position]
                if not (labels >= 0).any():
                    continue
                loss = self._gradient(trainer, part, labels, (number, epoch, step))
                for gradient, value, start in pulled:
                    gradient.add_(value - start, alpha=self.settings.proximal)
                optimiser.step()
                losses.append(loss)
        if self.sends_gradient_norm:
            shared = [each for name, each in weights.named_gradients[position].items() if name in self.shares]
            squares = sum(float(each.double().square().sum()) for each in shared)
            self.gradient_norms[place, position] = math.sqrt(squares)
        return float(np.mean(losses)) if losses else float("nan")

    def _gradient(self, trainer: Trainer, part: tuple[int, int], labels: Tensor, moment: tuple[int, int, int]) -> float:
        """Loss of one local step; the weights' gradient is written."""
        place, position = part
        weights, dropout = self.weights[place], self.dropout
        chosen = torch.nonzero(labels >= 0)[:, 0]
        blocks = self._blocks(place, position, chosen)
        parameters, like = weights.parameters[position], weights.values[position]
        nodes, graphs = [len(block.graph) for block in blocks], [len(block.members.start) - 1 for block in blocks]
        key, width = (place, self.cohort.folds[position], *moment), len(parameters.post.bias)
        drawn = dropout.draws(key, [(sum(nodes), width)] * len(parameters.convs) + [(sum(graphs), width)])
        draws = [torch.split(each, nodes) for each in drawn[:-1]] + [torch.split(each, graphs) for each in drawn[-1:]]
        own = torch.split(labels[chosen].to(like.device), graphs)
        tasks = [Task(block, own[index], [each[index] for each in draws]) for index, block in enumerate(blocks)]
        weights.clear(position)
        return trainer.loss_and_gradient(parameters, weights.gradients[position], tasks)

    def _blocks(self, place: int, position: int, chosen: Tensor) -> list[Block]:
        """The graphs of a step; those of the last step are kept, as one step may be all training graphs."""
        numbers = chosen.cpu().numpy()
        known, blocks = self._last.get((place, position), (b"", []))
        if known != numbers.tobytes():
            blocks = self.graphs[place][position].blocks(numbers)
            self._last[place, position] = numbers.tobytes(), blocks
        return blocks

    def _pulled(self, weights: Copies, position: int) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Gradient, value and value at the start of the round of what FedProx pulls back: what is shared."""
        if not self.settings.proximal:
            return []
        named, gradients = weights.named[position], weights.named_gradients[position]
        names = [name for name in named if not self.shares or name in self.shares]
        return [(gradients[name], named[name], named[name].clone()) for name in names]


def _own_names(module: GIN, shares: Collection[str]) -> frozenset[str]:
    """Names in the module of what is shared."""
    names = {wire_name(name): name for name, _ in module.named_parameters()}
    if unknown := sorted(set(shares) - names.keys()):
        raise ValueError(f"shares: expected names among {', '.join(names)}, found {unknown[0]}")
    return frozenset(names[name] for name in shares)


def _graphs(modules: Sequence[GIN], by_fold: Sequence[GraphSamples]) -> list[Graphs]:
    """(F,) graphs of one institution; folds with the same graphs have one object."""
    made: dict[int, Graphs] = {}
    for samples, module in zip(by_fold, modules, strict=True):
        if id(samples) not in made:
            made[id(samples)] = Graphs(samples, module.pre.weight.detach())
    return [made[id(samples)] for samples in by_fold]


# What the driver of all engines asks of a training on whole graphs: what may cross, and the clients.


@dataclass(frozen=True, kw_only=True)
class GraphTraining(Training[GraphInputs, FederationSettings]):
    """A GIN on whole graphs; its convolutions are shared, its first and last layers never are.

    Attributes:
        network: made for a number of features of a node and a number of classes.
        sends_gradient_norm: whether the server reads the norms of gradients.
    """

    network: Callable[[int, int], GIN]
    sends_gradient_norm: bool = False

    @property
    def reports(self) -> bool:
        """Every server reads the numbers of training graphs."""
        return self.federated

    @property
    def usual_server(self) -> Server:
        """The mean of the institutions that the schedule draws, with its weights."""
        return averaging(self.schedule, self.inputs.streams)

    def ledger(self) -> Ledger:
        """Pooled graphs cross before the first round."""
        inputs = self.inputs
        width, hidden = inputs.graphs[0].nodes.shape[1], self.network(1, inputs.classes).hidden
        axes = {"features": width, "hidden": hidden, "classes": inputs.classes, "ends": 2}
        ledger = Ledger(self.shared_tensors, axes)
        if self.pooled and len(inputs.institutions) > 1:
            _record_pooling(inputs, ledger)
        return ledger

    def clients(self, folds: tuple[int, ...], _ledger: Ledger) -> GraphClients:
        """The institutions with their own graphs."""
        inputs, members, shapes = self.inputs, self.members, self._shapes
        widths = [features for features, _ in shapes]
        cohort = GraphCohort.of(inputs.graphs, inputs.labels, members, folds, inputs.classes, widths)
        modules = [[self._module(fold, place) for fold in folds] for place in range(len(members))]
        shared = [wire_name(name) for name, _ in modules[0][0].named_parameters() if name.startswith(SHARED)]
        shares, sends_norm = shared if self.federated else (), self.sends_gradient_norm
        return GraphClients(modules, cohort, self.schedule, inputs.streams, shares, sends_gradient_norm=sends_norm)

    def noise(self, folds: tuple[int, ...]) -> WeightNoise:
        """The noise of the schedule."""
        return WeightNoise(self.schedule.noise, self.inputs.streams, folds)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        """Features and classes of every network: those of its institution; of a pooled network, the largest."""
        own = [self.inputs.shape(place) for place in range(len(self.inputs.institutions))]
        return [tuple(map(max, zip(*own, strict=True)))] if self.pooled else own

    def _module(self, fold: int, place: int) -> GIN:
        module = self.network(*self._shapes[place])
        module.start(self.inputs.streams, fold, place)
        return module.to(self.run.device, getattr(torch, self.run.precision))


def _record_pooling(inputs: GraphInputs, ledger: Ledger) -> None:
    """Record that all graphs and labels leave the institutions."""
    graphs, sizes = inputs.graphs[0], np.bincount(inputs.institution)
    nodes = np.bincount(inputs.institution, np.diff(graphs.node_start)).astype(int)
    edges = np.bincount(inputs.institution, np.diff(graphs.edge_start)).astype(int)
    width, entry = graphs.nodes.shape[1], graphs.nodes.itemsize
    contents = {
        code: {
            "nodes": ((int(nodes[code]), width), entry),
            "edges": ((int(edges[code]), 2), graphs.source.itemsize),
            "labels": ((int(sizes[code]),), 1),
        }
        for code in range(len(sizes))
    }
    record_pools(ledger, dict(enumerate(sizes.tolist())), contents)
