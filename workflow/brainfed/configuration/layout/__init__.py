"""Where the files of a run lie, and which inputs and parameters a rule has.

Only names and paths: no file is opened but the locks on a run's results.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
