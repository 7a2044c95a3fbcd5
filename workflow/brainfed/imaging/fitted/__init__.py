"""Features that are fitted on training subjects: ComBat and recursive elimination.

They are fitted separately in every fold, and never see a test label.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
