"""Digests of code: a job reruns if, and only if, the meaning of the code that it reaches changes.

They follow the definitions that a script mentions through imports and doors. It knows nothing of Snakemake.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
