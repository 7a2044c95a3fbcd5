"""Train a graph isomorphism network on whole graphs, one a subject.

Gradients are written out, without autograd, and tests compare them with the plain module.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
