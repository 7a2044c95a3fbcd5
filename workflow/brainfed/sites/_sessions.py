"""One training at the coordinator: a strategy, the round it waits for, and its last messages."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.federation import Message
from brainfed.runtime import ArrayFile, UserError
from brainfed.sites._packet import ANSWER, PUBLISHED, SAME_VERSION, SUM, TENSOR, Packet, SiteError, is_sum, usual
from brainfed.sites._recipes import WITHOUT_SOME, Recipe, made_by, reply_of_sum

Arrays = dict[str, NDArray[Any]]
AddUp = Callable[[Mapping[int, Packet]], tuple[Arrays, Collection[int]]]
"""Sealed requests -> sums, and whose numbers are in them."""


@dataclass
class Session:
    """A training between institutions.

    Attributes:
        recipe: of the strategy.
        institutions: their codes, ascending.
        rounds: largest number of rounds.
        number: the round whose replies come next.
        replied: institution -> last round in which it replied; -1 before.
        shapes: name -> shape and type of a reply's tensors, from the first reply.
    """

    recipe: Recipe
    institutions: tuple[int, ...]
    rounds: int
    number: int = 0
    replied: dict[int, int] = field(default_factory=dict)
    shapes: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the strategy."""
        self.strategy = made_by(self.recipe, self.institutions)
        self.replied = {code: self.replied.get(code, -1) for code in self.institutions}

    @property
    def publishes(self) -> bool:
        """Whether the strategy publishes a result at its end, for which no institution needs a state."""
        return hasattr(self.strategy, "published")

    @property
    def needs_all(self) -> bool:
        """Whether a round without one institution would be wrong: sums of all, or clusters of all."""
        return self.recipe.strategy not in WITHOUT_SOME

    @property
    def over(self) -> bool:
        """Whether no further round comes."""
        return self.number >= self.rounds or self._finished()

    def trains(self, code: int) -> bool:
        """Whether an institution trains in the next round."""
        return not self.over and code in self.strategy.choose(self.number)

    def aggregate(self, requests: Mapping[int, Packet], names: Mapping[int, str], add_up: AddUp) -> None:
        """End a round with these replies; institutions without one, or lost in the sum, are taken as not chosen.

        Raises:
            SiteError: a reply has other shapes or types than in earlier rounds, or in the first round than other sites
                (see `usual`), or a number that is not finite.
            UserError: no chosen site has replied.
        """
        sealed = {code: request for code, request in requests.items() if is_sum(request)}
        lost: set[int] = set()
        replies: dict[int, Message] = {}
        if sealed:
            first = sealed[min(sealed)]
            sums, added = add_up(sealed)
            lost = set(sealed) - set(added)
            replies[min(added)] = reply_of_sum(self.recipe.strategy, sums, first.about[SUM])
        heard = set(requests) - lost
        sent = {code: requests[code] for code in sorted(heard) if requests[code].tensors}
        for code in sorted(heard):
            if code not in sent and not is_sum(requests[code]) and self.trains(code):
                raise SiteError(
                    code,
                    f"site {names[code]!r}, round {self.number + 1}: expected the numbers that it trained, found none; "
                    f"{SAME_VERSION}",
                )
        shapes = self._like_shapes(sent, names)
        replies |= {code: _message(request) for code, request in sent.items()}
        if not replies:
            raise UserError(f"round {self.number + 1}: expected replies of the chosen sites, found none of them.")
        self.strategy.aggregate(self.number, replies)
        self.replied |= dict.fromkeys(heard, self.number)
        self.shapes = shapes
        self.number += 1

    def answer(self, code: int, asked: int) -> Packet:
        """The last messages to an institution that asks for round `asked`.

        One that was cut off before it had the answer to its last reply repeats that round, for the state that it left.
        """
        if asked == self.replied[code] < self.number:
            trained = code in self.strategy.choose(asked)
            return Packet(ANSWER, {"round": asked, "trains": trained, "finished": False})
        about = {"round": self.number, "trains": self.trains(code), "finished": self._finished()}
        message = self.strategy.broadcast(self.number).get(code)
        tensors: Arrays = {}
        if message is not None:
            tensors = {f"{TENSOR}{name}": tensor.detach().cpu().numpy() for name, tensor in message.tensors.items()}
        published = getattr(self.strategy, "published", None)
        if self.over and published is not None:
            tensors |= {f"{PUBLISHED}{name}": array for name, array in published().items()}
        return Packet(ANSWER, about, tensors)

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """JSON values and arrays, for `restored`."""
        about = {
            "strategy": self.recipe.strategy,
            "settings": dict(self.recipe.settings),
            "institutions": list(self.institutions),
            "rounds": self.rounds,
            "number": self.number,
            "replied": {str(code): last for code, last in self.replied.items()},
            "shapes": {name: [list(shape), kind] for name, (shape, kind) in self.shapes.items()},
        }
        arrays = {f"recipe/{name}": array for name, array in self.recipe.tensors.items()}
        return about, arrays | {f"state/{name}": array for name, array in self.strategy.state().items()}

    @classmethod
    def restored(cls, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Session":
        """From a `state`."""
        session = cls(
            Recipe(about["strategy"], about["settings"], _below("recipe/", arrays)),
            tuple(about["institutions"]),
            about["rounds"],
            about["number"],
            {int(code): last for code, last in about["replied"].items()},
            {name: (tuple(shape), kind) for name, (shape, kind) in about["shapes"].items()},
        )
        session.strategy.load(_below("state/", arrays))
        return session

    def _finished(self) -> bool:
        finished = getattr(self.strategy, "finished", None)
        return bool(finished()) if finished else False

    def _like_shapes(
        self, replies: Mapping[int, Packet], names: Mapping[int, str]
    ) -> dict[str, tuple[tuple[int, ...], str]]:
        """The shapes and types so far, with those that are new in these replies."""
        shapes = {
            code: {key: (tuple(array.shape), array.dtype.str) for key, array in reply.tensors.items()}
            for code, reply in replies.items()
        }
        if not shapes:
            return self.shapes
        lead, error = usual(shapes, len(names))
        # Losses of held-out subjects and products come in turn under one strategy.
        known = shapes[lead] | self.shapes
        for code, own in shapes.items():
            for key, (shape, kind) in own.items():
                expected = known.setdefault(key, (shape, kind))
                if expected != (shape, kind):
                    raise (SiteError if key in self.shapes else error)(
                        code,
                        f"site {names[code]!r}, round {self.number + 1}: expected {key} of shape {expected[0]} and "
                        f"type {expected[1]}, found shape {shape} and type {kind}; compare the site's version and "
                        "settings with those of the study.",
                    )
            for key, array in replies[code].tensors.items():
                if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                    raise SiteError(
                        code,
                        f"site {names[code]!r}, round {self.number + 1}: expected finite numbers in {key}, found NaN "
                        "or infinite ones; look at the site's features and lower learning_rate. The state before this "
                        "round is kept.",
                    )
        return known


def _message(request: Packet) -> Message:
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in request.tensors.items()}
    samples = torch.tensor(request.about["samples"], dtype=torch.int64)
    return Message(tensors, samples, frozenset(request.about["plain"]))


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


# The trainings and sums of a study at the coordinator, by key: in memory while they change, afterwards on the disk.

Part = Callable[[str], ArrayFile]
"""Key -> what `Steps.changed` gave."""


@dataclass(frozen=True)
class Total:
    """A sum that has ended.

    Attributes:
        given: site, as a word of a file -> fingerprint of its numbers.
        arrays: name -> sum.
    """

    given: Mapping[str, str]
    arrays: Arrays
    over: bool = field(default=True, init=False)

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """JSON values and arrays, for `restored`."""
        return dict(self.given), self.arrays

    @classmethod
    def restored(cls, about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> "Total":
        """From a `state`."""
        return cls(dict(about), dict(arrays))


KINDS: Mapping[str, type[Session] | type[Total]] = {"sessions": Session, "totals": Total}
"""By their names in the index."""


class Steps:
    """All trainings and sums. Those that are over stay in memory until `put_away`; a late site has them read again."""

    def __init__(self) -> None:
        self._kinds: dict[str, type[Session] | type[Total]] = {}
        self._held: dict[str, Session | Total] = {}
        self._changed: set[str] = set()
        self._part: Part | None = None

    def session(self, key: str) -> Session | None:
        """A training that has begun."""
        step = self._step(key)
        return step if isinstance(step, Session) else None

    def total(self, key: str) -> Total | None:
        """A sum that has ended."""
        step = self._step(key)
        return step if isinstance(step, Total) else None

    def keep(self, key: str, step: Session | Total) -> None:
        """Note a training that has begun or changed, or a sum that has ended."""
        self._kinds[key], self._held[key] = type(step), step
        self._changed.add(key)

    def changed(self) -> dict[str, tuple[dict[str, Any], Arrays]]:
        """Key -> JSON values and arrays of what has changed since the last call."""
        states = {key: self._held[key].state() for key in sorted(self._changed)}
        self._changed.clear()
        return states

    def put_away(self, part: Part) -> None:
        """Let go of all that is over and has not changed since `changed`: it can be read."""
        self._part = part
        self._held = {key: step for key, step in self._held.items() if key in self._changed or not step.over}

    def index(self) -> dict[str, list[str]]:
        """Keys of all trainings and sums, for `load`."""
        return {name: sorted(key for key, own in self._kinds.items() if own is kind) for name, kind in KINDS.items()}

    def load(self, index: Mapping[str, Any], part: Part) -> None:
        """Take what an earlier process kept. Each file is read, so that a damaged one is found now."""
        self._part = part
        self._kinds = {key: kind for name, kind in KINDS.items() for key in index[name]}
        for key in sorted(self._kinds):
            step = self._read(key)
            if not step.over:
                self._held[key] = step

    def _step(self, key: str) -> Session | Total | None:
        return self._read(key) if key in self._kinds and key not in self._held else self._held.get(key)

    def _read(self, key: str) -> Session | Total:
        assert self._part is not None
        file = self._part(key)
        return self._kinds[key].restored(file.metadata, file.arrays)
