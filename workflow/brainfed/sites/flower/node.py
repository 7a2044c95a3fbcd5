"""A hospital's SuperNode: `python -m brainfed.sites.flower.node`. It opens no port and runs no code from outside.

It is Flower's SuperNode loop with shorter waits, and a thread that answers its tasks.
"""

# ruff: noqa: N802 (names of Flower's methods)

import argparse
import threading
from collections.abc import Callable
from dataclasses import dataclass
from logging import getLogger
from pathlib import Path
from typing import Any

from flwr.app import Error, Message
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto import message_pb2, runtime_pb2
from flwr.proto.task_pb2 import Task
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.object_store import ObjectStoreFactory
from flwr.supernode.nodestate import NodeState, NodeStateFactory
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output
from flwr.supernode.servicer.runtime import runtime_handlers
from flwr.supernode.start_client_internal import start_client_internal

from brainfed.sites import NOBODY, PATIENCE_S, NobodyThereError, Packet, ask_here
from brainfed.sites.flower._certificates import site_key, to_pem
from brainfed.sites.flower._messages import LONGEST_S, Pauses, Verifier, addressed, shorten_node, to_records
from brainfed.sites.flower._processes import FlowerFolder

# A hospital's answer to a message of Flower's: the training process's reply, if the coordinator signed the request.
#
# It imports flwr, cryptography and numpy alone; the data, torch and the model stay in the training process.


@dataclass(frozen=True)
class Relay:
    """Passes requests that the coordinator signed to the training process at a socket, and its replies back."""

    verifier: Verifier
    socket: Path

    def __call__(self, message: Message) -> Message:
        """The training process's reply to a message, or a packet of kind `nobody`.

        Raises:
            NotOfTheCoordinatorError: the coordinator did not ask; the training process hears nothing of it.
        """
        request = addressed(self.verifier.verified(message.content), message)
        try:
            reply = ask_here(self.socket, request, PATIENCE_S)
        except NobodyThereError as error:
            reply = Packet(NOBODY, {"sentence": str(error)}, number=request.number)
        return Message(to_records(reply), reply_to=message)


# The hospital's end of Flower's messages: the SuperNode's tasks are answered by the relay, in the SuperNode's process.
#
# Flower's own executor, `flower-superexec`, starts `flwr-clientapp` for every message: about 1 s of CPU, and it runs
# the code that the run brings along. `--isolation process` lets another executor take its place. This one calls the
# functions behind the SuperNode's Runtime API, with no port, and passes each message to a `Relay`, which is
# installed here: what the coordinator sends is never executed at the hospital.

Answer = Callable[[Message], Message]

# This module is `__main__` where it runs.
_logger = getLogger("brainfed.sites.flower.node")


def answer_one(state: NodeState, relay: Answer) -> bool:
    """Take a SuperNode's oldest task and answer it; false if there is none.

    An exception of the relay reaches the coordinator as Flower's error of a ClientApp.
    """
    acquired = runtime_handlers.acquire_task(
        runtime_pb2.AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]), state
    )
    if not acquired.token:
        return False
    task = acquired.task
    client: Any = _Runtime(state, task)
    message, context, _, _ = pull_task_input(client)
    # A task without a heartbeat for 60 s is given up.
    beats = HeartbeatSender(lambda: state.acknowledge_task_heartbeat(task.task_id) or True)
    beats.start()
    status, details = SubStatus.COMPLETED, ""
    try:
        reply = relay(message)
    except Exception as error:
        _logger.exception("the relay failed")
        status, details = SubStatus.FAILED, repr(error)
        reply = Message(Error(code=ErrorCode.CLIENT_APP_RAISED_EXCEPTION, reason=details), reply_to=message)
    finally:
        beats.stop()
    push_message(client, reply, context)
    push_task_output(client, context, status, details)
    return True


@dataclass(frozen=True)
class _Runtime:
    """What Flower's client of the Runtime API does over HTTP, as calls; with the names of its methods."""

    state: NodeState
    task: Task

    def PullTaskInput(self, request: runtime_pb2.PullTaskInputRequest) -> runtime_pb2.PullTaskInputResponse:
        return runtime_handlers.pull_task_input(request, self.state, self.task)

    def PullMessages(self, request: runtime_pb2.PullAppMessagesRequest) -> runtime_pb2.PullAppMessagesResponse:
        return runtime_handlers.pull_messages(request, self.state, self.task)

    def PullObject(self, request: message_pb2.PullObjectRequest) -> message_pb2.PullObjectResponse:
        return runtime_handlers.pull_object(request, self.state, self.task)

    def ConfirmMessageReceived(
        self, request: message_pb2.ConfirmMessageReceivedRequest
    ) -> message_pb2.ConfirmMessageReceivedResponse:
        return runtime_handlers.confirm_message_received(request, self.state, self.task)

    def PushMessages(self, request: runtime_pb2.PushAppMessagesRequest) -> runtime_pb2.PushAppMessagesResponse:
        return runtime_handlers.push_messages(request, self.state, self.task)

    def PushObject(self, request: message_pb2.PushObjectRequest) -> message_pb2.PushObjectResponse:
        return runtime_handlers.push_object(request, self.state, self.task)

    def PushTaskOutput(self, request: runtime_pb2.PushTaskOutputRequest) -> runtime_pb2.PushTaskOutputResponse:
        return runtime_handlers.push_task_output(request, self.state, self.task)


def answer_tasks(state: NodeState, pauses: Pauses, relay: Relay) -> None:
    """Answer the SuperNode's tasks for ever, each when its message has arrived.

    Flower makes a task before it has fetched the message; a task that is taken at once waits a second for its parts.
    A version of Flower that does not sleep by this clock has its tasks answered, too, later.
    """
    while True:
        pauses.arrived.wait(LONGEST_S)
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
    parser.add_argument("--folder", type=Path, required=True, help="of Flower's files")
    parser.add_argument("--site", required=True, help="its name")
    parser.add_argument("--superlink", required=True, help="host:port of the coordinator")
    parser.add_argument("--socket", type=Path, required=True, help="of the training process")

    given = parser.parse_args()
    folder = FlowerFolder(given.folder)
    private, certificate = site_key(folder.private_key(given.site)), folder.certificate.read_bytes()
    last = folder.root / f"last-request-{given.site}"
    relay = Relay(Verifier(certificate, to_pem(private.public_key()), last), given.socket)
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
