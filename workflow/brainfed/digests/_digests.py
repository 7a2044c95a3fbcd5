"""Digests of code: a job reruns if, and only if, the meaning of its code changes.

Snakemake does not see edits in imported modules. So each rule carries, as a parameter, the digest of all definitions
that its script and the entry point that it calls reach: a function, class or assignment that they mention, what those
mention, and so on, through imports, re-exports and lazy doors. The digest is taken of the parsed source without
docstrings, comments and line numbers: a reworded sentence reruns nothing.

What counts beside the names that are mentioned:

- What a module does when it is imported (`for`, `with`, calls that may change what others read, as those of a decorator
  that registers) counts for everything that imports it, in the order of the imports. So does the import of a library
  that no statement of the module mentions, but for Python's own. Operators and subscripts are taken to change nothing,
  and so are the functions in `links.UNCHANGING`.
- What cannot be resolved counts as a whole: a module that is passed on, `from x import *`, `globals()`, a module with a
  `__getattr__` of its own. All values of a name count that has several.
- Names in strings are not followed, but for those of types in annotations. So entry points are roots.

A digest does not depend on the files in which definitions stand. One line stands for each definition: its meaning, and
for each name that it mentions the meanings of what the name stands for (of a library, its dotted name). Equal
definitions in several modules are told apart by their modules. So a definition that moves leaves all digests as they
are, unless it has an equal or asks for `__name__` or `__file__`; a name that comes to stand for another definition
changes them.
"""

import gc
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from brainfed.digests._links import Links
from brainfed.digests._source_tree import Place, SourceTree
from brainfed.runtime.records import NEUTRAL_MODULES


def code_digest(*roots: Path | str, base: "Path | str | SourceTree", exclude: Collection[str] = NEUTRAL_MODULES) -> str:
    """Digest of everything inside `base` that the roots run.

    Args:
        roots: files (a `Path`, or a name that ends in `.py`; relative to `base` or absolute) and dotted modules
            (`brainfed.methods.gcn.train`), with all that stands in them, and entry points
            (`brainfed.methods.gcn.train:train_fedgcn`): one definition with what it reaches.
        base: the folder that is on the import path, or its tree; imports that lead outside it are not followed.
        exclude: what is left out together with what only it imports: packages, modules, and `module:definition`.

    Returns:
        16 hexadecimal characters, the same wherever `base` lies.

    Raises:
        UserError: a root is not in `base`, or a file is not valid Python.
    """
    tree = base if isinstance(base, SourceTree) else SourceTree(base)
    key = "\n".join((*sorted(map(str, roots)), *sorted(exclude)))
    if key not in tree.finished:
        with _without_collection():
            tree.finished[key] = _links(tree, tree.searched(roots), frozenset(exclude)).digest(roots)
    return tree.finished[key]


def import_closure(
    *roots: Path | str, base: "Path | str | SourceTree", exclude: Collection[str] = NEUTRAL_MODULES
) -> tuple[Path, ...]:
    """The files inside `base` that the roots import, directly or not, the roots among them.

    Imports inside functions count, names in strings do not; an `__init__` counts unless it is empty. Of a lazy door the
    modules count of which it offers a name that is imported.

    Arguments and errors as in `code_digest`.
    """
    tree = base if isinstance(base, SourceTree) else SourceTree(base)
    return tuple(tree.folder.joinpath(*place) for place in tree.closure(roots, exclude))


@lru_cache(maxsize=8)
def _links(tree: SourceTree, searched: tuple[Place, ...], exclude: frozenset[str]) -> Links:
    return Links(tree, searched, exclude)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Collect no garbage: parsed files are none, and looking through all of them takes as long as the rest."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
