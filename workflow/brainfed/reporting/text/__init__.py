"""Sentences of the page: the answer of an experiment, and the first screen.

Every sentence is a template that numbers fill.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
