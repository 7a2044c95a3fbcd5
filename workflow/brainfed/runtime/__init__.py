"""What every job needs and no study knows: files, errors, settings, random streams, logs, entry points.

The sub-packages have devices, forking, jobs, records and scheduling. The runtime imports nothing else of ours.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
