"""Measure the quality of every subject's data, and decide who is included.

Each exclusion has a reason and each oddity is an issue for the reader of the report. The voxels are not read here:
`imaging` has measured them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
