"""The frame of a job: log, threads, device, checkpoints, signals, and what is said when memory runs out.

What a job computes is not known here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
