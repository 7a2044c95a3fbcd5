from ._imported import NEUTRAL_MODULES, state_sources, note_sources, edited_code, is_neutral
from ._made import dated_ahead, Made, roles_of, Making, record_of
from ._records import EDITED, is_one_of, Records

__all__ = [
    "NEUTRAL_MODULES", "state_sources", "note_sources", "edited_code", "is_neutral",
    "dated_ahead", "Made", "roles_of", "Making", "record_of",
    "EDITED", "is_one_of", "Records",
]
