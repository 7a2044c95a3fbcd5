from ._artefacts import IntArray, BoolArray, Float32, Float64, FloatArray
from ._errors import UserError, Refuse, raise_at_once, pass_over
from ._borrowed import (
    keep_one_timer, end_when_asked, run_alone, hold, judge_by_records, keep_whatever_the_dates,
)
from ._disk import (
    part_of, write_whole, being_written, remove_left_over, FullDiskError, is_full, full_disk, folder_lock,
)
from ._artefacts import (
    ArrayFile, atomic, canonical_json, write_arrays, writing_blocks, read_arrays, below, write_table, read_table,
    read_tables, write_text, write_json, read_json, write_tsv, map_array, array_shapes,
)
from ._logs import PROGRESS, configure, Progress
from ._provenance import versions, imported_versions, machine, file_digest
from ._score_kinds import ScoreKind, THRESHOLD, COMPLEMENT, SCORE, SCORE_OF, score_columns, predicted_classes
from ._seeded import seeded
from ._settings import setting, restore, flat_settings, resolve, borrowed, Precision, PRECISION_DESCRIPTION
from ._streams import Streams

__all__ = [
    "IntArray", "BoolArray", "Float32", "Float64", "FloatArray",
    "UserError", "Refuse", "raise_at_once", "pass_over",
    "keep_one_timer", "end_when_asked", "run_alone", "hold", "judge_by_records", "keep_whatever_the_dates",
    "part_of", "write_whole", "being_written", "remove_left_over", "FullDiskError", "is_full", "full_disk",
    "folder_lock",
    "ArrayFile", "atomic", "canonical_json", "write_arrays", "writing_blocks", "read_arrays", "below", "write_table",
    "read_table", "read_tables", "write_text", "write_json", "read_json", "write_tsv", "map_array", "array_shapes",
    "PROGRESS", "configure", "Progress",
    "versions", "imported_versions", "machine", "file_digest",
    "ScoreKind", "THRESHOLD", "COMPLEMENT", "SCORE", "SCORE_OF", "score_columns", "predicted_classes",
    "seeded",
    "setting", "restore", "flat_settings", "resolve", "borrowed", "Precision", "PRECISION_DESCRIPTION",
    "Streams",
]
