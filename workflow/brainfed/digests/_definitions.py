"""A Python file as its definitions: what each one means, and which names it mentions.

A definition is a statement of a module's top level: a function, a class, an assignment, or a statement with effects (an
expression, `if`, `for`, `with`, `try`, `del`). Imports are no definitions: they say where the names come from. The
meaning is the parsed statement without docstrings, comments and line numbers; an import within it counts by the names
that it binds. So a moved module changes no meaning.
"""

import ast
import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from brainfed.runtime import UserError

SETTING = "setting"
"""The function that declares a setting (`runtime._settings`)."""
WHOLE, SUBCLASSES, HOOKED, CLASS = "whole", "subclasses", "hooked", "class"
"""Marks of a definition: it may mention any name of its module; it asks for subclasses; it is a class that acts when a
subclass is defined; it is a class."""
UNKNOWN = "?"
"""Stands for the object whose method is called, or for a function that is called, where it has no name; and for any
other statement that may change what others read."""

# Of `runtime.setting(...)` only the default reaches a job, not its description and bounds.
_VALUES_OF_A_SETTING = frozenset({"default", "factory"})
_CALLING = frozenset((
    "accumulate", "dropwhile", "filter", "filterfalse", "groupby", "iter", "map", "max", "min", "reduce", "sorted",
    "starmap", "sub", "subn", "takewhile",
))  # fmt: skip
"""They call the functions that they are given."""
_DEFINING = frozenset({"FunctionDef", "AsyncFunctionDef", "ClassDef", "Assign", "AnnAssign", "TypeAlias"})
"""Statements that only define names, unless they write parts of objects."""
_ACTING_HOOKS = frozenset({"__init_subclass__", "__set_name__", "__class_getitem__"})
_BUILDERS = frozenset({"__init__", "__new__", "__post_init__", "__set_name__"})


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
        imports: those within it: of a function, they run when it is called.
        calls: what it calls while its module is imported.
        builds: what it calls, as a class, while an object is built.
        bases: of its class.
        marks: see above.
    """

    names: Sequence[str]
    meaning: str
    mentions: Sequence[str]
    imports: Sequence[Import]
    calls: Sequence[str]
    builds: Sequence[str]
    bases: Sequence[str]
    marks: Sequence[str]


class Source(NamedTuple):
    """A parsed file.

    Attributes:
        definitions: in their order.
        imports: those outside functions, in their order.
        body: what runs when the module is imported, in its order: places of definitions, and of imports as -1 - place.
        doc: digest of the module's docstring.
    """

    definitions: Sequence[Definition]
    imports: Sequence[Import]
    body: Sequence[int]
    doc: str


@lru_cache(maxsize=4096)
def source_of(content: bytes, path: Path) -> Source:
    """The definitions and imports of a Python file's content.

    Raises:
        UserError: it is not valid Python.
    """
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError) as error:
        raise UserError(f"{path}: not valid Python ({error}); fix the file and run again.") from error
    definitions: list[Definition] = []
    imports: list[Import] = []
    body: list[int] = []
    for statement, runs in _top_level(tree.body):
        reader = _Reader(statement)
        if runs:
            body.extend(-1 - place for place in range(len(imports), len(imports) + len(reader.at_top)))
        imports.extend(reader.at_top)
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            if runs:
                body.append(len(definitions))
            definitions.append(reader.definition())
    return Source(definitions, imports, body, digest_of((ast.get_docstring(tree) or "").encode()))


def digest_of(content: bytes) -> str:
    """The SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


def _top_level(statements: Sequence[ast.stmt], runs: bool = True) -> Iterator[tuple[ast.stmt, bool]]:
    """The statements of a module, each with whether it runs: those for type checkers do not."""
    for statement in statements:
        if isinstance(statement, ast.If) and _last_name(statement.test) == "TYPE_CHECKING":
            yield from _top_level(statement.body, runs=False)
            yield from _top_level(statement.orelse, runs)
        elif not _is_text(statement):
            yield statement, runs


class _Scope(NamedTuple):
    """Names that are bound and mentioned in a function, a class, a comprehension, or outside of these."""

    kind: str
    bound: set[str]
    mentions: set[str]


class _Reader(ast.NodeVisitor):
    """Reads one statement of a module's top level: writes its meaning, and notes the names as Python scopes them.

    The text is the same under every version of Python, unlike that of `ast.dump`. Versions add optional fields, and
    split the text around the values of an f-string in other places. So fields without a value are left out,
    neighbouring pieces of text are joined, and other characters than ASCII are escaped, as each version has its own
    list of those that can be printed.
    """

    def __init__(self, statement: ast.stmt) -> None:
        self.text: list[str] = []
        self.put = self.text.append
        self.scopes = [_Scope("statement", set(), set())]
        self.globals: set[str] = set()
        self.unhidden: set[str] = set()  # Mentioned, whatever the scopes around bind.
        self.at_top: list[Import] = []
        self.imports: list[Import] = []
        self.late: set[str] = set()
        self.calls: set[str] = set() if type(statement).__name__ in _DEFINING else {UNKNOWN}
        self.builds: set[str] = set()
        self.bases: list[str] = []
        self.marks: set[str] = {CLASS} if isinstance(statement, ast.ClassDef) else set()
        self.built = ""  # The first argument of the function that builds an object.
        self.functions = 0  # Those around that do not run while the module is imported.
        self.annotation = False
        self.block([statement])

    def definition(self) -> Definition:
        """The statement as a definition."""
        _, bound, mentions = self.scopes[0]
        return Definition(
            sorted(self.globals | bound),
            digest_of("".join(self.text).encode()),
            sorted(mentions | self.unhidden),
            [*self.at_top, *self.imports],
            sorted(self.calls),
            sorted(self.builds),
            self.bases,
            sorted(self.marks),
        )

    # What is written.

    def generic_visit(self, node: ast.AST, *names: str) -> None:
        """Write a node: its fields, or those of them that are named, as far as they have values."""
        self.put(f"{type(node).__name__}(")
        for name in names or _FIELDS[type(node)]:
            value = getattr(node, name, None)
            if value is None or value == []:
                continue
            self.put(f"{name}=")
            if name in ("annotation", "returns"):
                before, self.annotation = self.annotation, True
                self.write(value)
                self.annotation = before
            else:
                self.write(value)
        self.put(")")

    def write(self, value: Any) -> None:
        """Write the value of a field: a node, a list, a name, a number."""
        if isinstance(value, ast.AST):
            _VISITORS[type(value)](self, value)
        elif not isinstance(value, list):
            self.put(f"{value!a},")
        elif value and isinstance(value[0], ast.stmt):
            self.block(value)
        else:
            self.put("[")
            for each in value:
                self.write(each)
            self.put("]")

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Write statements: no docstrings, and of imports that follow each other the names in one order."""
        self.put("[")
        for importing, group in groupby(statements, lambda each: isinstance(each, ast.Import | ast.ImportFrom)):
            if importing:
                imports = [one for each in group for one in _imports_of(each)]
                self.imported(imports)
                self.put(f"Import({sorted(each.bound for each in imports)!a})")
                continue
            for each in group:
                if not _is_text(each):
                    self.write(each)
        self.put("]")

    # Which names there are.

    @contextmanager
    def scope(self, kind: str, *bound: str) -> Iterator[None]:
        """A scope of its own; what it mentions of others goes to the one around it. Methods see no names of a class."""
        inner = _Scope(kind, set(bound), set())
        self.scopes.append(inner)
        yield
        self.scopes.pop()
        hidden = inner.bound - self.late if kind != "class" else ()
        self.scopes[-1].mentions.update(name for name in inner.mentions if name.partition(".")[0] not in hidden)

    def imported(self, imports: Sequence[Import]) -> None:
        """Note the names that imports bind here."""
        if len(self.scopes) == 1:
            self.at_top.extend(imports)
            return
        names = {each.bound for each in imports}
        self.imports.extend(imports)
        self.late |= names
        # An object may give out what its class has imported.
        self.unhidden |= names if self.scopes[-1].kind == "class" else set()

    def called(self, function: ast.expr) -> None:
        """Note the call of a function."""
        if self.functions and not self.built:
            return
        name = _chain_of(function)
        own = name.partition(".")[0]
        if not name or own in self.late or any(own in scope.bound for scope in self.scopes[1:]):
            name = f"{UNKNOWN}.{function.attr}" if isinstance(function, ast.Attribute) else UNKNOWN
        self.acts(name)

    def acts(self, call: str = UNKNOWN) -> None:
        """Note what may change more than the own object, if the module is imported here, or an object is built."""
        if self.built:
            self.builds.add(call)
        elif not self.functions:
            self.calls.add(call)

    # Nodes of which some fields are names, or have a scope of their own.

    def visit_Name(self, node: ast.Name) -> None:
        self.put(f"Name({node.id!a})")
        if not isinstance(node.ctx, ast.Load):
            self.scopes[-1].bound.add(node.id)
        if not isinstance(node.ctx, ast.Store):
            self.scopes[-1].mentions.add(node.id)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr == "__subclasses__":
            self.marks.add(SUBCLASSES)
        name = _chain_of(node)
        if not isinstance(node.ctx, ast.Load) and name != f"{self.built}.{node.attr}":
            self.acts()
        if name:
            self.put(f"Name({name!a})")
            self.scopes[-1].mentions.add(name)
        else:
            self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.acts()
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.acts()
        if isinstance(node.target, ast.Name):
            self.scopes[-1].mentions.add(node.target.id)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """A value; in an annotation, a text names types."""
        self.put(f"Constant({node.value!a})")
        if self.annotation and isinstance(node.value, str):
            with suppress(SyntaxError, ValueError):
                self.write(ast.parse(node.value, mode="eval"))

    def visit_Call(self, node: ast.Call) -> None:
        """A call: of `setting` its default alone; the name of a logger is no result."""
        name, bare = _last_name(node.func), isinstance(node.func, ast.Name)
        arguments, keywords = node.args, node.keywords
        self.called(node.func)
        if bare and name == SETTING:
            arguments = arguments[:1]
            keywords = [each for each in keywords if each.arg in _VALUES_OF_A_SETTING]
        elif name == "getLogger" and len(arguments) == 1 and _last_name(arguments[0]) == "__name__":
            arguments = []
        elif bare and (name in ("globals", "eval", "exec") or (name in ("vars", "locals", "dir") and not arguments)):
            self.marks.add(WHOLE)
        elif name in ("import_module", "__import__") and arguments and isinstance(arguments[0], ast.Constant):
            module = str(arguments[0].value)
            self.imports.append(Import(module, 0, module, "", module))
            self.unhidden.add(module)
        for argument in (*arguments, *(each.value for each in keywords)) if name in _CALLING else ():
            if isinstance(argument, ast.Name | ast.Attribute):
                self.called(argument)
            elif any(isinstance(each, ast.Lambda) for each in ast.walk(argument)):
                self.acts()
        if self.scopes[-1].kind == "class":
            made = (each.value for each in keywords if each.arg in ("default_factory", "factory"))
            self.builds.update(_chain_of(each) or UNKNOWN for each in made)
        self.generic_visit(ast.Call(node.func, arguments, keywords))

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """A function: its decorators, defaults and annotations belong to the scope around it."""
        before = self.built
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        bound = [each.arg for each in arguments if each is not None]
        if not isinstance(node, ast.Lambda):
            self.declared(node, "args", "returns")
            if self.scopes[-1].kind == "class" and not self.functions:
                self.marks |= {HOOKED} if node.name in _ACTING_HOOKS else set()
                self.built = (bound or ["self"])[0] if node.name in _BUILDERS else ""
        else:
            self.generic_visit(node, "args")
        self.functions += 1
        with self.scope("function", *bound):
            self.generic_visit(node, "body")
        self.functions -= 1
        self.built = before

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef  # noqa: N815

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.declared(node, "bases", "keywords")
        if not self.functions:
            bases = (_chain_of(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
            self.bases.extend(filter(None, bases))
            if any(each.arg == "metaclass" for each in node.keywords):
                self.marks.add(HOOKED)
                self.builds.add(UNKNOWN)
        with self.scope("class"):
            self.generic_visit(node, "body")

    def declared(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, *names: str) -> None:
        """The head of a function or class; decorators are called with it."""
        self.scopes[-1].bound.add(node.name)
        for each in node.decorator_list:
            if not isinstance(each, ast.Call):
                self.called(each)
        self.generic_visit(node, "name", "decorator_list", "type_params", *names)

    def visit_ListComp(self, node: Any) -> None:
        """A comprehension: its first iterable belongs to the scope around it."""
        first, *_ = node.generators
        self.write(first.iter)
        with self.scope("comprehension"):
            for each in node.generators:
                self.generic_visit(each, "target", *(("iter",) if each is not first else ()), "ifs", "is_async")
            self.generic_visit(node, "elt", "key", "value")

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp  # noqa: N815

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        """`name := value`, which binds outside of comprehensions."""
        next(each for each in reversed(self.scopes) if each.kind != "comprehension").bound.add(node.target.id)
        self.put(f"NamedExpr({node.target.id!a},")
        self.write(node.value)
        self.put(")")

    def visit_Global(self, node: ast.Global) -> None:
        if self.built:
            self.acts()
        self.globals.update(node.names)
        self.unhidden.update(node.names)
        self.generic_visit(node)

    def visit_MatchAs(self, node: Any) -> None:
        """A pattern or a handler that may bind a name."""
        name = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name")
        self.scopes[-1].bound.update([name] if name else ())
        self.generic_visit(node)

    visit_ExceptHandler = visit_MatchStar = visit_MatchMapping = visit_MatchAs  # noqa: N815

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """An f-string, with neighbouring pieces of text as one, and without empty ones."""
        self.put("JoinedStr(")
        for text, pieces in groupby(node.values, lambda piece: isinstance(piece, ast.Constant)):
            if text:
                joined = "".join(getattr(piece, "value", "") for piece in pieces)
                self.put(f"Constant({joined!a})" if joined else "")
            else:
                for piece in pieces:
                    self.write(piece)
        self.put(")")

    def visit_FormattedValue(self, node: ast.FormattedValue) -> None:
        """A value in an f-string; its format counts if there is one."""
        formatted = any(each.value != "" for each in getattr(node.format_spec, "values", ()))
        self.generic_visit(node, "value", "conversion", *(("format_spec",) if formatted else ()))


_KINDS = [each for each in vars(ast).values() if isinstance(each, type) and issubclass(each, ast.AST)]
_FIELDS = {each: [name for name in each._fields if name not in ("ctx", "kind", "type_comment")] for each in _KINDS}
_VISITORS = {each: getattr(_Reader, f"visit_{each.__name__}", _Reader.generic_visit) for each in _KINDS}


def _imports_of(statement: ast.stmt) -> list[Import]:
    """What an import statement binds."""
    if isinstance(statement, ast.ImportFrom):
        module = statement.module or ""
        return [Import(a.asname or a.name, statement.level, module, a.name, module) for a in statement.names]
    names = statement.names if isinstance(statement, ast.Import) else ()
    modules = ((a.asname or a.name.partition(".")[0], a) for a in names)
    return [Import(bound, 0, a.name if a.asname else bound, "", a.name) for bound, a in modules]


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a bare string: the docstring of a module, a class, a function or a field."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _last_name(node: ast.expr) -> str:
    """A name, or the last attribute of an expression; empty: another expression."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _chain_of(node: ast.expr) -> str:
    """A name with its attributes, as `a.b.c`; empty: another expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    return ".".join((node.id, *reversed(attributes))) if isinstance(node, ast.Name) else ""
