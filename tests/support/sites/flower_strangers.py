"""Those whom the coordinator's port refuses: strangers who have its certificate, and a site that plays coordinator."""

import datetime
import socket
import ssl
import time
from base64 import b64encode
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_ssh_private_key
from fastapi.routing import iter_route_contexts
from flwr.app import Message, MessageType, Metadata, RecordDict
from flwr.app.message import make_message, remove_content_from_message
from flwr.common.constant import SUPERLINK_NODE_ID
from flwr.common.serde import message_to_proto
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.message_pb2 import PushObjectRequest
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects, get_object_tree, no_object_id_recompute
from flwr.supercore.primitives.asymmetric import public_key_to_bytes, sign_message
from flwr.superlink.main import create_app
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from brainfed.sites import Packet
from brainfed.sites.flower import FlowerFolder
from brainfed.sites.flower._messages import to_records

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
    project.write_text(project.read_text().replace("brainfed.sites.flower.server_app:app", "hostile:app"))
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


def request_to(node: int, content: RecordDict, run: int = 1) -> Message:
    """A message as the coordinator's ServerApp makes it."""
    metadata = Metadata(run, "", SUPERLINK_NODE_ID, node, "", "", time.time(), 60.0, MessageType.TRAIN)
    return make_message(metadata, content)


def ask_another_site(folder: FlowerFolder, address: str, site: str, node: int, other: int, run: int) -> None:
    """Send a request to a site as the coordinator would, with the key of another site: Flower delivers it.

    Args:
        folder: with the key of `site`.
        address: of the SuperLink.
        site: who sends.
        node: its number.
        other: number of the site that is asked.
        run: number of the study's run.
    """
    key = private_key(folder.private_key(site))
    message = request_to(other, to_records(Packet("echo")), run)
    vars(message.metadata)["_message_id"] = message.object_id
    certificate = folder.certificate.read_bytes()
    interceptor = NodeAuthHttpInterceptor(key, key.public_key())
    with (
        no_object_id_recompute(),
        FleetHttpClient.from_server_address(address, False, certificate, [interceptor]) as client,
    ):
        asked = client.PushMessages(
            PushMessagesRequest(
                node=Node(node_id=node),
                messages_list=[message_to_proto(remove_content_from_message(message))],
                message_object_trees=[get_object_tree(message)],
            )
        )
        assert asked.objects_to_push
        for name, part in get_all_nested_objects(message).items():
            client.PushObject(
                PushObjectRequest(
                    node=Node(node_id=node),
                    run_id=run,
                    session_id=asked.session_id,
                    object_id=name,
                    object_content=part.deflate(),
                )
            )
