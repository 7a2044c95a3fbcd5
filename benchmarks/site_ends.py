"""Both ends of the studies that `sites.py` measures: the coordinator, and stand-ins for the training at the sites.

The coordinator's end is the real one. A stand-in answers at once, with a model of given size, where a site would train:
through a real desk and a real link, for each site, in threads of one process.
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

from brainfed.deployment.conversation import Conversation, Hub
from brainfed.deployment.desk import Desk
from brainfed.deployment.doorway import serve
from brainfed.deployment.kept_state import KeptState
from brainfed.federation.apart.coordinator import Coordinator
from brainfed.federation.apart.exchange import LEAVE, REPLY
from brainfed.federation.apart.home import Home
from brainfed.federation.apart.packet import Packet
from brainfed.federation.message import Message
from brainfed.federation.strategies.fedavg import FedAvg
from brainfed.runtime.artefacts import write_text

PID, MARKS, COUNTED, STATE = "pid", "marks", "counted.json", "coordinator"
"""Files of the study's folder: the ServerApp's process; a line a step; packets' bytes; the coordinator's state."""
WAIT_S = 300.0
COUNTED_ROUND = 1
"""The round whose packets are counted; all have the same size but for digits of numbers."""


class Marked(Coordinator):
    """A coordinator that notes when each step has ended.

    Args:
        names: site code -> name.
        marks: file of the notes.
    """

    def __init__(self, names: Mapping[int, str], marks: Path) -> None:
        super().__init__(names)
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
    Conversation(hub, Marked(names, folder / MARKS), WAIT_S, KeptState(folder / STATE, "scale")).run()


class StandIn:
    """One site: a desk that asks as a training would.

    Args:
        code: of the site.
        name: of the site.
        counted: code -> numbers of a model -> bytes to the site and from it in one round, filled here.
    """

    def __init__(self, code: int, name: str, counted: dict[int, dict[int, tuple[int, int]]]) -> None:
        self._code, self._counted = code, counted
        counted[code] = {}
        self.desk = Desk(lambda: {"site": name}, lambda _: None, name)

    def ask(self, request: Packet) -> Packet:
        """The coordinator's answer; the way of a joint job, without its socket."""
        return self.desk.of_job(request)

    def of_coordinator(self, question: Packet) -> Packet:
        """The desk's reply, counted in one round."""
        reply = self.desk.of_coordinator(question)
        if reply.kind == REPLY and reply.about["round"] == COUNTED_ROUND:
            numbers = sum(array.size for array in reply.tensors.values())
            self._counted[self._code][numbers] = (len(question.to_bytes()), len(reply.to_bytes()))
        return reply

    def train(self, sizes: list[int], rounds: int) -> None:
        """One training a size, then the leave."""
        for size in sizes:
            start = {"weights": torch.zeros(1, size)}
            server = Home(self._code, self, f"model-{size}").server(FedAvg((self._code,), start), rounds)
            own = torch.randn(1, size, generator=torch.Generator().manual_seed(self._code))
            for number in range(rounds):
                server.broadcast(number)
                server.aggregate(number, {self._code: Message({"weights": own})})
        self.ask(Packet(LEAVE, {"scores": []}))


def main() -> None:
    """Stand in for all sites: FOLDER SIZES ROUNDS NAMES, lists with commas."""
    folder, sizes, rounds = Path(sys.argv[1]), [int(size) for size in sys.argv[2].split(",")], int(sys.argv[3])
    torch.set_num_threads(1)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    counted: dict[int, dict[int, tuple[int, int]]] = {}
    for code, name in enumerate(sys.argv[4].split(",")):
        site = StandIn(code, name, counted)
        socket = folder / name / "socket"
        threading.Thread(target=serve, args=(socket, site.of_coordinator, stop), daemon=True).start()
        threading.Thread(target=site.train, args=(sizes, rounds), daemon=True).start()
    while not stop.wait(0.5):
        write_text(folder / COUNTED, json.dumps(counted))


if __name__ == "__main__":
    main()
