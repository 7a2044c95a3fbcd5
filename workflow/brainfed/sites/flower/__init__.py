"""Flower as the way between hospitals: its processes, certificates, messages, signatures and masked sums.

Nothing outside this package imports Flower.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
