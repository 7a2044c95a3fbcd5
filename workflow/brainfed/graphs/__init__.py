"""Graphs of subjects (FedNI Sec. III-A) and graphs of one subject's regions: how they are built, normalised, read and
measured.

Networks that read them are in `models`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
