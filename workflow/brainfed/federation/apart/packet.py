"""What passes between an institution's process and the coordinator: a kind, a few words, and named arrays."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Packet:
    """One request of an institution, or one answer to it.

    Attributes:
        kind: what is asked or answered.
        about: JSON values.
        tensors: name -> array of any shape.
    """

    kind: str
    about: Mapping[str, Any] = field(default_factory=dict)
    tensors: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.tensors.values())


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 of names, types, shapes and contents."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(json.dumps([name, array.dtype.str, array.shape]).encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()
