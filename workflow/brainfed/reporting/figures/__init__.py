"""Figures in matplotlib: cohorts, connectivity, brains, graphs, sweeps, and those that repeat a paper's.

Charts of scores are in `charts`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
