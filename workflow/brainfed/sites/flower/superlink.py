"""The coordinator's SuperLink: `python -m brainfed.sites.flower.superlink`.

It is Flower's own application behind a guard, at one port. It opens no other, whatever Flower's environment
variables say, and starts the study's ServerApp itself, in the place of `flower-superexec`.
"""

import argparse
import datetime
import hmac
import logging
import os
import subprocess
import sys
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from logging import getLogger
from pathlib import Path
from typing import Final

import uvicorn
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from flwr.common.constant import (
    NOOP_ACCOUNT_NAME,
    NOOP_FLWR_AID,
    SYSTEM_TIME_TOLERANCE,
    TIMESTAMP_HEADER,
    TIMESTAMP_TOLERANCE,
)
from flwr.proto.control_pb2 import RegisterNodeRequest
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.server.superlink.linkstate import LinkStateFactory
from flwr.supercore.auth.typing import AccountInfo
from flwr.supercore.constant import (
    FLEET_HTTP_PUBLIC_KEY_HEADER,
    FLEET_HTTP_SIGNATURE_HEADER,
    FLWR_IN_MEMORY_DB_NAME,
    TaskType,
)
from flwr.supercore.error import ApiErrorCode, FlowerError
from flwr.supercore.http_logging import get_uvicorn_log_config
from flwr.supercore.logger import console_handler
from flwr.superlink.main import create_app
from flwr.superlink.servicer.control import control_handlers
from flwr.superlink.servicer.runtime import runtime_handlers
from starlette.types import ASGIApp, Receive, Scope, Send

from brainfed.sites.flower._certificates import fingerprint, from_pem, public_pem
from brainfed.sites.flower._processes import LINE, SECRET_HEADER, FlowerFolder

# What the coordinator's only port answers to whom: an ASGI application in front of Flower's.
#
# Flower 1.42 answers at one port what sites need (its Fleet API), what starts programs at the coordinator (its Control
# API, without a password), and what hands out the work of these programs (its Runtime API). Behind the guard, the first
# is for the keys of the study's sites, and all else is for the coordinator's own processes, which know a secret.

SITE_PATHS: Final = frozenset(
    f"/v1/fleet/{name}"
    for name in (
        *("activate-node", "deactivate-node", "send-node-heartbeat", "get-run", "get-fab"),
        *("pull-messages", "push-messages", "pull-object", "push-object", "confirm-message-received"),
    )
)
"""All that a SuperNode asks for. Flower's other two, `register-node` and `unregister-node`, are for unknown keys."""
_OLDEST_S: Final = TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE
_REFUSAL: Final = b"not found\n"


class Guard:
    """Passes on the requests of sites and of the coordinator's own processes, and refuses all others.

    Whether a request is passed on is known from its first line and its headers: the body of a stranger is not read.
    All refusals are the same 404, which shows nothing of what is behind.

    Args:
        app: Flower's application.
        secret: of the coordinator's own processes.
        sites: public key, PEM -> name, of the study's sites.
        refused: called with the public key (PEM) of a site that has signed its request and is refused, the address that
            it asked from, and the seconds that its clock is ahead of the coordinator's.
    """

    def __init__(
        self,
        app: ASGIApp,
        secret: str,
        sites: Mapping[bytes, str],
        refused: Callable[[bytes, str, float], None],
    ) -> None:
        self._app, self._secret, self._sites, self._refused = app, secret.encode(), sites, refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; the server's own messages at start and end are passed on."""
        if scope["type"] == "lifespan" or self._is_own(scope):
            await self._app(scope, receive, send)
        elif self._is_of_a_site(scope):
            # Flower takes the path once from the request and once from its URL, whose host the caller writes.
            headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
            await self._app({**scope, "headers": headers}, receive, send)
        else:
            await _refuse(scope, send)

    def _is_own(self, scope: Scope) -> bool:
        shown = _only(scope, SECRET_HEADER)
        return scope["type"] == "http" and shown is not None and hmac.compare_digest(shown, self._secret)

    def _is_of_a_site(self, scope: Scope) -> bool:
        path = scope.get("path", "")
        if (
            scope["type"] != "http"
            or scope["method"] != "POST"
            or path not in SITE_PATHS
            or scope.get("raw_path") != path.encode()
            or scope.get("root_path")
            or scope.get("query_string")
            or (signed := _signed(scope)) is None
        ):
            return False
        key, age = signed
        if key in self._sites and -SYSTEM_TIME_TOLERANCE < age < _OLDEST_S:
            return True
        host, _ = scope.get("client") or ("an unknown address", 0)
        self._refused(key, host, -age)
        return False


def _signed(scope: Scope) -> tuple[bytes, float] | None:
    """Public key (PEM, of anybody) that signed the time of a request as Flower's SuperNode does, and seconds since.

    None: no key of Flower's kind has.
    """
    shown = [_only(scope, name) for name in (FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER)]
    written = _only(scope, TIMESTAMP_HEADER) or b""
    try:
        key, signature = (b64decode(value or b"", validate=True) for value in shown)
        moment = datetime.datetime.fromisoformat(written.decode("ascii"))
        age = (datetime.datetime.now(datetime.UTC) - moment).total_seconds()
        from_pem(key).verify(signature, written, ec.ECDSA(SHA256()))
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature):
        return None
    return key, age


def _only(scope: Scope, name: str) -> bytes | None:
    """A header's value; None if it is missing or given twice."""
    values = [value for given, value in scope.get("headers", ()) if given == name.encode()]
    return values[0] if len(values) == 1 else None


async def _refuse(scope: Scope, send: Send) -> None:
    if scope["type"] != "http":
        await send({"type": "websocket.close", "code": 1008})
        return
    # The connection ends, so that the server does not go on to read the body.
    headers = [
        (b"content-type", b"text/plain"),
        (b"content-length", str(len(_REFUSAL)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 404, "headers": headers})
    await send({"type": "http.response.body", "body": _REFUSAL})


# Lines for the coordinator's person about sites that the guard refuses: one a key, now and then.

AGAIN_S: Final = 600.0
"""Between two lines about one key."""
MOST: Final = 20
"""Unknown keys that are named in that time: anybody can make any number."""

# This module is `__main__` where it runs.
logger = getLogger("brainfed.sites.flower.superlink")


class Refusals:
    """Warns of sites that signed their request and were refused; `sites` has the study's, public key (PEM) -> name."""

    def __init__(self, sites: Mapping[bytes, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._sites, self._clock = sites, clock
        self._said: dict[bytes, float] = {}

    def __call__(self, key: bytes, address: str, ahead: float) -> None:
        """Note a refusal; arguments as of the guard's `refused`."""
        now = self._clock()
        self._said = {each: said for each, said in self._said.items() if now - said < AGAIN_S}
        strangers = sum(each not in self._sites for each in self._said)
        if key in self._said or (key not in self._sites and strangers >= MOST):
            return
        self._said[key] = now
        if key in self._sites:
            way = "ahead" if ahead > 0 else "behind"
            logger.warning(
                "site %s is refused: expected the coordinator's time, found a clock that is %.0f s %s; set both by NTP",
                *(self._sites[key], abs(ahead), way),
            )
        else:
            logger.warning(
                "a site at %s is refused: expected a key of the study's sites, found %s; if it is one of them, put its "
                "public key into `federation/keys` and start again",
                *(address, fingerprint(from_pem(key))),
            )


# The SuperLink itself.

_LOOK_S: Final = 0.2
"""Between two looks for a ServerApp to start."""


def register(states: LinkStateFactory, sites: Mapping[bytes, str]) -> None:
    """Make the sites' keys known to Flower, as `flwr supernode register` does; a known key is passed over."""
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
            logger.exception("a ServerApp was not started")
        time.sleep(_LOOK_S)


def main() -> None:
    """Run the SuperLink until a signal ends it."""
    parser = argparse.ArgumentParser(description="The coordinator's end of a federated study")
    parser.add_argument("--folder", type=Path, required=True, help="of Flower's files")
    parser.add_argument("--host", required=True, help="the address to listen on")
    parser.add_argument("--port", type=int, required=True, help="the only one")
    parser.add_argument("--sites", nargs="+", required=True, help="names of the study's sites")
    parser.add_argument("--database", default=FLWR_IN_MEMORY_DB_NAME, help="file of registered sites and runs")
    given = parser.parse_args()
    os.environ["FLWR_DATABASE"] = given.database
    folder = FlowerFolder(given.folder)
    sites = {public_pem(folder.public_key(name)): name for name in given.sites}
    warnings = logging.FileHandler(folder.log("coordinator"), encoding="utf-8")
    warnings.setFormatter(logging.Formatter(LINE))
    getLogger("brainfed").addHandler(warnings)
    app = create_app()
    app.state.enable_supernode_auth = True
    command = [
        *(sys.executable, "-m", "brainfed.sites.flower.program", str(folder.control_secret), "flwr-serverapp"),
        *("--runtime-api-address", f"127.0.0.1:{given.port}", "--root-certificates", str(folder.certificate)),
        *("--parent-pid", str(os.getpid())),
    ]
    register(app.state.linkstate_factory, sites)
    threading.Thread(target=start_apps, args=(app.state.linkstate_factory, command), daemon=True).start()
    uvicorn.run(
        Guard(app, folder.control_secret.read_text(encoding="ascii"), sites, Refusals(sites)),
        host=given.host,
        port=given.port,
        ssl_certfile=folder.certificate,
        ssl_keyfile=folder.certificate_key,
        ws="none",
        proxy_headers=False,
        server_header=False,
        log_config=get_uvicorn_log_config(console_handler.level),
    )


if __name__ == "__main__":
    main()
