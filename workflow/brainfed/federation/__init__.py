"""The rounds between institutions and a server: messages, wire, ledger, noise, accounting, attacks and defences.

Whatever crosses between institutions passes here and is recorded. It knows nothing of brains.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
