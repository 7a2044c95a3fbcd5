"""Find files somewhere below a folder, for path patterns `folder/**/name`, by one walk."""

import os
from collections.abc import Mapping, Sequence

from brainfed.runtime.errors import UserError

ANYWHERE = "/**/"


def files_below(pattern: str) -> dict[str, list[str]]:
    """Name -> paths, ascending, of all files in the folder of a pattern `folder/**/name` and below.

    Links to folders are followed, each folder is read once. Empty for other patterns.
    """
    top, anywhere, _ = pattern.partition(ANYWHERE)
    found: dict[str, list[str]] = {}
    seen: set[str] = set()
    for folder, folders, files in os.walk(top, followlinks=True) if anywhere else ():
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        for file in files:
            found.setdefault(file, []).append(f"{folder}/{file}")
    return {file: sorted(paths) for file, paths in found.items()}


def located(name: str, path: str, below: Mapping[str, Sequence[str]]) -> str:
    """The file that a filled pattern `folder/**/name` finds; the pattern itself if there is none.

    Args:
        name: of the cohort.
        path: a filled pattern; any other path is returned as it is.
        below: files below the folder of the pattern, as `files_below` returns them.

    Raises:
        UserError: several files have the name.
    """
    top, anywhere, file = path.partition(ANYWHERE)
    found = below.get(file, ()) if anywhere else ()
    if len(found) > 1:
        raise UserError(
            f"Cohort {name!r}: expected one file {file} below {top}, found {len(found)}, {found[0]} and {found[1]}; "
            "remove all but one."
        )
    return found[0] if found else path
