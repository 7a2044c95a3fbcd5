"""What a server does with the replies of a round: averaging, clustering, weighting by similarity, and solvers of convex
problems.

Each module is one paper's server.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
