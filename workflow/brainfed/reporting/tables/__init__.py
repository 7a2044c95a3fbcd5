"""Tables of the page: subjects, scores, exchanges, confounds, homophily, patterns, robustness.

Each reads artefacts and returns text.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
