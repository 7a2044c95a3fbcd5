"""Files of data sets in the text format of the TU Dortmund collection; no file is opened."""

import difflib
from collections.abc import Iterator
from pathlib import Path

from brainfed.cohort.settings.tudataset import TUDatasetSettings
from brainfed.runtime.errors import UserError

FETCH = "snakemake fetch_tudatasets --cores 1"
NEEDED = ("A", "graph_indicator", "graph_labels")
"""Parts that every data set has; a download that lacks one stopped half way."""
OPTIONAL = ("node_labels", "node_attributes")


def raw_folder(settings: TUDatasetSettings, name: str) -> Path:
    """Folder of the text files of a data set: `NAME/raw`, as PyTorch Geometric keeps them, or `NAME`."""
    folder = Path(settings.folder) / name
    return folder / "raw" if (folder / "raw").is_dir() else folder


def text_file(settings: TUDatasetSettings, name: str, part: str) -> Path:
    """One file of a data set, `PROTEINS_A.txt`."""
    return raw_folder(settings, name) / f"{name}_{part}.txt"


def graph_files(settings: TUDatasetSettings) -> list[str]:
    """All files to read; those of node labels and attributes where they exist."""
    needed = [text_file(settings, name, part) for name in settings.names for part in NEEDED]
    further = [text_file(settings, name, part) for name in settings.names for part in OPTIONAL]
    return [str(path) for path in (*needed, *(path for path in further if path.is_file()))]


def missing_graphs(where: str, settings: TUDatasetSettings, fetch: str = "") -> Iterator[UserError]:
    """Mistakes of a cohort of graphs without data sets, or without their files.

    Args:
        where: name of the cohort in the message.
        settings: settings of the cohort's graphs.
        fetch: command that downloads them; empty: `FETCH`.
    """
    if not settings.names:
        yield UserError(
            f"{where}: source 'tudataset' needs `tudataset.names`, found none; name a data set, such as PROTEINS."
        )
    for name in settings.names:
        for part in NEEDED:
            path = text_file(settings, name, part)
            if not path.is_file():
                yield UserError(
                    f"{where}: expected the file {path} of the data set {name}, found none{_near(settings, name)}; fix "
                    f"`tudataset`, or run `{fetch or FETCH}` with this config where there is a network."
                )
                break


def _near(settings: TUDatasetSettings, name: str) -> str:
    """A data set of a similar name in the folder; empty if there is none."""
    folder = Path(settings.folder)
    present = sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    folded = {other.casefold(): other for other in present if other != name}
    near = difflib.get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[near[0]]}?)" if near else ""
