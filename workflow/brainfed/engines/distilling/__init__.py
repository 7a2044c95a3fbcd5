"""Train recurrent networks that institutions do not share: alone, on pooled or public series, or by distillation
through a server (GAHFL Algorithm 1).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
