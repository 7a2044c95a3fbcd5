from ._imported import state_sources, note_sources, edited_code, is_neutral
from ._source_tree import SourceTree
from ._digests import code_digest
from ._made import dated_ahead, Made, roles_of, Making, record_of
from ._records import is_one_of, Records

__all__ = [
    "dated_ahead",
    "state_sources", "note_sources", "edited_code", "is_neutral",
    "SourceTree",
    "code_digest",
    "Made", "roles_of", "Making", "record_of",
    "is_one_of", "Records",
]
