"""The coordinator's SuperLink: `python -m brainfed.deployment.flower.superlink.server`.

It is Flower's own application behind a guard (`guard`), at one port. It opens no other, whatever Flower's environment
variables say, and starts the study's ServerApp itself, in the place of `flower-superexec`.
"""

import argparse
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from logging import getLogger
from pathlib import Path
from typing import Final

import uvicorn
from flwr.common.constant import NOOP_ACCOUNT_NAME, NOOP_FLWR_AID
from flwr.proto.control_pb2 import RegisterNodeRequest
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.server.superlink.linkstate import LinkStateFactory
from flwr.supercore.auth.typing import AccountInfo
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME, TaskType
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supercore.http_logging import get_uvicorn_log_config
from flwr.supercore.logger import console_handler
from flwr.superlink.main import create_app
from flwr.superlink.servicer.control import control_handlers
from flwr.superlink.servicer.runtime import runtime_handlers

from brainfed.deployment.flower.certificates import public_pem
from brainfed.deployment.flower.folder import LINE
from brainfed.deployment.flower.superlink.guard import Guard
from brainfed.deployment.flower.superlink.refusals import Refusals

_LOOK_S: Final = 0.2
"""Between two looks for a ServerApp to start."""
_logger = getLogger(__name__)


def register(states: LinkStateFactory, sites: Mapping[bytes, str]) -> None:
    """Make the sites' keys known to Flower, as `flwr supernode register` does; a known key is passed over.

    Args:
        states: of the SuperLink.
        sites: public key, PEM -> name.
    """
    account = AccountInfo(NOOP_FLWR_AID, NOOP_ACCOUNT_NAME)
    for key, name in sites.items():
        try:
            control_handlers.register_node(RegisterNodeRequest(public_key=key, name=name), account, states.state())
        except FlowerError as error:
            if error.code != ApiErrorCode.PUBLIC_KEY_ALREADY_IN_USE:
                raise


def start_apps(states: LinkStateFactory, command: Sequence[str]) -> None:
    """Start the ServerApps of runs for ever, each by `command` with the token that Flower gives its task."""
    wanted = AcquireTaskRequest(supported_task_types=[TaskType.SERVER_APP])
    while True:
        try:
            acquired = runtime_handlers.acquire_task(wanted, states.state())
            if acquired.token:
                subprocess.Popen([*command, "--token", acquired.token])
        except Exception:
            # Flower gives the task up after 60 s.
            _logger.exception("a ServerApp was not started")
        time.sleep(_LOOK_S)


def main() -> None:
    """Run the SuperLink until a signal ends it."""
    parser = argparse.ArgumentParser(description="The coordinator's end of a federated study")
    parser.add_argument("--host", required=True, help="the address to listen on")
    parser.add_argument("--port", type=int, required=True, help="the only one")
    parser.add_argument("--certificate", type=Path, required=True, help="PEM")
    parser.add_argument("--certificate-key", type=Path, required=True, help="its private key, PEM")
    parser.add_argument("--secret", type=Path, required=True, help="file that the coordinator's processes can read")
    parser.add_argument("--keys", type=Path, nargs="+", required=True, help="of the study's sites, each NAME.pub")
    parser.add_argument("--log", type=Path, required=True, help="of what the coordinator's person should know")
    parser.add_argument("--database", default=FLWR_IN_MEMORY_DB_NAME, help="file of registered sites and runs")
    given = parser.parse_args()
    os.environ["FLWR_DATABASE"] = given.database
    sites = {public_pem(path): path.stem for path in given.keys}
    warnings = logging.FileHandler(given.log, encoding="utf-8")
    warnings.setFormatter(logging.Formatter(LINE))
    getLogger("brainfed").addHandler(warnings)
    app = create_app()
    app.state.enable_supernode_auth = True
    command = [
        *(sys.executable, "-m", "brainfed.deployment.flower.superlink.program", str(given.secret), "flwr-serverapp"),
        *("--runtime-api-address", f"127.0.0.1:{given.port}", "--root-certificates", str(given.certificate)),
        *("--parent-pid", str(os.getpid())),
    ]
    register(app.state.linkstate_factory, sites)
    threading.Thread(target=start_apps, args=(app.state.linkstate_factory, command), daemon=True).start()
    uvicorn.run(
        Guard(app, given.secret.read_text(encoding="ascii"), sites, Refusals(sites)),
        host=given.host,
        port=given.port,
        ssl_certfile=given.certificate,
        ssl_keyfile=given.certificate_key,
        ws="none",
        proxy_headers=False,
        server_header=False,
        log_config=get_uvicorn_log_config(console_handler.level),
    )


if __name__ == "__main__":
    main()
