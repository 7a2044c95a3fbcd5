"""Plain torch modules, the networks of the papers, a module a paper.

They hold no training loop and know no institution; `engines` trains them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
