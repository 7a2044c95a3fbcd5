"""The kinds of stages between scans and methods.

`registry` finds every kind that a module of this folder declares; the door has what a declaration is written with. A
module of a kind has no underscore.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
