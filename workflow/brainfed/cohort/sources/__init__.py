"""List the subjects of a cohort and their files, whatever the source, before any job runs.

Downloads and simulated cohorts are here too. Listing opens tables only, never an image.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
