"""Write the report of a study: one HTML page from tables, histories and figures that jobs have left.

It computes no score, and shows no subject's id unless the config asks for it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
