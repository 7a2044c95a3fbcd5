"""A hospital's SuperNode: `python -m brainfed.deployment.flower.node`. It opens no port and runs no code from outside.

It is Flower's SuperNode loop with shorter waits (`pauses`), and a thread that answers its tasks (`tasks`).
"""

import argparse
import threading
from logging import getLogger
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_ssh_private_key
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supernode.nodestate import NodeState, NodeStateFactory
from flwr.supernode.start_client_internal import start_client_internal

from brainfed.deployment.doorway import PATIENCE_S
from brainfed.deployment.flower.pauses import Pauses, shorten_node
from brainfed.deployment.flower.relay import Relay
from brainfed.deployment.flower.signature import Verifier
from brainfed.deployment.flower.tasks import answer_one

_logger = getLogger(__name__)


def answer_tasks(state: NodeState, pauses: Pauses, relay: Relay) -> None:
    """Answer the SuperNode's tasks for ever, each when its message has arrived.

    Flower makes a task before it has fetched the message; a task that is taken at once waits a second for its parts.
    """
    while True:
        pauses.arrived.wait()
        pauses.arrived.clear()
        try:
            while answer_one(state, relay):
                pauses.answered.set()
        except Exception:
            # Flower's loop gives the task up after 60 s; the next message is answered.
            _logger.exception("a message was not answered")


def main() -> None:
    """Run the SuperNode until a signal ends it."""
    parser = argparse.ArgumentParser(description="A hospital's end of a federated study")
    parser.add_argument("--superlink", required=True, help="host:port of the coordinator")
    parser.add_argument("--certificate", type=Path, required=True, help="the coordinator's certificate, PEM")
    parser.add_argument("--key", type=Path, required=True, help="this site's private key")
    parser.add_argument("--socket", type=Path, required=True, help="of the training process")
    parser.add_argument("--patience", type=float, default=PATIENCE_S, help="seconds to wait for the training process")
    given = parser.parse_args()
    private = load_ssh_private_key(given.key.read_bytes(), None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        parser.error(f"{given.key}: expected an ECDSA key")
    certificate = given.certificate.read_bytes()
    own = private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    last = given.certificate.with_name(f"last-request-{given.key.name}")
    relay = Relay(Verifier(certificate, own, last), given.socket, given.patience)
    pauses, states = shorten_node(), NodeStateFactory(objectstore_factory=ObjectStoreFactory())
    threading.Thread(target=answer_tasks, args=(states.state(), pauses, relay), daemon=True).start()
    start_client_internal(
        state_factory=states,
        server_address=given.superlink,
        node_config={},
        root_certificates=certificate,
        insecure=False,
        authentication_keys=(private, private.public_key()),
        isolation="process",
    )


if __name__ == "__main__":
    main()
