"""Turn predictions into scores: metrics, tables over runs, tests between variants, patterns of linear models, and the
audit of membership.

It reads artefacts of finished jobs and knows no method.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
