"""Find series on disk without a row in the phenotype table, by one directory listing."""

import os
import re
from collections.abc import Collection
from pathlib import Path
from string import Formatter


def unlisted_files(pattern: str, named: Collection[str]) -> tuple[str, ...]:
    """Names, ascending, of the files that match a path pattern and are not among the paths `named`.

    Empty if the folder's name holds braces, the file's name holds none, or the folder does not exist.
    """
    folder, name = os.path.split(pattern)
    parts = list(Formatter().parse(name))
    if "{" in folder or not any(field for _, field, _, _ in parts) or not Path(folder or ".").is_dir():
        return ()
    fits = re.compile("".join(re.escape(text) + ("" if field is None else ".+") for text, field, _, _ in parts))
    known = {Path(path).name for path in named}
    found = [entry.name for entry in os.scandir(folder or ".")]
    return tuple(sorted(file for file in found if file not in known and fits.fullmatch(file)))
