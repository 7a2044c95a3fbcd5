"""Find the mistakes of a project before it runs: `brainfed check`.

A check reads configs, tables, headers and a few images, calls the functions that the jobs call, and reports every
mistake with its remedy. It trains nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
