from ._packet import (
    BrokenPacketError, Packet, REPLY, LEAVE, REFUSED, INTRODUCE, ABSENT, NOBODY, SLOWEST, Hub, SiteError,
    DifferingSitesError, LostSitesError, SEALED, SAME_VERSION, bound, is_bound, fingerprint,
)
from ._coordinator import Coordinator, KeptState
from ._site_client import SiteClient
from ._ipc import PATIENCE_S, NobodyThereError, serve, ask_here

__all__ = [
    "BrokenPacketError", "Packet", "REPLY", "LEAVE", "REFUSED", "INTRODUCE", "ABSENT", "NOBODY", "SLOWEST", "Hub",
    "SiteError", "DifferingSitesError", "LostSitesError", "SEALED", "SAME_VERSION", "bound", "is_bound", "fingerprint",
    "Coordinator", "KeptState",
    "SiteClient",
    "PATIENCE_S", "NobodyThereError", "serve", "ask_here",
]
