"""Open an atlas and a subject's image, check both, and average voxels into region series.

A wrong space, a damaged file and an empty region are named with the subject.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
