from ._tables import measure_of
from ._features import write_measures, read_measures

__all__ = ["measure_of", "write_measures", "read_measures"]
