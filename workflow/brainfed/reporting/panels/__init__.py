"""The panels of the page that any method may have, and what they know of an experiment.

Panels of one paper are in `papers`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
