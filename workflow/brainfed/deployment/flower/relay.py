"""A hospital's answer to a message of Flower's: the training process's reply, if the coordinator signed the request.

It imports flwr, cryptography and numpy alone; the data, torch and the model stay in the training process.
"""

from dataclasses import dataclass
from pathlib import Path

from flwr.app import Message

from brainfed.deployment.doorway import NobodyThereError, ask_here
from brainfed.deployment.flower.records import addressed, to_records
from brainfed.deployment.flower.signature import Verifier
from brainfed.federation.apart.exchange import NOBODY
from brainfed.federation.apart.packet import Packet


@dataclass(frozen=True)
class Relay:
    """Passes requests to the training process and its replies back, and knows no more.

    Attributes:
        verifier: of the coordinator's signature.
        socket: of the training process.
        patience: seconds to wait for a training process that does not listen yet.
    """

    verifier: Verifier
    socket: Path
    patience: float

    def __call__(self, message: Message) -> Message:
        """The training process's reply to a message, or a packet of kind `nobody`.

        Raises:
            NotOfTheCoordinatorError: the coordinator did not ask; the training process hears nothing of it.
        """
        request = addressed(self.verifier.verified(message.content), message)
        try:
            reply = ask_here(self.socket, request, self.patience)
        except NobodyThereError as error:
            reply = Packet(NOBODY, {"sentence": str(error)}, number=request.number)
        return Message(to_records(reply), reply_to=message)
