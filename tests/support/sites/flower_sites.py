"""Both ends of a study over Flower for tests: a site's training process, and what the coordinator does."""

import json
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from brainfed.runtime import UserError
from brainfed.sites import INTRODUCE, Packet, serve
from brainfed.sites.flower._hub import Hub
from brainfed.sites.flower._secure_coordinator import secure_sum
from brainfed.sites.flower._secure_site import MASKED, Summand

SITES = ("north", "south", "east")
LARGEST, BOUND = 4.0, 256.0


def tensors() -> dict[str, Any]:
    """Of each kind that a model or its statistics have."""
    return {
        "weights": np.linspace(-1, 1, 12).reshape(3, 4).T,
        "count": np.array(7),
        "none": np.zeros((0, 3), np.float32),
        "flags": np.array([True, False]),
    }


def numbers(site: str) -> np.ndarray:
    """What a site adds to a secure sum."""
    return np.random.default_rng(SITES.index(site)).uniform(-LARGEST, LARGEST, (50, 3))


def train(site: str, socket_path: str) -> None:
    """A training process: it counts what it answers, and writes down each of its uploads to a secure sum."""
    stop, answered = threading.Event(), [0]
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def answer(request: Packet) -> Packet:
        if request.kind == INTRODUCE:
            return Packet("site", {"site": site})
        if request.kind == "refuse":
            raise UserError(f"{site} refuses")
        answered[0] += 1
        return Packet("echo", {"site": site, "answered": answered[0]}, request.tensors)

    summand = Summand(lambda request: Packet(request.kind, {}, {"numbers": numbers(site)}), answer)

    def noted(request: Packet) -> Packet:
        reply = summand(request)
        if reply.kind == MASKED:
            np.save(Path(socket_path).parent / "upload.npy", reply.tensors["masked"])
        return reply

    serve(Path(socket_path), noted, stop)


def coordinate(hub: Hub, config: Mapping[str, Any]) -> None:
    """What the test reads from `result.json`; between the steps it waits for the test, by files."""
    place, result = Path(str(config["folder"])), {}
    echo = {code: Packet("echo", {"text": "é"}, tensors()) for code in hub.sites}

    first = hub.ask(echo, 30)
    result["same"] = [
        all(np.array_equal(reply.tensors[name], value) and reply.tensors[name].dtype == value.dtype
            and reply.tensors[name].shape == value.shape for name, value in tensors().items())
        for reply in first.values()
    ]  # fmt: skip
    result["names"] = {code: reply.about["site"] for code, reply in first.items()}
    result["order"] = [list(reply.tensors) for reply in first.values()]
    result["refused"] = [[reply.kind, dict(reply.about)] for reply in hub.ask({0: Packet("refuse")}, 30).values()]

    requests = {code: Packet("numbers") for code in hub.sites}
    total, _ = secure_sum(hub, requests, {"numbers": BOUND}, 30)
    np.save(place / "sum.npy", total["numbers"])

    _tell_and_wait(place, "stop-east")
    result["without east"] = list(hub.ask(echo, 4))
    (place / "start-east").touch()
    again = hub.ask(echo, 30)
    result["with east"] = {code: reply.about["answered"] for code, reply in again.items()}
    (place / "result.json").write_text(json.dumps(result))


def _tell_and_wait(place: Path, what: str) -> None:
    (place / what).touch()
    while not (place / f"{what}-done").exists():
        time.sleep(0.05)


if __name__ == "__main__":
    train(*sys.argv[1:])
