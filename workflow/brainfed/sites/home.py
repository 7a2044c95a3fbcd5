"""The link of one institution at its own site: the coordinator is a process elsewhere.

A request is named by the job and by its number in the job. All institutions ask the same requests in the same order,
as they run the same training with the same settings. An institution that starts again asks anew from its last state,
and the coordinator gives the answers of what is over once more.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from brainfed.cohort.splits import require_own
from brainfed.federation import Arrays, EveryRound, Link, Message, Pace
from brainfed.federation.strategies import Strategy
from brainfed.runtime import UserError
from brainfed.sites._ipc import SECRET, SITE_SOCKET, Answer, ask_client
from brainfed.sites._packet import LARGEST, OPEN, PUBLISHED, REFUSED, REPLY, SUM, TENSOR, TOTAL, Packet
from brainfed.sites._recipes import Recipe, addends, recipe_of


@dataclass
class Home:
    """One institution.

    Attributes:
        institution: its code.
        coordinator: answers a request when all institutions have asked the same.
        job: name of the training, equal at all sites.
        device: where tensors of answers go.
        secure: whether numbers of which the coordinator needs the sum alone are masked on their way.
    """

    institution: int
    coordinator: Answer
    job: str
    device: str = "cpu"
    secure: bool = False
    remote: bool = field(default=True, init=False)
    _asked: int = field(default=0, init=False)

    def server(self, strategy: Strategy, rounds: int) -> "RemoteServer":
        """The coordinator in the place of `strategy`, which it runs."""
        return RemoteServer(self, self._key(), recipe_of(strategy), rounds)

    ending_server = server
    """The same in the place of a strategy that ends by itself."""

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
        answer = self.coordinator(request)
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
    """The coordinator's strategy, as the loop of a training sees it from one institution."""

    def __init__(self, home: Home, key: str, recipe: Recipe, rounds: int) -> None:
        self._home, self._key, self._recipe, self._rounds = home, key, recipe, rounds
        self._answer: Packet | None = None

    def broadcast(self, number: int) -> Mapping[int, Message]:
        """The coordinator's last message, if it is the one before round `number` or a later one."""
        tensors = {
            name.removeprefix(TENSOR): torch.from_numpy(np.array(array)).to(self._home.device)
            for name, array in self._opened(number).tensors.items()
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
            parts = addends(self._recipe, reply) if self._home.secure else None
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
        tensors = self._opened(0).tensors
        return {name.removeprefix(PUBLISHED): array for name, array in tensors.items() if name.startswith(PUBLISHED)}

    def state(self) -> dict[str, NDArray[Any]]:
        """Nothing: the coordinator keeps its own."""
        return {}

    def load(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Nothing."""

    def _opened(self, number: int) -> Packet:
        """The last answer; the first one opens the training at round `number`."""
        if self._answer is None:
            about = {"key": self._key, "round": number, **self._recipe.stated(self._rounds)}
            self._answer = self._home.ask(Packet(OPEN, about, self._recipe.tensors))
        return self._answer


# A joint job at its site.
#
# Random streams, labels and messages are keyed by the code of an institution, its place in the study's list. The
# samples of a site keep that place; the other institutions have no subject here.

Samples = TypeVar("Samples")
"""`LabelledSubjects`, or `InpaintingInputs`; not imported, as each method's code would hold both."""


@dataclass(frozen=True)
class SiteJob:
    """A job that trains with the other sites (`scripting._joint.JointJob`).

    `study` has `sites`, `site`, `noise` and `secure_sums`.
    """

    study: Mapping[str, Any]
    link: Home

    @property
    def sites(self) -> Sequence[str]:
        """All sites of the study, in order."""
        return tuple(self.study["sites"])

    def placed(self, samples: Samples, digest: str) -> Samples:
        """The samples among those of all sites, with a key of noise that no other site knows, if the study says so.

        Raises:
            UserError: the samples have subjects of another institution.
        """
        secret = f"{Path(os.environ[SECRET]).read_text().strip()}/{digest}" if self.study["noise"] == "secret" else ""
        return at_home(samples, self.sites, self.study["site"], self.link, secret)


def site_job(study: Mapping[str, Any], output: str, device: str) -> SiteJob:
    """The job that writes `output`, as `brainfed join` has started it.

    Raises:
        UserError: something else has started it.
    """
    if SITE_SOCKET not in os.environ:
        raise UserError(
            f"site {study['site']!r}: expected this job to be started by `brainfed join`, as it trains with the other "
            "sites, found no connection to them; run `brainfed join CONFIG`."
        )
    _, _, job = output.partition("results/")
    place = list(study["sites"]).index(study["site"])
    ask = partial(ask_client, Path(os.environ[SITE_SOCKET]))
    return SiteJob(study, Home(place, ask, job.partition("/")[2], device, bool(study["secure_sums"])))


def at_home(given: Samples, sites: Sequence[str], site: str, link: Link, secret: str = "") -> Samples:
    """The samples of `site` as those of one of the `sites`.

    Args:
        given: samples of one institution.
        sites: names of all, in the order of the study.
        site: its name, one of these.
        link: to the others.
        secret: key of the noise that protects subjects; empty: the study's seed.

    Raises:
        UserError: the samples have subjects of another institution.
    """
    samples: Any = given
    require_own(samples.institutions, site)
    placed: Samples = replace(
        samples,
        institutions=tuple(sites),
        institution=np.full(len(samples.subjects), list(sites).index(site), dtype=np.int64),
        link=link,
        streams=replace(samples.streams, secret=secret),
    )
    return placed
