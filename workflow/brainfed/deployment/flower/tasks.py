"""The hospital's end of Flower's messages: the SuperNode's tasks are answered by the relay, in the SuperNode's process.

Flower's own executor, `flower-superexec`, starts `flwr-clientapp` for every message: about 1 s of CPU, and it runs the
code that the run brings along. `--isolation process` lets another executor take its place. This one calls the functions
behind the SuperNode's Runtime API, with no port, and passes each message to a `relay.Relay`, which is installed here:
what the coordinator sends is never executed at the hospital.
"""

from collections.abc import Callable
from dataclasses import dataclass
from logging import getLogger
from typing import cast

from flwr.app import Message
from flwr.app.error import Error
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto.message_pb2 import (
    ConfirmMessageReceivedRequest,
    ConfirmMessageReceivedResponse,
    PullObjectRequest,
    PullObjectResponse,
    PushObjectRequest,
    PushObjectResponse,
)
from flwr.proto.runtime_pb2 import (
    AcquireTaskRequest,
    PullAppMessagesRequest,
    PullAppMessagesResponse,
    PullTaskInputRequest,
    PullTaskInputResponse,
    PushAppMessagesRequest,
    PushAppMessagesResponse,
    PushTaskOutputRequest,
    PushTaskOutputResponse,
)
from flwr.proto.task_pb2 import Task
from flwr.supercore.constant import TaskType
from flwr.supercore.heartbeat import HeartbeatSender
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.nodestate import NodeState
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output
from flwr.supernode.servicer.runtime import runtime_handlers

Answer = Callable[[Message], Message]

_logger = getLogger(__name__)


def answer_one(state: NodeState, relay: Answer) -> bool:
    """Take a SuperNode's oldest task and answer it; false if there is none.

    An exception of the relay reaches the coordinator as Flower's error of a ClientApp.
    """
    acquired = runtime_handlers.acquire_task(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]), state)
    if not acquired.token:
        return False
    task = acquired.task
    client = cast(RuntimeHttpClient, _Runtime(state, task))
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

    def PullTaskInput(self, request: PullTaskInputRequest) -> PullTaskInputResponse:  # noqa: N802
        return runtime_handlers.pull_task_input(request, self.state, self.task)

    def PullMessages(self, request: PullAppMessagesRequest) -> PullAppMessagesResponse:  # noqa: N802
        return runtime_handlers.pull_messages(request, self.state, self.task)

    def PullObject(self, request: PullObjectRequest) -> PullObjectResponse:  # noqa: N802
        return runtime_handlers.pull_object(request, self.state, self.task)

    def ConfirmMessageReceived(  # noqa: N802
        self, request: ConfirmMessageReceivedRequest
    ) -> ConfirmMessageReceivedResponse:
        return runtime_handlers.confirm_message_received(request, self.state, self.task)

    def PushMessages(self, request: PushAppMessagesRequest) -> PushAppMessagesResponse:  # noqa: N802
        return runtime_handlers.push_messages(request, self.state, self.task)

    def PushObject(self, request: PushObjectRequest) -> PushObjectResponse:  # noqa: N802
        return runtime_handlers.push_object(request, self.state, self.task)

    def PushTaskOutput(self, request: PushTaskOutputRequest) -> PushTaskOutputResponse:  # noqa: N802
        return runtime_handlers.push_task_output(request, self.state, self.task)
