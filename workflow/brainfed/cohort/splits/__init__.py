"""Draw institutions, test folds and public subjects of each repeat, and hide the labels of tested subjects from what is
fitted.

Every draw is keyed by its purpose, so a new variant changes no split.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
