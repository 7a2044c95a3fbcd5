"""What a method learns from in one repeat, in the order of its subjects.

Test labels are hidden here, once, for all methods; the outcome of a method becomes tables here too.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
