"""Institutions as slices of stacked tensors: one product trains all institutions in all folds."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.engines.batches import Batches
from brainfed.engines.clients import NetworkClients
from brainfed.engines.curves import Curves
from brainfed.engines.stacked.kept import kept_stack
from brainfed.engines.stacked.network import StackedNetwork
from brainfed.engines.stacked.stacks import Member, stack_inputs
from brainfed.federation.adam import Adam
from brainfed.federation.clients import Arrays
from brainfed.federation.message import Message
from brainfed.federation.schedule import FederationSettings
from brainfed.federation.sharing import Content
from brainfed.samples.inputs import MethodInputs
from brainfed.samples.kept.fitted_model import FittedModel

MODEL, OPTIMISER = "model/", "optimiser/"


class StackedClients(NetworkClients):
    """All institutions of some folds.

    Args:
        network: weights of all institutions, equal at the start.
        inputs: of the repeat.
        settings: settings of the federation.
        shares: names on the wire of the tensors that leave an institution; all others stay local. If empty, every
            institution trains alone and its optimiser is never reset.
        largest: number of subjects of the largest institution that is not here.
    """

    def __init__(
        self,
        network: StackedNetwork,
        inputs: MethodInputs,
        settings: FederationSettings,
        shares: Collection[str],
        largest: int = 0,
    ) -> None:
        stack = network.stack
        self.inputs, self.global_model = inputs, bool(shares)
        self.parameters = sum(parameter.numel() for parameter in network.plain.parameters())
        self.network, self.settings, self.shares = network, settings, frozenset(shares)
        self.labels, self.subjects = stack.labels, stack.subjects
        self.batches = Batches(settings.batch, (*stack.subjects, largest), stack.folds, network.streams)
        self.samples = (self.labels >= 0).sum(dim=2).cpu()
        self.keeps = settings.optimiser_state == "keep" or not shares
        self.optimiser = Adam(network.parameters(), settings.learning_rate, settings.weight_decay)
        self._alike = True
        self.curves = Curves.of(settings.rounds, self.labels, network.classes)

    def start(self) -> dict[str, Tensor]:
        """(F, ...) views of the shared tensors of the initial model."""
        return {name: stack[0] for name, stack in self._shared().items()}

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Run the local epochs of the chosen institutions in parallel."""
        if not self.keeps:
            self.optimiser.reset()
        trains = torch.zeros(len(self.subjects), dtype=torch.bool)
        trains[list(chosen)] = True
        self.curves.losses[number] = self._train(number, trains)
        self._alike = False
        views = self._shared()
        return {
            place: Message({name: stack[place] for name, stack in views.items()}, self.samples[place])
            for place in chosen
        }

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Load one copy of a model that all institutions share, else one model an institution."""
        if not messages:
            return
        views = self.network.stacks()
        sent = {id(message.tensors): message.tensors for message in messages.values()}
        if len(sent) == 1 and len(messages) == len(self.subjects):
            (tensors,) = sent.values()
            self._alike = tensors.keys() == views.keys()
            self.network.load(views | dict(tensors))
            return
        values = {name: stack.clone() for name, stack in views.items()}
        for place, message in messages.items():
            for name, tensor in message.tensors.items():
                values[name][place] = tensor
        self.network.load(values)

    def score(self, number: int) -> str:
        """Record every institution's probabilities."""
        self.curves.probabilities[number] = self.network.probabilities().cpu().numpy()
        losses = self.curves.losses[number]
        return f"loss {np.nanmean(losses):.4f}" if np.isfinite(losses).any() else "nobody here was drawn"

    def state(self, number: int) -> Arrays:
        """The curves, the models (once if all are equal), and Adam's moments where later rounds need them."""
        arrays: Arrays = dict(self.curves.until(number))
        if self.keeps and number + 1 < self.settings.rounds:
            arrays |= {f"{OPTIMISER}{name}": array for name, array in self.optimiser.arrays().items()}
        slots = slice(0, 1) if self._alike else slice(None)
        return arrays | {f"{MODEL}{name}": stack[slots].cpu().numpy() for name, stack in self.network.stacks().items()}

    @torch.no_grad()
    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore a saved state."""
        for name, curve in self.curves.until(number).items():
            curve[:] = arrays[name]
        moments = {name.removeprefix(OPTIMISER): arrays[name] for name in arrays if name.startswith(OPTIMISER)}
        if moments:
            self.optimiser.load(moments)
        weights = {name: torch.from_numpy(arrays[f"{MODEL}{name}"]) for name in self.network.stacks()}
        self._alike = all(len(stack) == 1 for stack in weights.values())
        self.network.load(weights)

    def content(self, place: int) -> Content:
        """The model; where there is no global one, with the scaling that belongs to it."""
        weights = {name: (tuple(view.shape[2:]), view.element_size()) for name, view in self.network.stacks().items()}
        member = self.network.stack.members[place]
        moments = {} if self.global_model else {"feature-mean": member.mean, "feature-sd": member.sd}
        return {name: (each.shape[1:], each.itemsize) for name, each in moments.items() if each is not None} | weights

    def member_probabilities(self) -> NDArray[np.float64]:
        """(T, M, F, n, C) after every round: all nodes are scored at once."""
        return self.curves.probabilities

    @torch.no_grad()
    def foreign_probabilities(
        self, teacher: int, place: int, position: int, tested: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(b, C) of nodes in their own graph, under the scaling of the teacher."""
        network, one = self.network, slice(position, position + 1)
        stack, scaling = network.stack, network.stack.members[teacher]
        mean = None if scaling.mean is None else scaling.mean[one]
        sd = None if scaling.sd is None else scaling.sd[one]
        member = Member(stack.members[place].nodes, mean, sd)
        model = network.on(stack_inputs(self.inputs, (member,), stack.folds[one], stack.reading))
        model.load({name: view[teacher, one] for name, view in network.stacks().items()})
        return np.asarray(model.probabilities()[0, 0].cpu().numpy(), dtype=np.float64)[tested]

    def kept_models(self) -> list[FittedModel]:
        """One a fold."""
        return kept_stack(self.network, alone=not self.global_model)

    def _shared(self) -> dict[str, Tensor]:
        return {name: stack for name, stack in self.network.stacks().items() if name in self.shares}

    def _train(self, number: int, chosen: Tensor) -> NDArray[np.float64]:
        settings, labels = self.settings, self.labels
        starts = self._starts() if settings.proximal else []
        total, steps = torch.zeros(2, *labels.shape[:2], dtype=torch.float64, device=labels.device)
        for epoch in range(settings.local_epochs):
            for step, batch in enumerate(self.batches.of(labels, number, epoch)):
                self.network.draw_anew(number, epoch, step)
                losses = self.network.training_step(batch, chosen).double()
                if starts:
                    self._add_proximal_gradient(starts, chosen)
                self.optimiser.step()
                total += losses.nan_to_num(0.0)
                steps += losses.isfinite()
        return np.asarray((total / steps).cpu().numpy())

    def _starts(self) -> list[Tensor]:
        """(1 or M, ...) copies of the parameters at the start of the round; one for all if all are equal."""
        slots = slice(0, 1) if self._alike else slice(None)
        return [parameter.detach()[slots].clone() for parameter in self.network.parameters()]

    @torch.no_grad()
    def _add_proximal_gradient(self, starts: Sequence[Tensor], chosen: Tensor) -> None:
        """Add the gradient of FedProx's mu / 2 |w - w_t|^2; the recorded loss is without this term."""
        for parameter, start in zip(self.network.parameters(), starts, strict=True):
            assert parameter.grad is not None
            for place in torch.nonzero(chosen)[:, 0].tolist():
                moved = parameter[place] - start[place if len(start) > 1 else 0]
                parameter.grad[place].add_(moved, alpha=self.settings.proximal)
