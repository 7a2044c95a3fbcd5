"""Servers that learn from the predictions of institutions on public samples: GAHFL and the methods that it is compared
with.

Institutions may have networks of different kinds.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
