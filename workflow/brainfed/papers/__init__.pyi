from ._beside import BESIDE
from ._figures import FIGURES, PRINTINGS
from ._pages import PAPERS

__all__ = ["BESIDE", "FIGURES", "PRINTINGS", "PAPERS"]
