from ._roi_series import RELATIVE_FLOOR, rounding_regions, varying_regions, RegionSeries, read_roi_series
from ._shards import (
    ShardFiles, write_shard, check_series, check_length, coverage_table, checksum, quality_row, SeriesReader,
    read_shard, load_series, shared_regions, load_runs, standardised, split_runs, write_series,
)

__all__ = [
    "RELATIVE_FLOOR", "rounding_regions", "varying_regions", "RegionSeries", "read_roi_series",
    "ShardFiles", "write_shard", "check_series", "check_length", "coverage_table", "checksum", "quality_row",
    "SeriesReader", "read_shard", "load_series", "shared_regions", "load_runs", "standardised", "split_runs",
    "write_series",
]
