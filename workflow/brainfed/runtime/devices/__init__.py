"""Find the GPUs of a machine, and lease one so that no two jobs share it by accident.

A GPU that cannot be used is an error with a remedy, never silently a CPU.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
