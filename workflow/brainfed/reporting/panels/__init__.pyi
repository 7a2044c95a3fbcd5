from ._known import Known, read_known, Place, RESULTS, Panel, ShownPanel, applicable, situation
from ._generic import GENERIC

__all__ = ["Known", "read_known", "Place", "RESULTS", "Panel", "ShownPanel", "applicable", "situation", "GENERIC"]
