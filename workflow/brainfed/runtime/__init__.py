"""What every job needs and no study knows: files, errors, settings, random streams, logs, entry points.

The sub-packages are `devices`, `jobs` and `records`. It imports no other package of brainfed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
