"""The command in front of a job's command, which has a forking process run it."""

import os
import re
import secrets
import shlex
import sys
from pathlib import Path

from brainfed.runtime.errors import UserError
from brainfed.runtime.forking import client

NAME = re.compile(r"\d+-\w+")


def forking_prefix() -> str:
    """`python client.py `, or nothing: where processes have no descriptors, and where it is switched off.

    The variable that the client reads names a process whose end is the end of the forking process, this one unless an
    outer one has set it.

    Raises:
        UserError: the variable has another value.
    """
    name = os.environ.get(client.VARIABLE, "")
    if name and name != client.OFF and not NAME.fullmatch(name):
        raise UserError(
            f"{client.VARIABLE}: expected `off`, or no value, found {name!r}; `off` has every job import its libraries "
            "by itself."
        )
    if name == client.OFF or not _has_descriptors():
        return ""
    if not name or not Path("/proc", client.owner_of(name)).exists():
        os.environ[client.VARIABLE] = f"{os.getpid()}-{secrets.token_hex(8)}"
    return shlex.join([sys.executable, "-I", "-S", str(Path(client.__file__).resolve())]) + " "


def _has_descriptors() -> bool:
    """Whether the kernel and Python have pidfds: Linux from 5.3 on, and a Python that was built there."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True
