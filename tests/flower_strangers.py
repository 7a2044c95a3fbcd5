"""Those whom the coordinator's port refuses: strangers who have its certificate."""

import datetime
import socket
import ssl
from base64 import b64encode
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from fastapi.routing import iter_route_contexts
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.superlink.main import create_app

from brainfed.deployment.flower.folder import FlowerFolder

PROTOBUF = {"content-type": "application/protobuf"}
_CODE = """\
from pathlib import Path
from flwr.serverapp import ServerApp

Path({mark!r}).touch()
app = ServerApp()
"""


def routes() -> set[tuple[str, str]]:
    """Method and path of all that Flower's SuperLink answers."""
    found = [each.route for each in iter_route_contexts(create_app().routes)]
    return {(method, route.path) for route in found for method in route.methods or ()}


def private_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Of a site."""
    key = load_ssh_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def signed(key: ec.EllipticCurvePrivateKey, seconds: float = 0.0) -> dict[str, str]:
    """Headers by which a SuperNode shows its key, `seconds` ago."""
    then = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)).isoformat()
    return {
        "flwr-public-key": b64encode(public_key_to_bytes(key.public_key())).decode(),
        "flwr-timestamp": then,
        "flwr-signature": b64encode(sign_message(key, then.encode())).decode(),
    }


def stranger(root: Path, study: FlowerFolder, address: str, mark: Path) -> FlowerFolder:
    """The folder of one who has the certificate and Flower, and an app that makes `mark` where it is executed."""
    folder = FlowerFolder(root)
    root.mkdir()
    folder.certificate.write_bytes(study.certificate.read_bytes())
    folder.write_connection(address)
    folder.write_app("none:none", [], {})
    project = folder.app / "pyproject.toml"
    project.write_text(project.read_text().replace("brainfed.deployment.flower.server_app:app", "hostile:app"))
    (folder.app / "hostile.py").write_text(_CODE.format(mark=str(mark)))
    return folder


def raw(address: str, certificate: Path, request: bytes) -> bytes:
    """The first bytes that come back for bytes that no HTTP library would send."""
    host, port = address.split(":")
    trust = ssl.create_default_context(cafile=str(certificate))
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        trust.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(request)
        return connection.recv(4096)
