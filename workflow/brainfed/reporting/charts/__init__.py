"""Every chart of numbers, in Vega-Lite: scores, curves, training, the cohort, sweeps, clusters, exchanges and
leakage.

A chart is an SVG that holds its specification, which the page makes interactive.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
