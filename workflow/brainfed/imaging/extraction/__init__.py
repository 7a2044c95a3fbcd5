"""Extract region series from images: repetition times, confounds, cleaning, several runs of a subject, one shard a job.

Opening and averaging an image is in `scans`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
