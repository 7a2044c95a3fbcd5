"""Keep a method's models, describe them, and score new patients by them: `brainfed predict`.

A kept file holds no subject.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
