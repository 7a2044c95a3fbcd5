"""The coordinator's SuperLink: `python -m brainfed.deployment.flower.superlink.server`.

It is Flower's own application behind a guard (`guard`), at one port. It opens no other, whatever Flower's environment
variables say, and starts the study's ServerApp itself, in the place of `flower-superexec`.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from logging import getLogger
from pathlib import Path
from typing import Final

import uvicorn
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.server.superlink.linkstate import LinkStateFactory
from flwr.supercore.constant import FLWR_IN_MEMORY_DB_NAME, TaskType
from flwr.supercore.http_logging import get_uvicorn_log_config
from flwr.supercore.logger import console_handler
from flwr.superlink.main import create_app
from flwr.superlink.servicer.runtime import runtime_handlers

from brainfed.deployment.flower.certificates import public_pem
from brainfed.deployment.flower.superlink.guard import Guard

_LOOK_S: Final = 0.2
"""Between two looks for a ServerApp to start."""
_logger = getLogger(__name__)


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
    parser.add_argument("--keys", type=Path, nargs="+", required=True, help="public keys of the study's sites")
    parser.add_argument("--database", default=FLWR_IN_MEMORY_DB_NAME, help="file of registered sites and runs")
    given = parser.parse_args()
    os.environ["FLWR_DATABASE"] = given.database
    app = create_app()
    app.state.enable_supernode_auth = True
    command = [
        *(sys.executable, "-m", "brainfed.deployment.flower.superlink.program", str(given.secret), "flwr-serverapp"),
        *("--runtime-api-address", f"127.0.0.1:{given.port}", "--root-certificates", str(given.certificate)),
        *("--parent-pid", str(os.getpid())),
    ]
    threading.Thread(target=start_apps, args=(app.state.linkstate_factory, command), daemon=True).start()
    uvicorn.run(
        Guard(app, given.secret.read_text(encoding="ascii"), [public_pem(key) for key in given.keys]),
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
