"""Read phenotype tables of any encoding and separator, and turn their rows into participants.

A row that cannot be used is named with its file, line and remedy. Nothing but the csv module reads these tables.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
