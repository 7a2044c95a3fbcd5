"""Turn a config into a plan: validated settings, variants, experiments, and the files that a run makes.

It also writes the manual, the schema and the outline of the report. It is light, and computes nothing of a study.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
