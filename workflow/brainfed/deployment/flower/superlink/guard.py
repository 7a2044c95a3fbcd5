"""What the coordinator's only port answers to whom: an ASGI application in front of Flower's.

Flower 1.41 answers at one port what sites need (its Fleet API), what starts programs at the coordinator (its Control
API, without a password), and what hands out the work of these programs (its Runtime API). Behind the guard, the first
is for the keys of the study's sites, and all else is for the coordinator's own processes, which know a secret.
"""

import datetime
import hmac
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_HEADER, TIMESTAMP_TOLERANCE
from flwr.supercore.constant import FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER
from flwr.supercore.primitives.asymmetric import bytes_to_public_key, verify_signature
from starlette.types import ASGIApp, Receive, Scope, Send

from brainfed.deployment.flower.folder import SECRET_HEADER

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


@dataclass(frozen=True)
class _Signed:
    """What a request shows of who sent it.

    Attributes:
        key: public key, PEM, as written; of anybody.
        signature: of the time.
        time: as written.
        age: seconds since that time.
    """

    key: bytes
    signature: bytes
    time: bytes
    age: float

    @staticmethod
    def of(scope: Scope) -> "_Signed | None":
        """Of a request whose headers can be read."""
        shown = [_only(scope, name) for name in (FLEET_HTTP_PUBLIC_KEY_HEADER, FLEET_HTTP_SIGNATURE_HEADER)]
        time = _only(scope, TIMESTAMP_HEADER) or b""
        try:
            key, signature = (b64decode(value or b"", validate=True) for value in shown)
            moment = datetime.datetime.fromisoformat(time.decode("ascii"))
            age = (datetime.datetime.now(datetime.UTC) - moment).total_seconds()
        except (ValueError, TypeError):
            return None
        return _Signed(key, signature, time, age)

    @property
    def is_timely(self) -> bool:
        """Whether Flower would take the time for its own."""
        return -SYSTEM_TIME_TOLERANCE < self.age < _OLDEST_S

    @property
    def holds(self) -> bool:
        """Whether the key is one of Flower's kind, and has signed the time, as Flower's SuperNode does."""
        try:
            key = bytes_to_public_key(self.key)
        except (ValueError, UnsupportedAlgorithm):
            return False
        return isinstance(key, ec.EllipticCurvePublicKey) and verify_signature(key, self.time, self.signature)


class Guard:
    """Passes on the requests of sites and of the coordinator's own processes, and refuses all others.

    Whether a request is passed on is known from its first line and its headers: the body of a stranger is not read.
    All refusals are the same 404, which shows nothing of what is behind.

    Args:
        app: Flower's application.
        secret: of the coordinator's own processes.
        sites: public key, PEM -> name, of the study's sites.
        refused: called with the key of a site that is refused, the address that it asked from, and the seconds that its
            clock is ahead.
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
        signed = _Signed.of(scope)
        if (
            scope["type"] != "http"
            or scope["method"] != "POST"
            or path not in SITE_PATHS
            or scope.get("raw_path") != path.encode()
            or scope.get("root_path")
            or scope.get("query_string")
            or signed is None
            or not signed.holds
        ):
            return False
        if signed.key in self._sites and signed.is_timely:
            return True
        host, _ = scope.get("client") or ("an unknown address", 0)
        self._refused(signed.key, host, -signed.age)
        return False


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
