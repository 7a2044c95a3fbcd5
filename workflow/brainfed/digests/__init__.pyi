from ._source_tree import SourceTree
from ._links import code_digest

__all__ = [
    "SourceTree",
    "code_digest",
]
