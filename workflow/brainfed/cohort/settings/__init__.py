"""The settings of cohorts, of their sources and of their splits, as frozen dataclasses.

They are light: a start of Snakemake imports them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
