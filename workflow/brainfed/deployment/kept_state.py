"""The coordinator's state on the disk: a file a training or sum, rewritten when it has changed, and an index.

Trainings and sums that are over leave the coordinator's memory once they are here.

The index is written last. A file that is newer than the index does no harm: no site had the answer yet, and each asks
again.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from brainfed.federation.apart.coordinator import Coordinator
from brainfed.federation.apart.exchange import LEAVE
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.artefacts import ArrayFile, read_arrays, write_arrays, write_text
from brainfed.runtime.errors import UserError

INDEX = "index.json"


class KeptState:
    """A folder.

    Args:
        folder: where the files lie.
        study: digest of the study, which the state belongs to.
    """

    def __init__(self, folder: Path, study: str) -> None:
        self._folder, self._study = folder, study

    def save(self, coordinator: Coordinator, left: Mapping[int, Packet]) -> None:
        """Write what has changed since the last save, and the last words of the sites that have left."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for key, (about, arrays) in coordinator.steps.changed().items():
            write_arrays(self._part(key), arrays, about)
        words = {str(code): dict(packet.about) for code, packet in left.items()}
        index = {"study": self._study, "coordinator": coordinator.index(), "left": words}
        write_text(self._folder / INDEX, json.dumps(index) + "\n")
        coordinator.steps.put_away(self._read)

    def load(self, coordinator: Coordinator) -> dict[int, Packet]:
        """Give the coordinator its state, if one is kept; the last words of the sites that have left.

        Raises:
            UserError: the state is that of another study.
        """
        path = self._folder / INDEX
        if not path.exists():
            return {}
        index = json.loads(path.read_text(encoding="utf-8"))
        if index["study"] != self._study:
            raise UserError(
                f"{path}: expected the state of this study, found that of another; move the folder away to begin "
                "anew, or restore the study."
            )
        coordinator.load(index["coordinator"], self._read)
        left = {int(code): Packet(LEAVE, words) for code, words in index["left"].items()}
        for code in left:
            coordinator.leave(code)
        return left

    def _read(self, key: str) -> ArrayFile:
        return read_arrays(self._part(key))

    def _part(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.safetensors"
