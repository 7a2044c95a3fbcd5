from ._region_table import read_text, read_region_table
from ._scan import (
    content_of, gzip_trailer, same_content, read_brain, ScanHeader, Scan, read_header, read_scan, AtlasGrid, same_grid,
)
from ._atlas import ProbabilisticAtlas, Atlas, load_atlas
from ._region_means import voxels_in_view, average_regions, grid_of

__all__ = [
    "read_text", "read_region_table",
    "content_of", "gzip_trailer", "same_content", "read_brain", "ScanHeader", "Scan", "read_header", "read_scan",
    "AtlasGrid", "same_grid",
    "ProbabilisticAtlas", "Atlas", "load_atlas",
    "voxels_in_view", "average_regions", "grid_of",
]
