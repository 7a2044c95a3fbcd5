from ._confounds import COSINES, read_confounds
from ._extraction import TooShortError, ScanFiles, extract, check_cleaning
from ._bids_extraction import (
    SubjectRuns, extract_bids_shard, extract_subject, check_together, prepare_cleaning, extract_shard, exempt_libraries,
)

__all__ = [
    "COSINES", "read_confounds",
    "TooShortError", "ScanFiles", "extract", "check_cleaning",
    "SubjectRuns", "extract_bids_shard", "extract_subject", "check_together", "prepare_cleaning", "extract_shard",
    "exempt_libraries",
]
