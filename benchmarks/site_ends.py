"""Both ends of the studies that `sites.py` measures: the coordinator, and stand-ins for the training at the sites.

The coordinator's end is the real one. A stand-in answers at once, with a model of given size, where a site would train:
through a real client and a real link, for each site, in threads of one process. It masks its model where sums are
secure.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from brainfed.federation import Message
from brainfed.federation.strategies import FedAvg
from brainfed.runtime import write_text
from brainfed.sites import LEAVE, REPLY, Coordinator, Hub, KeptState, Packet, SiteClient, serve
from brainfed.sites.conversation import Conversation
from brainfed.sites.flower import STEPS, Outward, SecureSums
from brainfed.sites.home import Home

PID, MARKS, COUNTED, STATE = "pid", "marks", "counted.json", "coordinator"
"""Files of the study's folder: the ServerApp's process; a line a step; packets' bytes; the coordinator's state."""
WAIT_S = 300.0
COUNTED_ROUND = 1
"""The round whose packets are counted; all have the same size but for digits of numbers."""
LEAST = 2
"""Fewest sites of a sum."""


class Marked(Coordinator):
    """A coordinator that notes when each step has ended.

    Args:
        names: site code -> name.
        marks: file of the notes.
        secure: adds up what sites mask; None: they mask nothing.
    """

    def __init__(self, names: Mapping[int, str], marks: Path, secure: SecureSums | None) -> None:
        super().__init__(names, secure=secure)
        self._marks = marks

    def answers(self, requests: Mapping[int, Packet], *, late: bool = False) -> dict[int, Packet]:
        """The coordinator's answers."""
        before = self.rounds
        found = super().answers(requests, late=late)
        if self.rounds != before:
            with self._marks.open("a", encoding="utf-8") as file:
                file.write(f"{time.monotonic()}\n")
        return found


def coordinate(hub: Hub, config: Mapping[str, Any]) -> None:
    """The ServerApp's entry: a study from its first request to the last leave."""
    folder, names = Path(str(config["folder"])), dict(enumerate(str(config["sites"]).split(",")))
    (folder / PID).write_text(str(os.getpid()), encoding="utf-8")
    coordinator = Marked(names, folder / MARKS, SecureSums(hub, LEAST) if config["masked"] else None)
    Conversation(hub, coordinator, WAIT_S, KeptState(folder / STATE, "scale")).run()


class StandIn:
    """One site: a client that asks as a training would.

    Args:
        code: of the site.
        name: of the site.
        folder: where it notes the sums that it has helped to unmask.
        masked: whether its model is masked.
        counted: code -> numbers of a model -> bytes to the site and from it in one round, filled here.
    """

    def __init__(
        self, code: int, name: str, folder: Path, masked: bool, counted: dict[int, dict[str, tuple[int, int]]]
    ) -> None:
        self._code, self._masked, self._counted = code, masked, counted
        counted[code] = {}
        self.client = SiteClient(lambda: {"site": name}, lambda _: None, name)
        self._outward = Outward(self.client, LEAST, lambda _: None, unmasked=folder / "unmasked.jsonl")
        self._round, self._size = -1, ""

    def ask(self, request: Packet) -> Packet:
        """The coordinator's answer; the way of a joint job, without its socket."""
        return self.client.of_job(request)

    def of_coordinator(self, question: Packet) -> Packet:
        """The site's reply, counted in one round with the steps of its sum."""
        reply = self._outward(question)
        if reply.kind == REPLY:
            self._round, self._size = reply.about["round"], reply.about["key"].split("/")[0]
        if reply.kind in (REPLY, *STEPS) and self._round == COUNTED_ROUND:
            down, up = self._counted[self._code].get(self._size, (0, 0))
            self._counted[self._code][self._size] = (down + len(question.to_bytes()), up + len(reply.to_bytes()))
        return reply

    def train(self, sizes: list[int], rounds: int) -> None:
        """One training a size, then the leave."""
        for size in sizes:
            start = {"weights": torch.zeros(1, size)}
            home = Home(self._code, self.ask, str(size), secure=self._masked)
            server = home.server(FedAvg((self._code,), start), rounds)
            own = torch.randn(1, size, generator=torch.Generator().manual_seed(self._code))
            for number in range(rounds):
                server.broadcast(number)
                server.aggregate(number, {self._code: Message({"weights": own})})
        self.ask(Packet(LEAVE, {"scores": []}))


def main() -> None:
    """Stand in for all sites: FOLDER SIZES ROUNDS NAMES SUMS, lists with commas."""
    folder, sizes, rounds = Path(sys.argv[1]), [int(size) for size in sys.argv[2].split(",")], int(sys.argv[3])
    torch.set_num_threads(1)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    counted: dict[int, dict[str, tuple[int, int]]] = {}
    for code, name in enumerate(sys.argv[4].split(",")):
        site = StandIn(code, name, folder / name, sys.argv[5] == "masked", counted)
        socket = folder / name / "socket"
        threading.Thread(target=serve, args=(socket, site.of_coordinator, stop), daemon=True).start()
        threading.Thread(target=site.train, args=(sizes, rounds), daemon=True).start()
    while not stop.wait(0.5):
        write_text(folder / COUNTED, json.dumps(counted))


if __name__ == "__main__":
    main()
