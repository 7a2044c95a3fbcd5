"""What each paper adds to a report: its printed numbers, its panels and its figures.

Only the report's scripts name a paper; training and scores do without this package.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
