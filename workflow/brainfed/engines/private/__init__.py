"""Train any network of single subjects in the steps of differentially private descent, or in the same steps without
noise.

`federation` counts the epsilon of a step.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
