"""What the scripts of the rules share: what surrounds every job, its log and error messages that name this workflow's
files and remedies; the job of a method; and a job's link to other sites.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
