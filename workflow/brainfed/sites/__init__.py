"""Studies between hospitals: every site trains on its own data, and a coordinator joins what they send.

`brainfed join` and `brainfed coordinate` begin here. Nothing imports this package: the command line and the jobs of a
site refer to its functions by strings (`module:function`), and a simulated federation needs none of it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
