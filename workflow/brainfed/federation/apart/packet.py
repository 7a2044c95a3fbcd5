"""What passes between an institution's process and the coordinator: a kind, a few words, and named arrays."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from brainfed.runtime.errors import UserError

HEADER = "packet"
"""Key of the metadata that hold all but the arrays."""


class BrokenPacketError(UserError):
    """Bytes that are no packet: the two ends run different versions."""


@dataclass(frozen=True)
class Packet:
    """One request of an institution, or one answer to it.

    Attributes:
        kind: what is asked or answered.
        about: JSON values.
        tensors: name -> array of any shape and of a type that safetensors knows. Their order is kept.
        number: of a question on the network, the same in its reply; one that is sent again keeps it. Empty: none.
    """

    kind: str
    about: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    number: str = ""

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.tensors.values())

    def to_bytes(self) -> bytes:
        """As a safetensors file, the rest in its metadata."""
        about = {"kind": self.kind, "about": dict(self.about), "number": self.number, "names": list(self.tensors)}
        header = json.dumps(about, sort_keys=True, separators=(",", ":"))
        # `ascontiguousarray` would give a number (shape ()) an axis.
        arrays = {name: np.array(tensor, order="C", copy=None) for name, tensor in self.tensors.items()}
        return bytes(save(arrays, metadata={HEADER: header}))

    @staticmethod
    def from_bytes(content: bytes) -> "Packet":
        """The packet that `to_bytes` wrote; its tensors cannot be written to.

        Raises:
            BrokenPacketError: the bytes are no packet.
        """
        try:
            length = int.from_bytes(content[:8], "little")
            held = json.loads(json.loads(content[8 : 8 + length])["__metadata__"][HEADER])
            tensors = load(content)
            named = {name: tensors[name] for name in held["names"]}
            kind, about, number = held["kind"], held["about"], held["number"]
            if not (isinstance(kind, str) and isinstance(about, dict) and isinstance(number, str)):
                raise TypeError("kind, words and number have other types")
            return Packet(kind, about, named, number)
        except (SafetensorError, ValueError, KeyError, TypeError) as error:
            raise BrokenPacketError(
                f"expected a packet, found {len(content)} bytes that are none ({error}); use the same version of "
                "brainfed at the coordinator and at all sites."
            ) from error


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and contents."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
