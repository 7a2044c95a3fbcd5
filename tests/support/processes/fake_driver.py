"""A driver of GPUs that are not there: a script answers in place of nvidia-smi."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from brainfed.runtime import UserError
from brainfed.runtime.devices import lease
from brainfed.runtime.devices._lease import Patience

QUICK = Patience(poll=0.02, remind=60.0, grace=0.1)


def refused(words: str, number: int = 1) -> None:
    """So many devices cannot be leased, and a sentence with these words says why."""
    with pytest.raises(UserError, match=words), lease(number, patience=QUICK):
        pass


class FakeDriver:
    """Stands in for nvidia-smi: answers what its `answer` and `processes` files hold."""

    def __init__(self, folder: Path, uuids: Sequence[str]) -> None:
        self.uuids = tuple(uuids)
        self.program = folder / "nvidia-smi"
        self.answer = folder / "answer"
        self.processes = folder / "processes"
        self.locks = folder / "locks"
        self.says(f'case "$1" in\n--query-compute-apps*) cat "{self.processes}" ;;\n*) cat "{self.answer}" ;;\nesac')
        self.uses(*[0] * len(self.uuids))
        self.names()

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to see these devices alone."""
        return {"BRAINFED_NVIDIA_SMI": str(self.program), "BRAINFED_LOCKS": str(self.locks)}

    def uses(self, *megabytes: int | str) -> None:
        """The memory in use on each device of 80,000 MiB; fewer numbers are fewer devices."""
        used = enumerate(zip(self.uuids, megabytes, strict=False))
        self.answer.write_text("".join(f"{i}, {uuid}, {used}, 80000\n" for i, (uuid, used) in used))

    def names(self, *processes: tuple[str, int, int | str]) -> None:
        """The processes on the devices: UUID, process, MiB."""
        self.processes.write_text("".join(f"{uuid}, {pid}, {used}\n" for uuid, pid, used in processes))

    def breaks(self, answer: str, code: int) -> None:
        """Give this answer and exit code from now on."""
        self.says(f'echo "{answer}"\nexit {code}')

    def says(self, script: str) -> None:
        """Run these lines of shell in place of an answer."""
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o755)
