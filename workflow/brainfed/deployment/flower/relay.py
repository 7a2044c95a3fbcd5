"""Flower's ClientApp at a hospital: it passes a request to the training process and its reply back, and knows no more.

It imports flwr and numpy alone; the data, torch and the model stay in the training process.
"""

from pathlib import Path
from typing import Final

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from brainfed.deployment.doorway import NobodyThereError, ask_here
from brainfed.deployment.flower.records import from_records, to_records
from brainfed.federation.apart.exchange import ABSENT
from brainfed.federation.apart.packet import Packet

SOCKET_KEY: Final = "socket"
"""Of the SuperNode's configuration: path of the training process's socket."""
PATIENCE_KEY: Final = "patience"
"""Of the SuperNode's configuration: seconds to wait for a training process that does not listen yet."""
PATIENCE_S: Final = 5.0

app = ClientApp()


@app.train()
def relay(message: Message, context: Context) -> Message:
    """The training process's reply to a message, or a packet of kind `absent`."""
    request = from_records(message.content)
    path = Path(str(context.node_config[SOCKET_KEY]))
    patience = float(context.node_config.get(PATIENCE_KEY, PATIENCE_S))
    try:
        reply = ask_here(path, request, patience)
    except NobodyThereError as error:
        reply = Packet(ABSENT, {"sentence": str(error)}, number=request.number)
    return Message(to_records(reply), reply_to=message)
