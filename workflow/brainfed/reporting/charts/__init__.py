"""Charts of scores, curves and training in Vega-Lite: an SVG that carries its specification, which the page makes
interactive.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
