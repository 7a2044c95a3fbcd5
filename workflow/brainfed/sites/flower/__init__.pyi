from ._certificates import (
    make_certificate, make_key_pair, write_public, require_public_keys, require_certificate, site_key, write_private,
    make_or_check,
)
from ._processes import FlowerFolder, Running, start, together, start_superlink, start_supernode, start_run
from ._secure_site import STEPS
from ._connection import Outward, Connection
from ._secure_coordinator import SecureSums

__all__ = [
    "make_certificate", "make_key_pair", "write_public", "require_public_keys", "require_certificate", "site_key",
    "write_private", "make_or_check",
    "FlowerFolder", "Running", "start", "together", "start_superlink", "start_supernode", "start_run",
    "STEPS",
    "Outward", "Connection",
    "SecureSums",
]
