"""Which files of a workflow a script or an entry point imports."""

from brainfed.digests import SourceTree
from brainfed.runtime.records import is_neutral


def import_closure(*roots, base):
    """The files inside `base` that the roots of a digest import, directly or not, the roots among them.

    Imports inside functions count, names in strings do not; an `__init__` counts unless it is empty. Of a lazy door the
    modules count of which it offers a name that is imported.
    """
    tree = base if isinstance(base, SourceTree) else SourceTree(base)
    searched = tree.searched(roots)
    waiting = [module for root in roots for module in tree.around(tree.root(root))]
    modules = set()
    while waiting:
        module = waiting.pop()
        if module in modules or is_neutral(".".join(module)):
            continue
        modules.add(module)
        source = tree.source(module)
        own = (each for definition in source.definitions for each in definition.imports)
        waiting.extend(other for each in (*source.imports, *own) for other in tree.runs(module, each, searched))
    places = (tree.modules[module] for module in modules if module in tree.modules)
    return tuple(
        sorted(tree.folder.joinpath(*place) for place in places if place[-1] != "__init__.py" or has_code(tree, place))
    )


def has_code(tree, place):
    """Whether an `__init__` has statements."""
    source = tree.source(place[:-1])
    return bool(source.definitions or source.imports)
