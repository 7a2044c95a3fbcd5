from ._source_tree import SourceTree
from ._digests import code_digest

__all__ = [
    "SourceTree",
    "code_digest",
]
