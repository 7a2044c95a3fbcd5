"""Fork jobs from processes that have already imported the jobs' libraries.

`client` is the program that a job starts, `server` the process that forks; without them jobs start by themselves.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
