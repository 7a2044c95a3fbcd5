"""The link of one institution at its own site: the coordinator is a process elsewhere.

A request is named by the job and by its number in the job. All institutions ask the same requests in the same order,
as they run the same training with the same settings. An institution that starts again asks anew from its last state,
and the coordinator gives the answers of what is over once more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from brainfed.federation.apart.exchange import LARGEST, OPEN, PUBLISHED, REFUSED, REPLY, TENSOR, TOTAL, Exchange
from brainfed.federation.apart.packet import Packet, arrays_digest
from brainfed.federation.apart.recipes import recipe_of
from brainfed.federation.apart.sealed import SUM
from brainfed.federation.apart.sums import addends
from brainfed.federation.link import Arrays, EveryRound, Pace
from brainfed.federation.message import Message
from brainfed.federation.strategies.fedavg import EndingStrategy, Strategy
from brainfed.runtime.errors import UserError


@dataclass
class Home:
    """One institution.

    Attributes:
        institution: its code.
        exchange: carries its requests.
        job: name of the training, equal at all sites.
        device: where tensors of answers go.
        secure: whether numbers of which the coordinator needs the sum alone are masked on their way.
    """

    institution: int
    exchange: Exchange
    job: str
    device: str = "cpu"
    secure: bool = False
    apart: bool = field(default=True, init=False)
    _asked: int = field(default=0, init=False)

    def server(self, strategy: Strategy, rounds: int) -> "RemoteServer":
        """The coordinator in the place of `strategy`, which it runs."""
        recipe = recipe_of(strategy)
        stated = {
            "strategy": recipe.strategy,
            "settings": dict(recipe.settings),
            "tensors": arrays_digest(recipe.tensors),
            "rounds": rounds,
        }
        return RemoteServer(self, self._key(), stated, recipe.tensors)

    def ending_server(self, strategy: EndingStrategy, rounds: int) -> "RemoteServer":
        """The coordinator in the place of a strategy that ends by itself."""
        return self.server(strategy, rounds)

    def pace(self, usual: Pace) -> Pace:
        """A checkpoint after every round."""
        del usual
        return EveryRound()

    def total(self, parts: Mapping[str, NDArray[Any]]) -> Arrays:
        """Sums over all institutions."""
        arrays = {name: np.asarray(part) for name, part in parts.items()}
        about: dict[str, Any] = {"key": self._key()}
        if self.secure:
            about[SUM] = types_of(arrays)
        answer = self.ask(Packet(TOTAL, about, arrays))
        return {name: np.asarray(answer.tensors[name]) for name in arrays}

    def largest(self, number: int) -> int:
        """The largest number of all institutions."""
        return int(self.ask(Packet(LARGEST, {"key": self._key(), "number": int(number)})).about["number"])

    def ask(self, request: Packet) -> Packet:
        """The answer.

        Raises:
            UserError: the coordinator refuses.
        """
        answer = self.exchange.ask(request)
        if answer.kind == REFUSED:
            raise UserError(answer.about["sentence"])
        return answer

    def _key(self) -> str:
        self._asked += 1
        return f"{self.job}/{self._asked}"


def types_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, str]:
    """Name -> numpy's name of the type."""
    return {name: array.dtype.str for name, array in arrays.items()}


class RemoteServer:
    """The coordinator's strategy, as the loop of a training sees it from one institution.

    Args:
        home: the institution's link.
        key: of the training.
        stated: name, settings and digest of the recipe.
        tensors: of the recipe.
    """

    def __init__(self, home: Home, key: str, stated: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> None:
        self._home, self._key, self._stated, self._tensors = home, key, stated, tensors
        self._answer: Packet | None = None

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The coordinator's last message, if it is the one before round `number` or a later one."""
        answer = self._opened(number)
        tensors = {
            name.removeprefix(TENSOR): self._tensor(array)
            for name, array in answer.tensors.items()
            if name.startswith(TENSOR)
        }
        return {self._home.institution: Message(tensors)} if tensors else {}

    def choose(self, number: int) -> tuple[int, ...]:
        """The institution, if it trains in round `number`; a round that went on without it is over."""
        about = self._opened(number).about
        return (self._home.institution,) if about["round"] == number and about["trains"] else ()

    def aggregate(self, number: int, replies: Mapping[int, Message]) -> None:
        """Send this institution's reply, if the coordinator waits for this round, and take the answer."""
        if self._opened(number).about["round"] > number:
            return
        about: dict[str, Any] = {"key": self._key, "round": number}
        tensors: dict[str, NDArray[Any]] = {}
        for reply in replies.values():
            tensors = {name: tensor.detach().cpu().numpy() for name, tensor in reply.tensors.items()}
            parts = addends(self._stated["strategy"], self._stated["settings"], reply) if self._home.secure else None
            if parts is None:
                about |= {"samples": reply.samples.tolist(), "plain": sorted(reply.plain)}
            else:
                about[SUM], tensors = types_of(tensors), parts
        self._answer = self._home.ask(Packet(REPLY, about, tensors))

    def finished(self) -> bool:
        """Whether the strategy needs no further round."""
        return bool(self._opened(0).about["finished"])

    def published(self) -> dict[str, NDArray[Any]]:
        """What the strategy publishes at its end."""
        answer = self._opened(0)
        return {
            name.removeprefix(PUBLISHED): array for name, array in answer.tensors.items() if name.startswith(PUBLISHED)
        }

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing: the coordinator keeps its own."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing."""

    def _opened(self, number: int) -> Packet:
        """The last answer; the first one opens the training at round `number`."""
        if self._answer is None:
            request = {"key": self._key, "round": number, **self._stated}
            self._answer = self._home.ask(Packet(OPEN, request, self._tensors))
        return self._answer

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(self._home.device)
