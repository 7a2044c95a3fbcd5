"""GPUs whose memory other programs have taken."""

from collections.abc import Mapping, Sequence

from brainfed.runtime.devices.driver import memory_of_processes, query
from brainfed.runtime.devices.slots import Holder


def taken_by_strangers(
    holders: Mapping[str, Sequence[Holder]], share: float, nvidia_smi: str | None = None
) -> set[str]:
    """Devices on which programs other than our holders use more than a share of the memory.

    Where the driver names none of a device's holders (inside a container), all memory in use there counts
    as theirs: the first of them found the device free.

    Args:
        holders: UUID -> our jobs that hold a place there; devices that are not named have none.
        share: of a device's memory, 0 ... 1.
        nvidia_smi: the driver's query program, as for `driver.query`.

    Raises:
        UserError: the driver is broken.
    """
    processes = memory_of_processes(nvidia_smi) if any(holders.values()) else {}
    full: set[str] = set()
    for gpu in query(nvidia_smi):
        present = holders.get(gpu.uuid, ())
        ours = [processes[gpu.uuid, holder.pid] for holder in present if (gpu.uuid, holder.pid) in processes]
        unnamed = bool(present) and not ours
        if not unnamed and gpu.used - sum(ours) > share * gpu.total:
            full.add(gpu.uuid)
    return full
