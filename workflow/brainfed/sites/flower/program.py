"""One of Flower's own programs as a process of the coordinator: it shows the coordinator's secret with every request.

`python -m brainfed.sites.flower.program SECRET NAME ARGUMENTS...`; SECRET is the path of the secret.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx
from flwr.supercore.protobuf.client import (
    ProtobufCall,
    ProtobufClient,
    ProtobufClientInterceptor,
    ProtobufRequestContext,
)

from brainfed.sites.flower._processes import SECRET_HEADER


class _Shown:
    """Adds the secret to a request."""

    def __init__(self, secret: str) -> None:
        self._secret = secret

    def intercept(self, context: ProtobufRequestContext, call_next: ProtobufCall) -> httpx.Response:
        context.request.headers[SECRET_HEADER] = self._secret
        return call_next(context)


def show(secret: str) -> None:
    """Have all clients of Flower's APIs that this process makes show the secret; Flower has no setting for it."""
    make = ProtobufClient.__init__

    def make_showing(
        self: ProtobufClient, base_url: str, *, interceptors: Sequence[ProtobufClientInterceptor] = (), **options: Any
    ) -> None:
        make(self, base_url, interceptors=(*interceptors, _Shown(secret)), **options)

    ProtobufClient.__init__ = make_showing  # type: ignore[method-assign]


if __name__ == "__main__":
    show(Path(sys.argv[1]).read_text(encoding="ascii"))
    del sys.argv[:2]
    (program,) = entry_points(group="console_scripts", name=sys.argv[0])
    sys.exit(program.load()())
