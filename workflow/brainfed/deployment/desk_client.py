"""A job's end of the socket to its site's desk."""

from dataclasses import dataclass
from pathlib import Path

from brainfed.deployment.doorway import PATIENCE_S, NobodyThereError, ask_here
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class DeskClient:
    """Asks the desk at a socket.

    Attributes:
        path: of the socket.
    """

    path: Path

    def ask(self, request: Packet) -> Packet:
        """The coordinator's answer, however long it takes.

        Raises:
            UserError: `brainfed join` ends meanwhile.
        """
        try:
            return ask_here(self.path, request, PATIENCE_S)
        except NobodyThereError as error:
            raise UserError(
                f"expected `brainfed join` to pass this job's requests on, found it gone ({error}); run it again, the "
                "job goes on from its last round."
            ) from error
