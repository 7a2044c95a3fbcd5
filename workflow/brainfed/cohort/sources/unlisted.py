"""Find series on disk without a row in the phenotype table, by one directory listing, or one walk for `**`."""

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from string import Formatter

from brainfed.cohort.sources.below import ANYWHERE


def unlisted_files(pattern: str, named: Collection[str], below: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Names, ascending, of the files that match a path pattern and are not among the paths `named`.

    Empty if the folder's name holds braces, the file's name holds none, or the folder does not exist.

    Args:
        pattern: of the series.
        named: paths, or filled patterns, that rows name.
        below: files of a pattern with `**`, as `files_below` returns them.
    """
    folder, name = os.path.split(pattern)
    parts = list(Formatter().parse(name))
    if "{" in folder or not any(field for _, field, _, _ in parts):
        return ()
    if ANYWHERE not in pattern and not Path(folder or ".").is_dir():
        return ()
    fits = re.compile("".join(re.escape(text) + ("" if field is None else ".+") for text, field, _, _ in parts))
    known = {Path(path).name for path in named}
    found = below if ANYWHERE in pattern else [entry.name for entry in os.scandir(folder or ".")]
    return tuple(sorted(file for file in found if file not in known and fits.fullmatch(file)))
