"""From scans to features: the sub-packages read images and series; this door turns series into correlations and tangent
features, and joins views.

Labels are used by what `fitted` fits on training subjects, and nowhere else.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
