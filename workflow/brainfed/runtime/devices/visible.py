"""CUDA_VISIBLE_DEVICES: reading the devices that it names, and setting those that a job holds."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from brainfed.runtime.devices.driver import ON_CPU, Gpu
from brainfed.runtime.errors import UserError

VISIBLE = "CUDA_VISIBLE_DEVICES"


def entries(visible: str) -> tuple[str, ...]:
    """The devices that CUDA_VISIBLE_DEVICES names; as in CUDA, an empty or negative one ends the list."""
    named: list[str] = []
    for entry in (part.strip() for part in visible.split(",")):
        if not entry or entry.startswith("-") or entry == "NoDevFiles":
            break
        named.append(entry)
    return tuple(dict.fromkeys(named))


def candidates(requested: int, gpus: Sequence[Gpu]) -> tuple[str, ...]:
    """UUIDs of the devices that this process may use, in the order of CUDA_VISIBLE_DEVICES or the driver.

    Raises:
        UserError: CUDA_VISIBLE_DEVICES names a device that is not there, or there are fewer than requested.
    """
    visible = os.environ.get(VISIBLE)
    named = [gpu.uuid for gpu in gpus] if visible is None else [_uuid(entry, gpus) for entry in entries(visible)]
    usable = tuple(dict.fromkeys(named))
    if len(usable) < requested:
        raise UserError(
            f"{requested} GPU(s) are asked for, {len(usable)} can be seen ({VISIBLE}={visible}); "
            f"ask for fewer, make more visible, or {ON_CPU}."
        )
    return usable


def _uuid(entry: str, gpus: Sequence[Gpu]) -> str:
    """The UUID that an entry of CUDA_VISIBLE_DEVICES (an index, a UUID or the start of one) means."""
    if entry.startswith("MIG-"):
        return entry
    abbreviated = entry.startswith("GPU-")
    matches = [gpu.uuid for gpu in gpus if gpu.index == entry or (abbreviated and gpu.uuid.startswith(entry))]
    if len(matches) != 1:
        here = ", ".join(f"{gpu.index} ({gpu.uuid})" for gpu in gpus)
        raise UserError(f"{VISIBLE}: {entry!r} is no device of this machine, it has {here}; correct it or unset it.")
    return matches[0]


@contextmanager
def showing(uuids: Sequence[str]) -> Iterator[None]:
    """Show these devices alone to CUDA, for the body of the `with`."""
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = ",".join(uuids)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VISIBLE, None)
        else:
            os.environ[VISIBLE] = before
