"""All methods, a family a folder: `declaration` says what a method needs and shares, `train` trains it.

This door has their registry and the classes that a declaration uses; declarations are light.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
