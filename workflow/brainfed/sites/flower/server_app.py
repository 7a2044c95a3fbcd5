"""Flower's ServerApp: it calls the coordinator's function that the run's configuration names, with a hub."""

import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Final, cast

from flwr.app import Context
from flwr.app.user_config import UserConfigValue
from flwr.serverapp import Grid, ServerApp

from brainfed.runtime.errors import UserError
from brainfed.sites.flower.certificates import private_key, public_pem
from brainfed.sites.flower.hub import Hub
from brainfed.sites.flower.messages import Signer
from brainfed.sites.flower.pauses import shorten_grid
from brainfed.sites.flower.processes import LINE, FlowerFolder

# Processes that end with the one that started them, even if that one is killed.
#
# `python -m brainfed.sites.flower.server_app PARENT SIGNAL COMMAND...` becomes the command, bound to the parent.

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int, ending: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send this process a signal when its parent ends. Linux alone; elsewhere it does nothing.

    The kernel means the thread that started this process: start from a thread that lives as long as it should.

    Args:
        parent: the process expected as parent; if it has ended already, this process ends now.
        ending: the signal.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(ending), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), ending)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]), signal.Signals(int(sys.argv[2])))
    os.execvp(sys.argv[3], sys.argv[3:])


# Flower's ServerApp: it calls the coordinator's function that the run's configuration names, with a hub.

Entry = Callable[[Hub, Mapping[str, UserConfigValue]], None]
"""The coordinator's function: hub and run configuration."""

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the entry; its log, and a `UserError` as one sentence, go to `logs/coordinator.log` of the folder.

    Each site must connect with the key of its name in the folder's `keys`.
    """
    # Flower's own watch of its parent does not interrupt a sleep.
    die_with_parent(os.getppid())
    shorten_grid()
    config = context.run_config
    folder = FlowerFolder(Path(str(config["folder"])))
    log = logging.FileHandler(folder.log("coordinator"), encoding="utf-8")
    log.setFormatter(logging.Formatter(LINE))
    logger = logging.getLogger("brainfed")
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    sites = str(config["sites"]).split(",")
    keys = {name: public_pem(folder.public_key(name)) for name in sites}
    module, function = str(config["entry"]).split(":")
    entry = cast(Entry, getattr(import_module(module), function))
    try:
        entry(Hub(grid, dict(enumerate(sites)), keys, Signer(private_key(folder.certificate_key))), config)
    except UserError as error:
        logger.error("%s", error)
        raise
