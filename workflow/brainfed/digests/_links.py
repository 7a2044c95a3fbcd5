"""Digests of code: a job reruns if, and only if, the meaning of its code changes.

Snakemake does not see edits in imported modules. So each rule carries, as a parameter, the digest of all definitions
that its script and the entry point that it calls reach: a function, class or assignment that they mention, what those
mention, and so on, through imports, re-exports and lazy doors. The digest is taken of the parsed source without
docstrings, comments and line numbers: a reworded sentence reruns nothing.

What counts beside the names that are mentioned:

- What a module does when it is imported (`for`, `with`, calls that may change what others read, as those of a decorator
  that registers) counts for everything that imports it, in the order of the imports. So does the import of a library
  that no statement of the module mentions, but for Python's own. Operators and subscripts are taken to change nothing,
  and so are the functions in `UNCHANGING`.
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
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path

from brainfed.digests._definitions import CLASS, HOOKED, SETTING, SUBCLASSES, UNKNOWN, WHOLE, Definition, Import
from brainfed.digests._source_tree import Module, Place, SourceTree, no_root
from brainfed.runtime.records import NEUTRAL_MODULES

UNCHANGING = frozenset((
    "abc", "collections", "contextlib", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools",
    "itertools", "lazy_loader", "math", "pathlib", "re", "string", "struct", "types", "typing",
    "logging.getLogger", "neutral", "numpy.dtype", "numpy.finfo", "numpy.iinfo", "pydantic.BaseModel",
    "torch.autograd.Function", "torch.device", "torch.nn.Module", "torch.no_grad",
))  # fmt: skip
"""Libraries, functions and classes: a call, or a subclass, while a module is imported changes nothing for others."""
UNCHANGING_METHODS = frozenset((
    "count", "deleter", "encode", "format", "fromkeys", "get", "getter", "index", "items", "join", "keys", "lower",
    "maketrans", "replace", "resolve", "setter", "split", "splitlines", "strip", "to_bytes", "upper", "values",
    "with_name", "with_suffix",
))  # fmt: skip
CHANGING_BUILTINS = frozenset(
    ("__import__", "breakpoint", "delattr", "eval", "exec", "input", "next", "open", "print", "setattr")
)
STANDARD = sys.stdlib_module_names - {"__future__"}
OF_A_PLACE = frozenset({"__file__", "__name__", "__package__", "__path__", "__spec__", "__loader__", "__cached__"})
DIGEST_LENGTH = 16
NOTHING = Definition((), "", (), (), (), (), (), ())


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
        # Parsed files are no garbage, and looking through all of them takes as long as the rest.
        enabled = gc.isenabled()
        gc.disable()
        try:
            tree.finished[key] = _links(tree, tree.searched(roots), frozenset(exclude)).digest(roots)
        finally:
            if enabled:
                gc.enable()
    return tree.finished[key]


@lru_cache(maxsize=8)
def _links(tree: SourceTree, searched: tuple[Place, ...], exclude: frozenset[str]) -> "Links":
    return Links(tree, searched, exclude)


@dataclass(eq=False)
class _Node:
    """A definition, all that a module does when it is imported, or a module as a whole.

    Attributes:
        key: the digest of its meaning, alone.
        link: adds its edges, writes its line, and returns further nodes that it leads to.
        edges: a label, and what it stands for: nodes, or the names of what is outside.
        line: the line that stands for it in a digest; empty: none.
        next: all nodes that it leads to; None: it is not linked yet.
    """

    module: Module
    key: str
    link: "Callable[[_Node], list[_Node]]"
    definition: Definition = NOTHING
    edges: "list[tuple[str, tuple[Target, ...]]]" = field(default_factory=list)
    line: str = ""
    next: "tuple[_Node, ...] | None" = None


Target = _Node | str
Targets = dict[Target, None]
Seen = frozenset[tuple[Module, tuple[str, ...]]]


class Links:
    """The definitions of a tree, each with those that it mentions, as far as the roots of a digest reach.

    Args:
        tree: of the files.
        searched: folders in which absolute imports are looked up.
        exclude: see `code_digest`.
    """

    def __init__(self, tree: SourceTree, searched: tuple[Place, ...], exclude: frozenset[str]) -> None:
        self.tree = tree
        self.searched = searched
        self.exclude = exclude
        self.asked: list[_Node] = []
        self.is_neutral = cache(lambda module: _is_among(module, exclude))
        self.node = cache(self._node)
        self.whole = cache(self._whole)
        self.body = cache(self._body)
        self.bindings = cache(self._bindings)
        self.effects = cache(self._effects)
        self.steps = cache(self._steps)
        self.resolved = cache(self._resolved)

    def digest(self, roots: Sequence[Path | str]) -> str:
        """The digest of roots, see `code_digest`."""
        ordered = sorted(roots, key=str)
        starts = [self._root(root) for root in ordered]
        reached = self._reached([node for start in starts for node in start])
        if any(SUBCLASSES in node.definition.marks for node in reached):
            everything = (node for module in {node.module for node in reached} for node in self._all(module))
            reached = self._reached([*reached, *everything])
        lined = [node for node in reached if node.line]
        count = Counter(node.key for node in lined)
        equal = {node: f"{node.key} {'.'.join(node.module)}" for node in lined if count[node.key] > 1}

        def named(targets: Iterable[Target]) -> list[str]:
            return [equal[each] if isinstance(each, _Node) and each in equal else _key(each) for each in targets]

        lines = [*(node.line for node in lined), *(f"equal {name}" for name in equal.values())]
        lines += [f"root {sorted(named(node for node in start if node.line))}" for start in starts]
        for node in (each for each in reached if not equal.keys().isdisjoint(each.next or ())):
            of_equal = [edge for edge in node.edges if not equal.keys().isdisjoint(edge[1])]
            lines += [f"{named([node])} {label} {named(targets)}" for label, targets in of_equal]
        seen: set[Module] = set()
        modules = map(self.tree.root, ordered)
        order = [step for module in modules if module not in seen for step in self._order(module, seen)]
        text = "\n".join((*sorted(lines), *order))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]

    def reached(self, roots: Sequence[Path | str]) -> set[str]:
        """The definitions that roots lead to, as `module:name`."""
        nodes = self._reached([node for root in roots for node in self._root(root)])
        return {f"{'.'.join(each.module)}:{name}" for each in nodes for name in each.definition.names}

    def _root(self, root: Path | str) -> list[_Node]:
        module = self.tree.root(root)
        name = "" if isinstance(root, Path) else root.partition(":")[2]
        if not name:
            return self._all(module)
        targets = self.attribute(module, tuple(name.split(".")), or_whole=False)
        if not targets:
            raise no_root(root, self.tree.folder)
        return [*(each for each in targets if isinstance(each, _Node)), self.body(module)]

    def _all(self, module: Module) -> list[_Node]:
        places = range(len(self.tree.source(module).definitions))
        return [*(self.node(module, place) for place in places), self.body(module)]

    def _reached(self, waiting: list[_Node]) -> set[_Node]:
        reached = set(waiting)
        while waiting:
            node = waiting.pop()
            if node.next is None:
                further = node.link(node)
                targets = (each for _, targets in node.edges for each in targets if isinstance(each, _Node))
                node.next = tuple(dict.fromkeys((*targets, *further)))
            for other in node.next:
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        return reached

    # Nodes.

    def _node(self, module: Module, place: int) -> _Node:
        definition = self.tree.source(module).definitions[place]
        return _Node(module, definition.meaning, lambda node: self._link(node, place, definition), definition)

    def _link(self, node: _Node, place: int, definition: Definition) -> list[_Node]:
        module, body = node.module, self.tree.source(node.module).body
        for mention in definition.mentions:
            targets = self.resolved(module, mention)
            if definition.imports:
                targets = tuple(dict.fromkeys((*self._late(module, definition, mention), *targets)))
            if len(targets) > 1 and place in body:
                # Of several values, a statement of the top level sees the last one before it.
                values = self.bindings(module).get(mention.partition(".")[0], ())
                mention += f" {sum(step < body.index(place) for step, _ in values)}" if len(values) > 1 else ""
            if targets:
                node.edges.append((mention, targets))
        further = [self.body(module)]
        for each in definition.imports:
            further.extend(map(self.body, self._running(module, each)))
            node.edges.append((f"import {each.bound}", (self._origin(module, each),)))
        if WHOLE in definition.marks or any(
            isinstance(each, str) and each.startswith("sys.modules") for _, targets in node.edges for each in targets
        ):
            node.edges.append(("all names", (self.whole(module),)))
        node.line = _line(node, sum(effect < place for effect in self.effects(module)))
        return further

    def _whole(self, module: Module) -> _Node:
        """A module that is used as a value: any of its names may be asked for."""
        meanings = sorted(each.meaning for each in self.tree.source(module).definitions)
        return _Node(module, f"whole {meanings}", self._link_whole)

    def _link_whole(self, node: _Node) -> list[_Node]:
        module, source = node.module, self.tree.source(node.module)
        targets: Targets = dict.fromkeys(self._all(module))
        for each in (*source.imports, *self.tree.offers(module)):
            targets |= self.follow(module, each, ())
        for other in {*self.tree.modules, *self.tree.folders} if module in self.tree.folders else ():
            if other[:-1] == module:
                targets |= self.attribute(other, ())
        node.edges.append(("all", tuple(sorted(targets, key=_key))))
        node.line = _line(node)
        return []

    def _body(self, module: Module) -> _Node:
        """What a module does when it is imported."""
        steps = [_key(step) for step in self.steps(module) if not isinstance(step, tuple)]
        return _Node(module, f"body {steps}", self._link_body)

    def _link_body(self, node: _Node) -> list[_Node]:
        steps = self.steps(node.module)
        if runs := tuple(step for step in steps if not isinstance(step, tuple)):
            node.edges.append(("runs", runs))
            node.line = _line(node)
        return [self.body(step) for step in steps if isinstance(step, tuple)]

    # What runs when a module is imported.

    def _steps(self, module: Module) -> "tuple[Target | Module, ...]":
        """What a module does when it is imported: modules that it imports, and what may change more than itself.

        A library that no statement mentions is imported for the effect of the import.
        """
        source, effects = self.tree.source(module), self.effects(module)
        mentioned = {name.partition(".")[0] for each in source.definitions for name in each.mentions}
        steps: list[Target | Module] = [each for each in self.tree.around(module)[:-1] if not self.is_neutral(each)]
        for item in source.body:
            if item >= 0:
                steps += [self.node(module, item)] if item in effects else []
                continue
            each = source.imports[-1 - item]
            steps += self._running(module, each)
            if each.bound == "*":
                steps += self.follow(module, each, ())
            elif not (each.level or each.bound in mentioned or each.module.partition(".")[0] in STANDARD):
                inside = self.tree.named(module, 0, each.module, self.searched)
                steps += [] if inside else [f"{each.runs} {each.name}"]
        return tuple(steps)

    def _order(self, module: Module, seen: set[Module]) -> Iterator[str]:
        """What runs while a module is imported, in its order, but for modules that were imported before."""
        seen.add(module)
        for step in self.steps(module):
            if not isinstance(step, tuple):
                yield _key(step)
            elif step not in seen:
                yield from self._order(step, seen)

    def _running(self, module: Module, each: Import) -> list[Module]:
        return [other for other in self.tree.runs(module, each, self.searched) if not self.is_neutral(other)]

    def _effects(self, module: Module) -> tuple[int, ...]:
        """The places of the definitions that may change what others read while the module is imported."""
        places = (item for item in self.tree.source(module).body if item >= 0)
        return tuple(place for place in places if self._acts(self.node(module, place)))

    def _acts(self, node: _Node) -> bool:
        family = self._family(node)
        hooked = family is None or any(HOOKED in above.definition.marks for above in family[1:])
        return hooked or any(self._changes(node.module, call) for call in node.definition.calls)

    def _changes(self, module: Module, call: str) -> bool:
        """Whether a call while a module is imported may change what others read."""
        name, _, method = call.rpartition(".")
        if name and method in UNCHANGING_METHODS:
            return False
        if call.partition(".")[0] == UNKNOWN:
            return True
        targets = self.resolved(module, call)
        if not targets:
            return bool(name) or call in CHANGING_BUILTINS
        return any(
            not _is_unchanging(each) if isinstance(each, str) else method != SETTING and self._builds(each, name)
            for each in targets
        )

    def _builds(self, target: _Node, name: str) -> bool:
        """Whether the call of a definition may change more than an object of its own that it builds."""
        if name or CLASS not in target.definition.marks:
            return True
        if target in self.asked:
            return False  # It builds objects of its own class; the first call asks for the rest.
        self.asked.append(target)
        family = self._family(target)
        changes = family is None or any(
            self._changes(above.module, call)
            for above in family
            for call in (*above.definition.calls, *above.definition.builds)
        )
        self.asked.pop()
        return changes

    def _family(self, node: _Node) -> list[_Node] | None:
        """A class with those above it; None if one of a library is among them that may change something."""
        family = [node]
        for each in family:
            for above in (one for base in each.definition.bases for one in self.resolved(each.module, base)):
                if isinstance(above, _Node):
                    family += [above] if above not in family else []
                elif not _is_unchanging(above):
                    return None
        return family

    def _origin(self, module: Module, each: Import) -> str:
        """What an import within a definition tries: a name of a library, or whether one of our own is there."""
        inside = self.tree.named(module, each.level, each.module, self.searched)
        if not inside:
            return f"{'.' * each.level}{each.module} {each.name}"
        names = (each.name,) if each.name.strip("*") else ()
        return "here" if any(self.attribute(other, names, or_whole=False) for other in inside) else "missing"

    # Names.

    def _bindings(self, module: Module) -> dict[str, list[tuple[int, int | Import]]]:
        """Name -> all that gives it a value, in order, each with its step of the module's body.

        What is there for type checkers alone does not run, and comes first.
        """
        source = self.tree.source(module)
        ran = set(source.body)
        unrun = ((-1, item) for item in range(-len(source.imports), len(source.definitions)) if item not in ran)
        bindings: dict[str, list[tuple[int, int | Import]]] = {}
        for step, item in (*unrun, *enumerate(source.body)):
            each = source.imports[-1 - item] if item < 0 else item
            for name in (each.bound,) if isinstance(each, Import) else source.definitions[each].names:
                bindings.setdefault(name, []).append((step, each))
        return bindings

    def _resolved(self, module: Module, mention: str) -> tuple[Target, ...]:
        """What a name stands for in a module, with attributes; empty: a name of Python's own."""
        return tuple(self.own(module, tuple(mention.split("."))))

    def own(self, module: Module, names: tuple[str, ...], seen: Seen = frozenset()) -> Targets:
        """What a module's own name stands for, with attributes."""
        targets: Targets = {}
        if names[0] in OF_A_PLACE:
            targets[f"{names[0]} {'/'.join(module)}"] = None
        elif names[0] == "__doc__":
            targets[self.tree.source(module).doc] = None
        for _, each in self.bindings(module).get(names[0], ()):
            if isinstance(each, Import):
                targets |= self.follow(module, each, names[1:], seen)
            elif f"{'.'.join(module)}:{names[0]}" in self.exclude:
                targets["neutral"] = None
            else:
                targets[self.node(module, each)] = None
        if module not in self.tree.folders:
            return targets
        for offered in self.tree.offers(module):
            if offered.bound == names[0]:
                targets |= self.follow(module, offered, names[1:], seen)
        if self.tree.exists((*module, names[0])):
            targets |= self.attribute((*module, names[0]), names[1:], seen)
        return targets

    def attribute(
        self, module: Module, names: tuple[str, ...], seen: Seen = frozenset(), *, or_whole: bool = True
    ) -> Targets:
        """What an attribute of a module stands for; without one, the module as a whole."""
        if self.is_neutral(module):
            return {"neutral": None}
        if (module, names) in seen:
            return {}
        seen = seen | {(module, names)}
        if not names:
            return {self.whole(module): None}
        targets = self.own(module, names, seen)
        for _, star in self.bindings(module).get("*", ()):
            if isinstance(star, Import):
                for other in self.tree.named(module, star.level, star.module, self.searched):
                    targets |= self.attribute(other, names, seen, or_whole=False)
        if not targets and (or_whole or "__getattr__" in self.bindings(module)):
            return {self.whole(module): None}
        return targets

    def follow(self, module: Module, each: Import, names: tuple[str, ...], seen: Seen = frozenset()) -> Targets:
        """What an import binds, with attributes of it."""
        targets: Targets = {}
        names = (each.name, *names) if each.name and each.name != "*" else names
        inside = self.tree.named(module, each.level, each.module, self.searched)
        for other in inside:
            targets |= self.attribute(other, names, seen)
        return targets if inside else {".".join(("." * each.level + each.module, *names)): None}

    def _late(self, module: Module, definition: Definition, mention: str) -> Targets:
        """What a name stands for that a definition imports itself."""
        targets: Targets = {}
        for each in definition.imports:
            if mention == each.bound or mention.startswith(f"{each.bound}."):
                targets |= self.follow(module, each, tuple(mention.removeprefix(each.bound).split(".")[1:]))
        return targets


def _key(target: Target) -> str:
    return target if isinstance(target, str) else target.key


def _line(node: _Node, before: int = 0) -> str:
    edges = "\n".join(sorted(f"{label} {' '.join(map(_key, targets))}" for label, targets in node.edges))
    return hashlib.sha256(f"{node.key} {before}\n{edges}".encode()).hexdigest()


def _is_among(parts: Sequence[str], names: Collection[str]) -> bool:
    """Whether a dotted name, or one of the packages around it, is among names."""
    return any(".".join(parts[:length]) in names for length in range(1, len(parts) + 1))


def _is_unchanging(name: str) -> bool:
    return _is_among(name.split("."), UNCHANGING)
