"""The command in front of a job's command, which has a forking process run it."""

import os
import secrets
import shlex
import sys
from pathlib import Path

from brainfed.runtime.forking import client


def forking_prefix() -> str:
    """`python client.py `, or nothing: on other systems than Linux, and where it is switched off.

    The variable that the client reads names a process whose end is the end of the forking process, this one unless an
    outer one has set it.
    """
    name = os.environ.get(client.VARIABLE, "")
    if sys.platform != "linux" or name == client.OFF:
        return ""
    if not name or not Path("/proc", client.owner_of(name)).exists():
        os.environ[client.VARIABLE] = f"{os.getpid()}-{secrets.token_hex(8)}"
    return shlex.join([sys.executable, "-I", "-S", str(Path(client.__file__).resolve())]) + " "
