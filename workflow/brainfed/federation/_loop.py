"""The rounds of every family: choose, train, privatise, attack, record, aggregate, broadcast."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from brainfed.federation._link import Pace
from brainfed.federation._message import Message
from brainfed.federation._wire import Wire
from brainfed.federation.strategies import Strategy
from brainfed.runtime.jobs import Checkpoint, stop_asked, whole

Arrays = dict[str, NDArray[Any]]


class Clients(Protocol):
    """The loop's interface to an engine of all institutions, in a simulation, or of one, at a real site."""

    @property
    def institutions(self) -> tuple[int, ...]:
        """Codes of the institutions that train here."""

    def fit(self, number: int, chosen: Sequence[int]) -> Mapping[int, Message]:
        """Train the chosen institutions in round `number`; their replies, without noise."""

    def receive(self, messages: Mapping[int, Message]) -> None:
        """Copy the server's messages, one an institution; tensors that no message names stay."""

    def score(self, number: int) -> str:
        """Measure the institutions' models after round `number`; a few words for the progress line."""

    def state(self, number: int) -> Arrays:
        """Arrays that later rounds and the results depend on, after `receive` and `score` of round `number`."""

    def load(self, number: int, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore the `state` after round `number`."""


# The rounds of every family: choose -> train -> privatise, attack, record -> aggregate -> broadcast.
#
# The server's messages before the first round are empty where all institutions draw their initial weights from a common
# seed. The messages after round t are those before round t + 1.

CLIENTS, SERVER = "clients/", "server/"


def federate(
    clients: Clients,
    strategy: Strategy,
    wire: Wire,
    rounds: int,
    checkpoint: Checkpoint,
    progress: Callable[[int, int, str], None],
    pace: Pace | None = None,
    *,
    keeps_last: bool = True,
    finished: Callable[[], bool] = lambda: False,
) -> None:
    """Train the clients in place (FedNI Algorithm 1, procedures A and B).

    Args:
        checkpoint: read once, written after rounds as `pace` says.
        progress: called after every round with (done, total, what).
        keeps_last: whether to write the state after the last round, for a job that trains again after it.
        finished: asked before every round: whether the server has converged.
    """
    pace = pace or Pace()
    first = _resume(clients, strategy, wire, rounds, checkpoint)
    clients.receive(wire.down(first, strategy.broadcast(first), to=() if first else clients.institutions))
    for number in whole(range(first, rounds)):
        if finished():
            break
        replies = clients.fit(number, strategy.choose(number))
        strategy.aggregate(number, wire.up(number, replies))
        took_part = {institution for institution, reply in replies.items() if reply.in_first_fold}
        clients.receive(wire.down(number + 1, strategy.broadcast(number + 1), to=took_part))
        progress(number + 1, rounds, f"{clients.score(number)}, round")
        last = number + 1 == rounds
        if (last and keeps_last) or stop_asked() or (not last and pace.due()):
            with pace.writing():
                _save(clients, strategy, wire, checkpoint, number)


def _save(clients: Clients, strategy: Strategy, wire: Wire, checkpoint: Checkpoint, number: int) -> None:
    if checkpoint.path is None:
        return
    arrays = {f"{CLIENTS}{name}": array for name, array in clients.state(number).items()}
    arrays |= {f"{SERVER}{name}": array for name, array in strategy.state().items()}
    checkpoint.save(number, arrays, {"crossings": list(wire.ledger.rows())})


def _resume(clients: Clients, strategy: Strategy, wire: Wire, rounds: int, checkpoint: Checkpoint) -> int:
    """Load what `_save` wrote; the number of the first round to run."""
    saved = checkpoint.load(of=rounds)
    if saved is None:
        return 0
    number, arrays, about = saved
    clients.load(number, _below(CLIENTS, arrays))
    strategy.load(_below(SERVER, arrays))
    wire.ledger.restore(about["crossings"])
    return number + 1


def _below(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
