"""One module an institution, of any architecture; folds run in sequence, with torch's optimisers.

Slower than `engines.stacked`, which gives the same numbers where all institutions have one classifier of `models`.
Only the tensors in `shares` leave an institution. A shared tensor has the same shape in all institutions.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from brainfed.engines import Batches, Curves, parameters_by_wire_name, wire_name
from brainfed.federation import GRADIENT_NORM, Arrays, FederationSettings, Message
from brainfed.models import class_probabilities
from brainfed.runtime import Streams, seeded

MODEL, OPTIMISER = "model/", "optimiser/"

Alone = Callable[[int, int, Tensor, tuple[int, int, int]], tuple[Any, ...]]
"""Institution, place of the fold, samples, (round, epoch, step) -> arguments of a module for these samples alone."""

MakeOptimiser = Callable[[Iterable[torch.nn.Parameter], FederationSettings], torch.optim.Optimizer]


def adam(parameters: Iterable[torch.nn.Parameter], settings: FederationSettings) -> torch.optim.Optimizer:
    """Adam with the learning rate and L2 penalty of the federation."""
    return torch.optim.Adam(parameters, lr=settings.learning_rate, weight_decay=settings.weight_decay)


@dataclass(frozen=True)
class Cohort:
    """The data of the institutions.

    Attributes:
        arguments: (M)(F) arguments of the forward function of an institution's module, which returns logits (n, C).
        labels: (M, F, n) in {0, ..., C - 1}, -1 where a node has no training label, and beyond an institution's nodes.
        subjects: (M,) number of subjects of each institution.
        folds: numbers of the F folds; they key the streams.
        classes: number of classes C.
        alone: makes the arguments of a local step's samples; None: samples need each other, as the nodes of a graph,
            and every step runs the module on all of them.
        even_steps: whether all institutions take equally many local steps, or each as many as its own training
            samples need.
    """

    arguments: Sequence[Sequence[tuple[Any, ...]]]
    labels: Tensor
    subjects: Sequence[int]
    folds: tuple[int, ...]
    classes: int
    alone: Alone | None = None
    even_steps: bool = True


class ModuleClients:
    """M institutions, each with one module a fold.

    Args:
        modules: (M)(F) networks; the architecture may differ between institutions, not between folds.
        cohort: data of the institutions.
        settings: settings of the federation.
        streams: random streams of the repeat. Draws in training are keyed by institution, fold, round and step.
        shares: names on the wire of the parameters and buffers that leave an institution. If empty, every institution
            trains alone and its optimiser is never reset.
        make_optimiser: makes the optimiser for the parameters of one module.
        sends_gradient_norm: whether replies have `GRADIENT_NORM`, of the loss with the proximal term and without the
            optimiser's penalty; 0 in a fold without training samples.

    Raises:
        ValueError: `shares` has a name that the modules have not, or an integer tensor, which has no mean.
    """

    def __init__(
        self,
        modules: Sequence[Sequence[torch.nn.Module]],
        cohort: Cohort,
        settings: FederationSettings,
        streams: Streams,
        shares: Collection[str] = (),
        make_optimiser: MakeOptimiser = adam,
        *,
        sends_gradient_norm: bool = False,
    ) -> None:
        self.modules, self.cohort, self.settings, self.streams = modules, cohort, settings, streams
        self.shares, self.make_optimiser = frozenset(shares), make_optimiser
        _check_shares(modules[0][0], self.shares)
        self.samples = (cohort.labels >= 0).sum(dim=2).cpu()
        self.keeps = settings.optimiser_state == "keep" or not shares
        self.optimisers = [[make_optimiser(module.parameters(), settings) for module in own] for own in modules]
        self.batches = Batches(settings.batch, cohort.subjects, cohort.folds, streams, even=cohort.even_steps)
        like = next(modules[0][0].parameters()).detach()
        self.gradient_norms = like.new_zeros(len(modules), len(cohort.folds)) if sends_gradient_norm else None
        self.curves = Curves.of(settings.rounds, cohort.labels, cohort.classes)

    @property
    def institutions(self) -> tuple[int, ...]:
        """Places in `modules`."""
        return tuple(range(len(self.modules)))

    def start(self) -> dict[str, Tensor]:
        """(F, ...) shared tensors of the first institution before the first round."""
        return self._shared(0)

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Run the local epochs of the chosen institutions in sequence."""
        self.curves.losses[number] = np.nan
        steps = [self.batches.of(self.cohort.labels, number, epoch) for epoch in range(self.settings.local_epochs)]
        for place in chosen:
            for position in range(len(self.cohort.folds)):
                if not self.keeps:
                    module = self.modules[place][position]
                    self.optimisers[place][position] = self.make_optimiser(module.parameters(), self.settings)
                self.curves.losses[number, place, position] = self._train(number, place, position, steps)
        return {place: self._reply(place) for place in chosen}

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Load the shared tensors; all others stay."""
        for place, message in messages.items():
            for position, module in enumerate(self.modules[place]):
                _fill(module, {name: tensor[position] for name, tensor in message.tensors.items()})

    @torch.no_grad()
    def score(self, number: int) -> str:
        """Record every institution's probabilities."""
        for place, own in enumerate(self.modules):
            for position, module in enumerate(own):
                module.eval()
                found = class_probabilities(module(*self.cohort.arguments[place][position]))
                self.curves.probabilities[number, place, position, : len(found)] = found.cpu().numpy()
        return f"loss {np.nanmean(self.curves.losses[number]):.4f}"

    def state(self, number: int) -> Arrays:
        """The curves, the models, and the optimisers' states where later rounds need them."""
        arrays: Arrays = dict(self.curves.until(number))
        for key, module, optimiser in self._each():
            arrays |= {f"{MODEL}{key}/{name}": tensor.cpu().numpy() for name, tensor in module.state_dict().items()}
            if self.keeps and number + 1 < self.settings.rounds:
                held = optimiser.state_dict()["state"].items()
                arrays |= {
                    f"{OPTIMISER}{key}/{index}/{name}": np.asarray(torch.as_tensor(value).cpu())
                    for index, values in held
                    for name, value in values.items()
                }
        return arrays

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state."""
        for name, curve in self.curves.until(number).items():
            curve[:] = arrays[name]
        for key, module, optimiser in self._each():
            module.load_state_dict(_tensors(f"{MODEL}{key}/", arrays))
            state: dict[int, dict[str, Tensor]] = {}
            for name, tensor in _tensors(f"{OPTIMISER}{key}/", arrays).items():
                index, _, part = name.partition("/")
                state.setdefault(int(index), {})[part] = tensor
            optimiser.load_state_dict(optimiser.state_dict() | {"state": state})

    def _each(self) -> Iterable[tuple[str, torch.nn.Module, torch.optim.Optimizer]]:
        for place, own in enumerate(self.modules):
            for position, module in enumerate(own):
                yield f"{place}/{position}", module, self.optimisers[place][position]

    def _shared(self, place: int) -> dict[str, Tensor]:
        """(F, ...) copies, by name."""
        named = [_named(module) for module in self.modules[place]]
        return {name: torch.stack([each[name].detach() for each in named]) for name in named[0] if name in self.shares}

    def _reply(self, place: int) -> Message:
        buffers = {wire_name(name) for name, _ in self.modules[place][0].named_buffers()}
        tensors, plain = self._shared(place), frozenset(buffers & self.shares)
        if self.gradient_norms is None:
            return Message(tensors, self.samples[place], plain)
        tensors[GRADIENT_NORM] = self.gradient_norms[place].clone()
        return Message(tensors, self.samples[place], plain | {GRADIENT_NORM})

    def _train(self, number: int, place: int, position: int, steps: Sequence[Sequence[Tensor]]) -> float:
        """Mean loss of one institution's steps in one fold that had a labelled subject; NaN where none had."""
        module, optimiser = self.modules[place][position], self.optimisers[place][position]
        pulled = self._pulled(module)
        module.train()
        losses = []
        for epoch, batches in enumerate(steps):
            for step, batch in enumerate(batches):
                labels = batch[place, position]
                samples = torch.nonzero(labels >= 0)[:, 0]
                if not len(samples):
                    continue
                logits = self._logits(place, position, samples, (number, epoch, step))
                loss = cross_entropy(logits, labels[samples])
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                self._add_proximal_gradient(pulled)
                optimiser.step()
                losses.append(float(loss.detach()))
        if self.gradient_norms is not None:
            self.gradient_norms[place][position] = self._gradient_norm(module)
        return float(np.mean(losses)) if losses else float("nan")

    def _logits(self, place: int, position: int, samples: Tensor, moment: tuple[int, int, int]) -> Tensor:
        """Logits of a step's samples, with draws keyed by the institution, the fold and (round, epoch, step)."""
        module, alone = self.modules[place][position], self.cohort.alone
        key = self.streams.key("module-draws", place, self.cohort.folds[position], *moment)
        with seeded(key, samples.device):
            if alone is not None:
                logits: Tensor = module(*alone(place, position, samples, moment))
                return logits
            logits = module(*self.cohort.arguments[place][position])
        return logits[samples]

    def _pulled(self, module: torch.nn.Module) -> list[tuple[torch.nn.Parameter, Tensor]]:
        """The parameters that FedProx pulls back, with their values at the start of the round: what is shared."""
        if not self.settings.proximal:
            return []
        named = parameters_by_wire_name(module).items()
        return [(each, each.detach().clone()) for name, each in named if not self.shares or name in self.shares]

    def _add_proximal_gradient(self, pulled: Sequence[tuple[torch.nn.Parameter, Tensor]]) -> None:
        """Add the gradient of FedProx's mu / 2 |w - w_t|^2; the recorded loss is without this term."""
        for parameter, start in pulled:
            if parameter.grad is not None:
                parameter.grad.add_(parameter.detach() - start, alpha=self.settings.proximal)

    def _gradient_norm(self, module: torch.nn.Module) -> float:
        """Norm of the gradient of all shared parameters."""
        held = [each.grad for name, each in parameters_by_wire_name(module).items() if name in self.shares]
        return math.sqrt(sum(float(each.double().square().sum()) for each in held if each is not None))


def _check_shares(module: torch.nn.Module, shares: Collection[str]) -> None:
    """Refuse names that the module has not, and tensors without a mean."""
    named = _named(module)
    if unknown := sorted(set(shares) - named.keys()):
        raise ValueError(f"shares: expected names among {', '.join(named)}, found {unknown[0]}")
    if counters := [name for name in sorted(shares) if not named[name].is_floating_point()]:
        raise ValueError(f"shares: expected floating-point tensors, found {counters[0]} of {named[counters[0]].dtype}")


def _named(module: torch.nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by their names on the wire."""
    return {wire_name(name): tensor for name, tensor in (*module.named_parameters(), *module.named_buffers())}


@torch.no_grad()
def _fill(module: torch.nn.Module, tensors: Mapping[str, Tensor]) -> None:
    held = _named(module)
    for name, tensor in tensors.items():
        held[name].copy_(tensor)


def _tensors(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): torch.from_numpy(np.array(array))
        for name, array in arrays.items()
        if name.startswith(prefix)
    }
