"""Expand a config into its plan: variants, sweeps, experiments, figures and kept models, each checked before a job
starts.

What it refuses is a `UserError` that names the key.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
