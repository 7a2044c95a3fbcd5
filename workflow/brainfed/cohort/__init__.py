"""Who takes part in a study, with which label, at which institution and in which fold.

The sub-packages list subjects and files, read phenotypes, judge quality and draw splits; this package itself
holds the names of the classes. No image is read here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
