"""Train ridge regression across institutions: by conjugate gradients on sums, which give the pooled solution, or by
federated averaging.

Other linear models are in `methods`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
