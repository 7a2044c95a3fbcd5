"""Fork jobs from processes that have already imported what they import.

`client` is what a job starts as, `server` the process that forks; without them jobs start by themselves.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
