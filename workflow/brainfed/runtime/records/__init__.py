"""Decide which results are current: contents of files, the code that ran, and a record beside every result.

Snakemake plans as ever, and asks here.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
