from ._packet import (
    SAME_VERSION, BrokenPacketError, Packet, REPLY, LEAVE, REFUSED, INTRODUCE, ABSENT, NOBODY, SLOWEST, Hub, SiteError,
    DifferingSitesError, LostSitesError, SEALED, bound, is_bound, fingerprint,
)
from ._coordinator import Coordinator, KeptState
from ._site_client import SiteClient
from ._ipc import PATIENCE_S, NobodyThereError, serve, ask_here

__all__ = [
    "SAME_VERSION", "BrokenPacketError", "Packet", "REPLY", "LEAVE", "REFUSED", "INTRODUCE", "ABSENT", "NOBODY",
    "SLOWEST", "Hub", "SiteError", "DifferingSitesError", "LostSitesError", "SEALED", "bound", "is_bound",
    "fingerprint",
    "Coordinator", "KeptState",
    "SiteClient",
    "PATIENCE_S", "NobodyThereError", "serve", "ask_here",
]
