"""What surrounds a job: log, threads, device, checkpoints, signals, and the error message when memory runs out.

The runtime does not know what a job computes.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
