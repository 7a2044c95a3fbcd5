"""The definitions of a tree, each with those that it mentions, as far as the roots of a digest reach."""

import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path

from brainfed.digests._definitions import (
    BUILDING,
    CLASS,
    EFFECT,
    HOOKED,
    SETTING,
    SUBCLASSES,
    UNKNOWN,
    WHOLE,
    Definition,
    Import,
)
from brainfed.digests._source_tree import Module, Place, SourceTree, no_root
from brainfed.runtime.records import is_among

UNCHANGING = frozenset(
    (
        *("abc", "collections", "contextlib", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools"),
        *("itertools", "lazy_loader", "math", "pathlib", "re", "string", "struct", "types", "typing"),
        *("logging.getLogger", "numpy.dtype", "numpy.finfo", "numpy.iinfo", "pydantic.BaseModel"),
        *("torch.autograd.Function", "torch.device", "torch.nn.Module", "torch.no_grad"),
    )
)
"""Libraries, functions and classes: a call, or a subclass, while a module is imported changes nothing for others."""
UNCHANGING_METHODS = frozenset(
    (
        *("count", "encode", "format", "fromkeys", "get", "index", "items", "join", "keys", "lower", "maketrans"),
        *("replace", "resolve", "split", "splitlines", "strip", "to_bytes", "upper", "values", "with_name"),
        *("with_suffix", "getter", "setter", "deleter"),
    )
)
CHANGING_BUILTINS = frozenset(
    ("__import__", "breakpoint", "delattr", "eval", "exec", "input", "next", "open", "print", "setattr")
)
STANDARD = sys.stdlib_module_names - {"__future__"}
OF_A_PLACE = frozenset({"__file__", "__name__", "__package__", "__path__", "__spec__", "__loader__", "__cached__"})
DIGEST_LENGTH = 16


class _Node:
    """A definition, all that a module does when it is imported, or a module as a whole.

    Attributes:
        key: the digest of its meaning, alone.
        edges: a label, and what it stands for: nodes, or the names of what is outside.
        further: other nodes that it leads to.
        line: the line that stands for it in a digest; empty: none.
    """

    __slots__ = ("definition", "edges", "further", "key", "line", "link", "module", "next")

    def __init__(
        self, module: Module, key: str, link: Callable[["_Node"], None], definition: Definition | None = None
    ) -> None:
        self.module, self.key, self.link, self.definition = module, key, link, definition
        self.edges: list[tuple[str, tuple[_Node | str, ...]]] = []
        self.further: list[_Node] = []
        self.line = ""
        self.next: tuple[_Node, ...] | None = None


Targets = dict["_Node | str", None]
Seen = frozenset[tuple[Module, tuple[str, ...]]]


class Links:
    """The definitions of a tree, each with those that it mentions.

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
        self.is_neutral = cache(lambda module: is_among(".".join(module), exclude))
        self.node = cache(self._node)
        self.whole = cache(self._whole)
        self.body = cache(self._body)
        self.bindings = cache(self._bindings)
        self.effects = cache(self._effects)
        self.steps = cache(self._steps)
        self.unnamed = cache(self._unnamed)
        self.resolved = cache(self._resolved)

    def digest(self, roots: Sequence[Path | str]) -> str:
        """The digest of roots, see `code_digest`."""
        starts = [self._root(root) for root in sorted(roots, key=str)]
        reached = self._reached([node for start in starts for node in start])
        if any(node.definition and SUBCLASSES in node.definition.marks for node in reached):
            everything = (node for module in {node.module for node in reached} for node in self._all(module))
            reached = self._reached([*reached, *everything])
        count = Counter(node.key for node in reached if node.line)
        equal: set[_Node | str] = {node for node in reached if node.line and count[node.key] > 1}
        lines = [node.line for node in reached if node.line]
        lines += [f"root {sorted(_named(node, equal) for node in start if node.line)}" for start in starts]
        if equal:
            lines += [f"equal {_named(node, equal)}" for node in equal]
            for node in reached:
                for label, targets in () if equal.isdisjoint(node.next or ()) else node.edges:
                    if not equal.isdisjoint(targets):
                        lines.append(f"{_named(node, equal)} {label} {[_named(target, equal) for target in targets]}")
        order = self._order(self.tree.root(root) for root in sorted(roots, key=str))
        text = "\n".join((*sorted(lines), *order))
        return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]

    def reached(self, roots: Sequence[Path | str]) -> set[str]:
        """The definitions that roots lead to, as `module:name`."""
        nodes = self._reached([node for root in roots for node in self._root(root)])
        return {
            f"{'.'.join(node.module)}:{name}" for node in nodes if node.definition for name in node.definition.names
        }

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
        return [*(self.node(module, place) for place in range(len(self.tree.source(module).definitions))),
                self.body(module)]  # fmt: skip

    def _reached(self, waiting: list[_Node]) -> set[_Node]:
        reached = set(waiting)
        while waiting:
            node = waiting.pop()
            for other in node.next if node.next is not None else self._linked(node):
                if other not in reached:
                    reached.add(other)
                    waiting.append(other)
        return reached

    def _linked(self, node: _Node) -> tuple[_Node, ...]:
        """The nodes that a node leads to; the first call also writes its line."""
        node.link(node)
        targets = (each for _, targets in node.edges for each in targets if isinstance(each, _Node))
        node.next = tuple(dict.fromkeys((*targets, *node.further)))
        return node.next

    # Nodes.

    def _node(self, module: Module, place: int) -> _Node:
        definition = self.tree.source(module).definitions[place]
        return _Node(module, definition.meaning, partial(self._link, place, definition), definition)

    def _link(self, place: int, definition: Definition, node: _Node) -> None:
        module = node.module
        for mention in definition.mentions:
            if targets := self.resolved(module, mention):
                values = self.bindings(module).get(mention.partition(".")[0], ())
                # Of several values, a statement of the top level sees the last one before it.
                before = f" {sum(at < place for at, _ in values)}" if len(targets) > 1 and len(values) > 1 else ""
                node.edges.append((f"{mention}{before}", targets))
        for mention in definition.late:
            targets = tuple(self._late(module, definition, mention))
            node.edges.append((f"late {mention}", targets))
        node.further.append(self.body(module))
        for each in definition.imports:
            node.further.extend(map(self.body, self._running(module, each)))
            node.edges.append((f"import {each.bound}", (self._origin(module, each),)))
        if WHOLE in definition.marks or any(
            isinstance(each, str) and each.startswith("sys.modules") for _, targets in node.edges for each in targets
        ):
            node.edges.append(("all names", (self.whole(module),)))
        node.line = _line(node, sum(effect < place for effect in self.effects(module)))

    def _whole(self, module: Module) -> _Node:
        """A module that is used as a value: any of its names may be asked for."""
        meanings = sorted(each.meaning for each in self.tree.source(module).definitions)
        return _Node(module, f"whole {meanings}", self._link_whole)

    def _link_whole(self, node: _Node) -> None:
        module, source = node.module, self.tree.source(node.module)
        targets: Targets = dict.fromkeys(self._all(module))
        for each in (*source.imports, *self.tree.offers(module)):
            targets |= self.follow(module, each, ())
        if self.tree.is_package(module):
            below = (other for other in self.tree.modules if len(other) == len(module) + 1 and other[:-1] == module)
            folders = (other for other in self.tree.folders if other[:-1] == module and other not in self.tree.modules)
            for other in (*below, *folders):
                targets |= self.attribute(other, ())
        node.edges.append(("all", tuple(sorted(targets, key=_key))))
        node.line = _line(node)

    def _body(self, module: Module) -> _Node:
        """What a module does when it is imported."""
        source = self.tree.source(module)
        meanings = [source.definitions[place].meaning for place in self.effects(module)]
        return _Node(module, f"body {meanings}", self._link_body)

    def _link_body(self, node: _Node) -> None:
        module, source = node.module, self.tree.source(node.module)
        for package in self.tree.around(module)[:-1]:
            if not self.is_neutral(package):
                node.further.append(self.body(package))
        stars: Targets = {}
        for item in source.body:
            if item < 0:
                each = source.imports[-1 - item]
                node.further.extend(map(self.body, self._running(module, each)))
                if each.bound == "*":
                    stars |= self.follow(module, each, ())
        if unnamed := self.unnamed(module):
            node.edges.append(("imports", tuple(unnamed.values())))
        if effects := self.effects(module):
            node.edges.append(("runs", tuple(self.node(module, place) for place in effects)))
        if stars:
            node.edges.append(("*", tuple(stars)))
        node.line = _line(node) if node.edges else ""

    # What runs when a module is imported.

    def _running(self, module: Module, each: Import) -> list[Module]:
        return [other for other in self.tree.runs(module, each, self.searched) if not self.is_neutral(other)]

    def _effects(self, module: Module) -> tuple[int, ...]:
        """The places of the definitions that may change what others read while the module is imported."""
        source = self.tree.source(module)
        return tuple(item for item in source.body if item >= 0 and self._acts(module, source.definitions[item]))

    def _unnamed(self, module: Module) -> dict[int, str]:
        """Libraries that a module imports for the effect of the import: none of its statements mentions them."""
        source = self.tree.source(module)
        mentioned = {name.partition(".")[0] for each in source.definitions for name in each.mentions}
        imports = {}
        for item in source.body:
            each = source.imports[-1 - item] if item < 0 else None
            if each is None or each.level or each.bound in mentioned or each.bound == "*":
                continue
            library = each.module.partition(".")[0] not in STANDARD
            if library and not self.tree.named(module, 0, each.module, self.searched):
                imports[item] = f"{each.runs} {each.name}"
        return imports

    def _acts(self, module: Module, definition: Definition) -> bool:
        return (
            EFFECT in definition.marks
            or any(not self._is_unchanging(module, call) for call in definition.calls)
            or any(HOOKED in above.marks for base in definition.bases for _, above in self._classes(module, base))
            or bool(self._foreign(module, definition.bases))
        )

    def _is_unchanging(self, module: Module, call: str) -> bool:
        """Whether the call of a function while a module is imported changes nothing that others read."""
        name, _, method = call.rpartition(".")
        if name and method in UNCHANGING_METHODS:
            return True
        if call.partition(".")[0] == UNKNOWN:
            return False
        targets = self.resolved(module, call)
        if not targets:
            return not name and call not in CHANGING_BUILTINS
        return all(self._builds_or_is_unchanging(module, call, each) for each in targets)

    def _builds_or_is_unchanging(self, module: Module, call: str, target: "_Node | str") -> bool:
        if isinstance(target, str):
            return _is_unchanging(target)
        if call.rpartition(".")[2] == SETTING:
            return True
        if "." in call or target.definition is None or CLASS not in target.definition.marks:
            return False
        if target in self.asked:
            return True  # It builds objects of its own class; the first call asks for the rest.
        self.asked.append(target)
        unchanging = all(
            BUILDING not in each.marks
            and all(self._is_unchanging(there, inner) for inner in each.builds)
            and not self._foreign(there, each.bases)
            for there, each in self._classes(module, call)
        )
        self.asked.pop()
        return unchanging

    def _classes(self, module: Module, name: str) -> dict[tuple[Module, Definition], None]:
        """A class of our own with those above it, each with its module."""
        classes: dict[tuple[Module, Definition], None] = {}
        waiting = [(module, name)]
        while waiting:
            for each in self.resolved(*waiting.pop()):
                if isinstance(each, _Node) and each.definition and (each.module, each.definition) not in classes:
                    classes[each.module, each.definition] = None
                    waiting.extend((each.module, base) for base in each.definition.bases)
        return classes

    def _foreign(self, module: Module, bases: Iterable[str]) -> list[str]:
        """The bases that are classes of libraries of which a subclass may change something."""
        return [
            base
            for base in bases
            if any(isinstance(each, str) and not _is_unchanging(each) for each in self.resolved(module, base))
        ]

    def _order(self, modules: Iterable[Module]) -> list[str]:
        """What runs while these modules are imported, in its order."""
        steps: list[str] = []
        seen: set[Module] = set()

        def run(module: Module) -> None:
            seen.add(module)
            for step in self.steps(module):
                if isinstance(step, str):
                    steps.append(step)
                elif step not in seen:
                    run(step)

        for module in modules:
            if module not in seen:
                run(module)
        return steps

    def _steps(self, module: Module) -> tuple[str | Module, ...]:
        """What a module does when it is imported: modules that it imports, and what may change more than itself."""
        source, effects, unnamed = self.tree.source(module), set(self.effects(module)), self.unnamed(module)
        steps: list[str | Module] = [each for each in self.tree.around(module)[:-1] if not self.is_neutral(each)]
        for item in source.body:
            if item in unnamed:
                steps.append(unnamed[item])
            elif item < 0:
                steps.extend(self._running(module, source.imports[-1 - item]))
            elif item in effects:
                steps.append(source.definitions[item].meaning)
        return tuple(steps)

    def _origin(self, module: Module, each: Import) -> str:
        """What an import within a definition tries: a name of a library, or whether one of our own is there."""
        inside = self.tree.named(module, each.level, each.module, self.searched)
        if not inside:
            return f"{'.' * each.level}{each.module} {each.name}"
        names = (each.name,) if each.name.strip("*") else ()
        return "here" if any(self.attribute(other, names, or_whole=False) for other in inside) else "missing"

    # Names.

    def _bindings(self, module: Module) -> dict[str, list[tuple[int, int | Import]]]:
        """Name -> all that gives it a value, in order, each with the place of the next definition."""
        bindings: dict[str, list[tuple[int, int | Import]]] = {}
        source = self.tree.source(module)
        after = len(source.definitions)
        items: list[tuple[int, int | Import]] = []
        for item in reversed(source.body):
            if item < 0:
                items.append((after, source.imports[-1 - item]))
            else:
                after = item
                items.append((item, item))
        # What is there for type checkers alone does not run.
        ran = set(source.body)
        items += [(-1, place) for place in range(len(source.definitions)) if place not in ran]
        items += [(-1, each) for place, each in enumerate(source.imports) if -1 - place not in ran]
        for at, each in reversed(items):
            for name in (each.bound,) if isinstance(each, Import) else source.definitions[each].names:
                bindings.setdefault(name, []).append((at, each))
        return bindings

    def _resolved(self, module: Module, mention: str) -> "tuple[_Node | str, ...]":
        """What a name stands for in a module, with attributes; empty: a name of Python's own."""
        name = mention.partition(".")[0]
        if name in OF_A_PLACE:
            return (f"{name} {'/'.join(module)}",)
        if name == "__doc__":
            return (self.tree.source(module).doc,)
        return tuple(self.own(module, tuple(mention.split("."))))

    def own(self, module: Module, names: tuple[str, ...], seen: Seen = frozenset()) -> Targets:
        """What a module's own name stands for, with attributes."""
        targets: Targets = {}
        for _, each in self.bindings(module).get(names[0], ()):
            if isinstance(each, Import):
                targets |= self.follow(module, each, names[1:], seen)
            elif f"{'.'.join(module)}:{names[0]}" in self.exclude:
                targets["neutral"] = None
            else:
                targets[self.node(module, each)] = None
        if not self.tree.is_package(module):
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
        if not targets and names[0] in OF_A_PLACE:
            return {f"{names[0]} {'/'.join(module)}": None}
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
                names = tuple(mention.removeprefix(each.bound).split(".")[1:])
                targets |= self.follow(module, each, names)
        return targets


def _key(target: "_Node | str") -> str:
    return target if isinstance(target, str) else target.key


def _named(target: "_Node | str", equal: set[_Node | str]) -> str:
    """A node's key; with its module if another node has the same key."""
    if isinstance(target, str) or target not in equal:
        return _key(target)
    return f"{target.key} {'.'.join(target.module)}"


def _line(node: _Node, before: int = 0) -> str:
    edges = "\n".join(sorted(f"{label} {' '.join(map(_key, targets))}" for label, targets in node.edges))
    return hashlib.sha256(f"{node.key} {before}\n{edges}".encode()).hexdigest()


def _is_unchanging(name: str) -> bool:
    parts = name.split(".")
    return name == "neutral" or any(".".join(parts[:length]) in UNCHANGING for length in range(1, len(parts) + 1))
