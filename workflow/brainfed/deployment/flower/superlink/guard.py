"""What the coordinator's only port answers to whom: an ASGI application in front of Flower's.

Flower 1.41 answers at one port what sites need (its Fleet API), what starts programs at the coordinator (its Control
API, without a password), and what hands out the work of these programs (its Runtime API). Behind the guard, the first
is for the keys of the study's sites, and all else is for the coordinator's own processes, which know a secret.
"""

import datetime
import hmac
from base64 import b64decode
from collections.abc import Collection
from typing import Final

from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.primitives.asymmetric import bytes_to_public_key, verify_signature
from starlette.types import ASGIApp, Receive, Scope, Send

SECRET_HEADER: Final = "brainfed-secret"
"""By which a process of the coordinator shows the secret."""
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
        keys: public keys of the study's sites, PEM.
    """

    def __init__(self, app: ASGIApp, secret: str, keys: Collection[bytes]) -> None:
        self._app, self._secret = app, secret.encode()
        self._keys = {key: bytes_to_public_key(key) for key in keys}

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
        return (
            scope["type"] == "http"
            and scope["method"] == "POST"
            and path in SITE_PATHS
            and scope.get("raw_path") == path.encode()
            and not scope.get("root_path")
            and not scope.get("query_string")
            and self._is_signed(scope)
        )

    def _is_signed(self, scope: Scope) -> bool:
        """Whether the time of the request is signed by the key of a site, as Flower's SuperNode does."""
        shown = [_only(scope, name) for name in (FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER)]
        time = _only(scope, TIMESTAMP_HEADER)
        try:
            key, signature = (b64decode(value or b"", validate=True) for value in shown)
            signed = datetime.datetime.fromisoformat((time or b"").decode("ascii"))
            age = (datetime.datetime.now(datetime.UTC) - signed).total_seconds()
        except (ValueError, TypeError):
            return False
        return (
            key in self._keys
            and -SYSTEM_TIME_TOLERANCE < age < _OLDEST_S
            and verify_signature(self._keys[key], time or b"", signature)
        )


def _only(scope: Scope, name: str) -> bytes | None:
    """A header's value; None if it is missing or given twice."""
    found = [value for given, value in scope.get("headers", ()) if given == name.encode()]
    return found[0] if len(found) == 1 else None


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
