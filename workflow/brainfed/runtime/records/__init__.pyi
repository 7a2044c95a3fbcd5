from ._contents import dated_ahead
from ._imported import NEUTRAL_MODULES, state_sources, note_sources, edited_code, is_neutral
from ._made import Made, roles_of, Making, record_of
from ._records import Records, install, keep_whatever_the_dates

__all__ = [
    "dated_ahead",
    "NEUTRAL_MODULES", "state_sources", "note_sources", "edited_code", "is_neutral",
    "Made", "roles_of", "Making", "record_of",
    "Records", "install", "keep_whatever_the_dates",
]
