"""Train networks at institutions, many folds at once.

The driver here has the rounds, the wire, the ledger, the noise, the checkpoints and the outcome; each sub-package is
one kind of institution. Engines know no method by name, and never see the diagnosis of a tested
subject.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
