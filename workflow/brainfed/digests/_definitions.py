"""A Python file as its definitions: what each one means, and which names it mentions.

A definition is a statement of a module's top level: a function, a class, an assignment, or a statement with effects (an
expression, `if`, `for`, `with`, `try`, `del`). Imports are no definitions: they say where the names come from. The
meaning is the parsed statement without docstrings, comments and line numbers; an import within it counts by the names
that it binds. So a moved module changes no meaning.
"""

import ast
import hashlib
from typing import NamedTuple

SETTING = "setting"
"""The function that declares a setting (`runtime._settings`)."""
WHOLE, SUBCLASSES, HOOKED, BUILDING, CLASS, EFFECT = "whole", "subclasses", "hooked", "building", "class", "effect"
"""Marks of a definition: it may mention any name of its module; it asks for subclasses; it is a class that acts when a
subclass is defined, or that changes more than the object when one is built; it is a class; it runs when its module is
imported."""
UNKNOWN = "?"
"""Stands for the object whose method is called, or for a function that is called, where it has no name."""


class Import(NamedTuple):
    """One name that an import binds.

    Attributes:
        bound: the name; `*`: all names of the module.
        level: the number of dots.
        module: the module that is bound, or in which the name is.
        name: the name in that module; empty: the module itself.
        runs: the module that is imported: of `import a.b`, which binds `a`, it is `a.b`.
    """

    bound: str
    level: int
    module: str
    name: str
    runs: str


class Definition(NamedTuple):
    """A statement of a module's top level.

    Attributes:
        names: those that it binds.
        meaning: digest of its code.
        mentions: the names that it mentions, each with the attributes that follow it: `np.linalg.norm`.
        late: likewise, of names that one of its own imports binds.
        imports: those within it: of a function, they run when it is called.
        calls: what it calls while its module is imported.
        builds: what it calls, as a class, while an object is built.
        bases: of its class.
        marks: see above.
    """

    names: tuple[str, ...]
    meaning: str
    mentions: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    imports: tuple[Import, ...] = ()
    calls: tuple[str, ...] = ()
    builds: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()


class Source(NamedTuple):
    """A parsed file.

    Attributes:
        definitions: in their order.
        imports: those outside functions, in their order.
        body: what runs when the module is imported, in its order: places of definitions, and of imports as -1 - place.
        doc: digest of the module's docstring.
    """

    definitions: tuple[Definition, ...]
    imports: tuple[Import, ...]
    body: tuple[int, ...]
    doc: str

    @property
    def empty(self) -> bool:
        """Whether it has no code."""
        return not self.definitions and not self.imports


def imports_of(statement: ast.Import | ast.ImportFrom) -> list[Import]:
    """What an import statement binds."""
    if isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        return [Import(a.asname or a.name, statement.level, module, a.name, module) for a in statement.names]
    return [
        Import(a.asname, 0, a.name, "", a.name) if a.asname else Import(*_first(a.name), "", a.name)
        for a in statement.names
    ]


def _first(name: str) -> tuple[str, int, str]:
    return name.partition(".")[0], 0, name.partition(".")[0]


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string: the docstring of a module, a class, a function or a field."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def last_name(node: ast.expr) -> str:
    """A name, or the last attribute of an expression; empty: another expression."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def chain_of(node: ast.expr) -> str:
    """A name with its attributes, as `a.b.c`; empty: another expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(attributes))) if isinstance(node, ast.Name) else ""


def digest_of(content: bytes) -> str:
    """The SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()
