"""What the scripts of the rules share: the frame of a job with the names and remedies of this workflow, the job of a
method, and a job's link to other sites.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
