"""Region series as files: read from text, NumPy and MATLAB, checked, stored as shards of a cohort, joined for methods
that learn from series.

Nothing in a file is executed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
