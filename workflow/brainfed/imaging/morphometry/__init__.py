"""Read FreeSurfer's measures from group tables or single stats files, and normalise them.

FreeSurfer itself is never run.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
