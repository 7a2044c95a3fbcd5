from ._sources import ConfoundSettings, BidsSettings, FreeSurferSettings, SimulateSettings, TUDatasetSettings
from ._cohort import (
    ExclusionSettings, FlagSettings, ColumnSettings, CodeSettings, ExtractionSettings, CohortSettings, expanded,
)
from ._splits import PublicSettings, SplitSettings, institution_of_site

__all__ = [
    "ConfoundSettings", "BidsSettings", "FreeSurferSettings", "SimulateSettings", "TUDatasetSettings",
    "ExclusionSettings", "FlagSettings", "ColumnSettings", "CodeSettings", "ExtractionSettings", "CohortSettings",
    "expanded",
    "PublicSettings", "SplitSettings", "institution_of_site",
]
