"""Figures in matplotlib: matrices of connectivity, brains, chords, and graphs whose nodes have places.

Charts of numbers are in `charts`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
