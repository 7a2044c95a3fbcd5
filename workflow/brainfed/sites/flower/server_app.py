"""Flower's ServerApp: it calls the coordinator's function that the run's configuration names, with a hub."""

import logging
import os
from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from brainfed.runtime import UserError, resolve
from brainfed.sites.flower._certificates import private_key, public_pem
from brainfed.sites.flower._hub import Hub
from brainfed.sites.flower._messages import Signer, shorten_grid
from brainfed.sites.flower._processes import LINE, FlowerFolder
from brainfed.sites.flower.lifetime import die_with_parent

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the entry, a function of the hub and the run's configuration.

    Its log, and a `UserError` as one sentence, go to `logs/coordinator.log` of the folder.

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
    entry = resolve(str(config["entry"]))
    try:
        entry(Hub(grid, dict(enumerate(sites)), keys, Signer(private_key(folder.certificate_key))), config)
    except UserError as error:
        logger.error("%s", error)
        raise
