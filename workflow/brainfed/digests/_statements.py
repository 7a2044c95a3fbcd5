"""Reads a statement as a definition: writes its meaning, and notes the names that it mentions as Python scopes them."""

import ast
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

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
    chain_of,
    digest_of,
    imports_of,
    is_text,
    last_name,
)

# Of `runtime.setting(...)` only the default reaches a job, not its description and bounds.
VALUES_OF_A_SETTING = frozenset({"default", "factory"})
_ALL_NAMES = frozenset({"globals", "eval", "exec"})
_OWN_NAMES = frozenset({"vars", "locals", "dir"})
_CALLING = frozenset(
    (
        *("accumulate", "dropwhile", "filter", "filterfalse", "groupby", "iter", "map", "max", "min", "reduce"),
        *("sorted", "starmap", "sub", "subn", "takewhile"),
    )
)
"""They call the functions that they are given."""
_ACTING_HOOKS = frozenset({"__init_subclass__", "__set_name__", "__class_getitem__"})
_BUILDERS = frozenset({"__init__", "__new__", "__post_init__", "__set_name__"})


class _Scope:
    """Names of a function, a class, a comprehension, or of the whole statement."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.bound: set[str] = set()
        self.imported: set[str] = set()
        self.outer: set[str] = set()
        self.around: set[str] = set()
        self.mentions: set[str] = set()


class Reader:
    """Reads one statement of a module's top level: writes its meaning, and notes the names as Python scopes them.

    The text is the same under every version of Python, unlike that of `ast.dump`. Versions add optional fields, and
    split the text around the values of an f-string in other places. So fields without a value are left out,
    neighbouring pieces of text are joined, and other characters than ASCII are escaped, as each version has its own
    list of those that can be printed.
    """

    def __init__(self) -> None:
        self.text: list[str] = []
        self.scopes = [_Scope("statement")]
        self.at_top: list[Import] = []
        self.imports: list[Import] = []
        self.late: set[str] = set()
        self.everywhere: set[str] = set()
        self.names: dict[str, None] = {}
        self.calls: set[str] = set()
        self.builds: set[str] = set()
        self.built = ""
        self.bases: list[str] = []
        self.marks: set[str] = set()
        self.functions = 0
        self.calling = 0
        self.annotation = False

    def definition(self, statement: ast.stmt) -> Definition:
        """The statement as a definition."""
        if not _defines(statement):
            self.marks.add(EFFECT)
        if isinstance(statement, ast.ClassDef):
            self.marks.add(CLASS)
        self.block([statement])
        return Definition(
            tuple(self.names),
            digest_of("".join(self.text).encode()),
            tuple(sorted(self.scopes[0].mentions | self.everywhere)),
            tuple(sorted(self.late)),
            (*self.at_top, *self.imports),
            tuple(sorted(self.calls)),
            tuple(sorted(self.builds)),
            tuple(self.bases),
            tuple(sorted(self.marks)),
        )

    # What is written.

    def node(self, node: ast.AST) -> None:
        """Write a node and note its names."""
        special = _SPECIAL.get(type(node))
        if special is not None:
            special(self, node)
            return
        self.text.append(f"{type(node).__name__}(")
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name != "ctx":
                self.field(name, value)
        self.text.append(")")

    def field(self, name: str, value: Any) -> None:
        """Write a field that has a value."""
        if value is None or value == []:
            return
        self.text.append(f"{name}=")
        if isinstance(value, ast.AST):
            self.node(value)
        elif isinstance(value, list):
            if isinstance(value[0], ast.stmt):
                self.block(value)
            else:
                self.every(value)
        else:
            self.text.append(f"{value!a},")

    def every(self, values: Iterable[Any]) -> None:
        """Write a list of nodes or names."""
        self.text.append("[")
        for value in values:
            if isinstance(value, ast.AST):
                self.node(value)
            else:
                self.text.append(f"{value!a},")
        self.text.append("]")

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Write statements: no docstrings, and of imports that follow each other the names in one order."""
        self.text.append("[")
        names: list[str] = []
        for statement in statements:
            if isinstance(statement, ast.Import | ast.ImportFrom):
                imports = imports_of(statement)
                names.extend(each.bound for each in imports)
                self.imported(imports)
                continue
            if names:
                self.text.append(f"Import({sorted(names)!a})")
                names = []
            if not is_text(statement):
                self.node(statement)
        if names:
            self.text.append(f"Import({sorted(names)!a})")
        self.text.append("]")

    # Which names there are.

    @contextmanager
    def scope(self, kind: str) -> Iterator[_Scope]:
        """A scope of its own; what it mentions of others goes to the one around it."""
        inner = _Scope(kind)
        self.scopes.append(inner)
        yield inner
        self.scopes.pop()
        around = self.scopes[-1]
        hides = inner.bound - inner.outer - inner.around if kind != "class" else set[str]()
        for mention in inner.mentions:
            name = mention.partition(".")[0]
            if name in inner.imported:
                self.late.add(mention)
            if name not in hides:
                (around.mentions if name not in inner.outer else self.everywhere).add(mention)

    def bind(self, name: str) -> None:
        """Note a name that gets a value here."""
        scope = self.scopes[-1]
        if len(self.scopes) == 1 or name in scope.outer:
            self.names[name] = None
        else:
            scope.bound.add(name)

    def mention(self, name: str) -> None:
        """Note a name that is read, with attributes."""
        self.scopes[-1].mentions.add(name)

    def imported(self, imports: Sequence[Import]) -> None:
        """Note the names that an import binds here."""
        scope = self.scopes[-1]
        if scope.kind == "statement":
            self.at_top.extend(imports)
            return
        self.imports.extend(imports)
        for each in imports:
            scope.imported.add(each.bound)
            self.bind(each.bound)
            # An object may give out what its class, or its module, has imported.
            if scope.kind == "class" or each.bound in scope.outer or each.bound == "*":
                self.late.add(each.bound)

    def called(self, function: ast.expr) -> None:
        """Note the call of a function; while the module is imported, it may change what others read."""
        calls = self.builds if self.built else self.calls
        if self.functions and not self.calling and not self.built:
            return
        name = chain_of(function)
        own = name.partition(".")[0]
        if name and not any(own in scope.bound for scope in self.scopes[1:]):
            calls.add(name)
        else:
            calls.add(f"{UNKNOWN}.{function.attr}" if isinstance(function, ast.Attribute) else UNKNOWN)

    def written(self) -> None:
        """Note that a part of an object is written here, which others may hold, too."""
        if self.built:
            self.marks.add(BUILDING)
        elif not self.functions:
            self.calls.add(UNKNOWN)

    # Nodes of which some fields are names, or have a scope of their own.

    def name(self, node: ast.Name) -> None:
        """Write a name that is read, written or deleted."""
        self.text.append(f"{node.id!a},")
        if isinstance(node.ctx, ast.Store):
            self.bind(node.id)
        else:
            self.mention(node.id)
            if isinstance(node.ctx, ast.Del):
                self.bind(node.id)

    def attribute(self, node: ast.Attribute) -> None:
        """Write the attribute of a name, or of any other expression."""
        self.text.append(f"Attribute({node.attr!a},")
        if node.attr == "__subclasses__":
            self.marks.add(SUBCLASSES)
        name = chain_of(node)
        if not isinstance(node.ctx, ast.Load) and name != f"{self.built}.{node.attr}":
            self.written()
        if name:
            self.text.append(f"{name!a}")
            self.mention(name)
        else:
            self.node(node.value)
        self.text.append(")")

    def subscript(self, node: ast.Subscript) -> None:
        """Write an item of an expression."""
        if not isinstance(node.ctx, ast.Load):
            self.written()
        self.text.append("Subscript(")
        self.node(node.value)
        self.node(node.slice)
        self.text.append(")")

    def constant(self, node: ast.Constant) -> None:
        """Write a value; in an annotation, a text names types."""
        self.text.append(f"{node.value!a},")
        if self.annotation and isinstance(node.value, str):
            with suppress(SyntaxError, ValueError):
                parsed = ast.parse(node.value, mode="eval")
                written, self.text = self.text, []
                self.node(parsed)
                self.text = written

    def call(self, node: ast.Call) -> None:
        """Write a call: of `setting` its default alone; the name of a logger is no result."""
        name = last_name(node.func)
        bare = isinstance(node.func, ast.Name)
        arguments, keywords = node.args, node.keywords
        if bare and name == SETTING:
            arguments = arguments[:1]
            keywords = [keyword for keyword in keywords if keyword.arg in VALUES_OF_A_SETTING]
        elif bare and (name in _ALL_NAMES or (name in _OWN_NAMES and not arguments)):
            self.marks.add(WHOLE)
        elif self.scopes[-1].kind == "class":
            made = [keyword.value for keyword in keywords if keyword.arg in ("default_factory", "factory")]
            called = [chain_of(each) for each in made if not isinstance(each, ast.Lambda)]
            self.builds |= {each or UNKNOWN for each in called}
            self.builds |= {UNKNOWN for each in made for inner in ast.walk(each) if isinstance(inner, ast.Call)}
        elif name in ("import_module", "__import__") and arguments and isinstance(arguments[0], ast.Constant):
            module = str(arguments[0].value)
            self.imports.append(Import(module, 0, module, "", module))
            self.late.add(module)
        self.called(node.func)
        self.text.append("Call(")
        self.node(node.func)
        if name == "getLogger" and len(arguments) == 1 and last_name(arguments[0]) == "__name__":
            arguments = []
        calling = name in _CALLING and (not self.functions or self.calling > 0)
        self.calling += calling
        if calling:
            for argument in (*arguments, *(keyword.value for keyword in keywords)):
                if isinstance(argument, ast.Name | ast.Attribute):
                    self.called(argument)
        self.every(arguments)
        self.every(keywords)
        self.calling -= calling
        self.text.append(")")

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Write a function: its decorators, defaults and annotations belong to the scope around it."""
        self.text.append(f"{type(node).__name__}({node.name!a},")
        self.bind(node.name)
        if self.scopes[-1].kind == "class" and not self.functions:
            self.marks |= {HOOKED} if node.name in _ACTING_HOOKS else set()
        self.decorators(node.decorator_list)
        self.field("type_params", getattr(node, "type_params", None))
        arguments = self.arguments(node.args)
        if node.returns is not None:
            self.text.append("returns=")
            self.annotated(node.returns)
        built = self.built
        if self.scopes[-1].kind == "class" and not self.functions and node.name in _BUILDERS:
            self.built = next(each.arg for each in (*node.args.posonlyargs, *node.args.args, ast.arg("self")))
        self.functions += 1
        with self.scope("function") as scope:
            scope.bound |= arguments
            self.block(node.body)
        self.functions -= 1
        self.built = built
        self.text.append(")")

    def lambda_(self, node: ast.Lambda) -> None:
        """Write a lambda."""
        self.text.append("Lambda(")
        arguments = self.arguments(node.args)
        self.functions += 1
        with self.scope("function") as scope:
            scope.bound |= arguments
            self.node(node.body)
        self.functions -= 1
        self.text.append(")")

    def arguments(self, node: ast.arguments) -> set[str]:
        """Write the arguments of a function, and return their names."""
        names: set[str] = set()
        for kind in ("posonlyargs", "args", "vararg", "kwonlyargs", "kwarg"):
            given = getattr(node, kind)
            given = given if isinstance(given, list) else [given] if given else []
            self.text.append(f"{kind}[")
            for each in given:
                names.add(each.arg)
                self.text.append(f"{each.arg!a},")
                if each.annotation is not None:
                    self.annotated(each.annotation)
            self.text.append("]")
        self.every(node.defaults)
        self.every(node.kw_defaults)
        return names

    def annotated(self, node: ast.expr) -> None:
        """Write an annotation."""
        before, self.annotation = self.annotation, True
        self.node(node)
        self.annotation = before

    def annotated_name(self, node: ast.AnnAssign) -> None:
        """Write a name with a type, and perhaps a value."""
        self.text.append(f"AnnAssign({node.simple},")
        self.node(node.target)
        self.annotated(node.annotation)
        self.field("value", node.value)
        self.text.append(")")

    def augmented(self, node: ast.AugAssign) -> None:
        """Write an augmented assignment; the object that it changes may be another's."""
        self.written()
        if isinstance(node.target, ast.Name):
            self.mention(node.target.id)
        self.text.append(f"AugAssign({type(node.op).__name__},")
        self.node(node.target)
        self.node(node.value)
        self.text.append(")")

    def decorators(self, nodes: Sequence[ast.expr]) -> None:
        """Write decorators: they are called with what they decorate."""
        for node in nodes:
            if not isinstance(node, ast.Call):
                self.called(node)
        self.every(nodes)

    def class_(self, node: ast.ClassDef) -> None:
        """Write a class: methods do not see its names."""
        self.text.append(f"ClassDef({node.name!a},")
        self.bind(node.name)
        self.decorators(node.decorator_list)
        self.field("type_params", getattr(node, "type_params", None))
        self.every(node.bases)
        self.every(node.keywords)
        if not self.functions:
            bases = (chain_of(base.value if isinstance(base, ast.Subscript) else base) for base in node.bases)
            self.bases.extend(filter(None, bases))
            self.marks |= {HOOKED, BUILDING} if any(each.arg == "metaclass" for each in node.keywords) else set()
        with self.scope("class"):
            self.block(node.body)
        self.text.append(")")

    def comprehension(self, node: Any) -> None:
        """Write a comprehension: its first iterable belongs to the scope around it."""
        self.text.append(f"{type(node).__name__}(")
        first, *_ = node.generators
        self.node(first.iter)
        with self.scope("comprehension"):
            for generator in node.generators:
                self.text.append(f"{generator.is_async}[")
                self.node(generator.target)
                if generator is not first:
                    self.node(generator.iter)
                self.every(generator.ifs)
                self.text.append("]")
            for name in ("elt", "key", "value"):
                self.field(name, getattr(node, name, None))
        self.text.append(")")

    def named(self, node: ast.NamedExpr) -> None:
        """Write `name := value`, which binds outside a comprehension."""
        self.text.append(f"NamedExpr({node.target.id!a},")
        self.node(node.value)
        self.text.append(")")
        inner = [scope for scope in self.scopes if scope.kind != "comprehension"]
        self.scopes, scopes = inner, self.scopes
        self.bind(node.target.id)
        self.scopes = scopes

    def outer(self, node: ast.Global | ast.Nonlocal) -> None:
        """Write a `global` or `nonlocal` statement, and note its names."""
        self.text.append(f"{type(node).__name__}({sorted(node.names)!a})")
        scope = self.scopes[-1]
        if isinstance(node, ast.Global):
            self.marks |= {BUILDING} if self.built else set()
            scope.outer |= set(node.names)
            self.everywhere |= set(node.names)
        else:
            scope.around |= set(node.names)

    def binding(self, node: Any) -> None:
        """Write a pattern or a handler that binds a name."""
        for name in ("name", "rest"):
            if (bound := getattr(node, name, None)) is not None:
                self.bind(bound)
        self.text.append(f"{type(node).__name__}(")
        for name in node._fields:
            self.field(name, getattr(node, name, None))
        self.text.append(")")

    def joined(self, node: ast.JoinedStr) -> None:
        """Write an f-string."""
        self.text.append("JoinedStr(")
        self.every(_joined_text(node.values))
        self.text.append(")")

    def formatted(self, node: ast.FormattedValue) -> None:
        """Write a value in an f-string; its format counts if there is one."""
        self.text.append(f"FormattedValue({node.conversion},")
        self.node(node.value)
        if isinstance(node.format_spec, ast.JoinedStr) and _joined_text(node.format_spec.values):
            self.node(node.format_spec)
        self.text.append(")")


_SPECIAL: dict[type[ast.AST], Any] = {
    ast.Name: Reader.name,
    ast.Attribute: Reader.attribute,
    ast.Subscript: Reader.subscript,
    ast.Constant: Reader.constant,
    ast.Call: Reader.call,
    ast.FunctionDef: Reader.function,
    ast.AsyncFunctionDef: Reader.function,
    ast.Lambda: Reader.lambda_,
    ast.AnnAssign: Reader.annotated_name,
    ast.AugAssign: Reader.augmented,
    ast.ClassDef: Reader.class_,
    ast.ListComp: Reader.comprehension,
    ast.SetComp: Reader.comprehension,
    ast.DictComp: Reader.comprehension,
    ast.GeneratorExp: Reader.comprehension,
    ast.NamedExpr: Reader.named,
    ast.Global: Reader.outer,
    ast.Nonlocal: Reader.outer,
    ast.ExceptHandler: Reader.binding,
    ast.MatchAs: Reader.binding,
    ast.MatchStar: Reader.binding,
    ast.MatchMapping: Reader.binding,
    ast.JoinedStr: Reader.joined,
    ast.FormattedValue: Reader.formatted,
}


def _defines(statement: ast.stmt) -> bool:
    """Whether a statement only defines names: a function, a class, or an assignment to names."""
    if isinstance(statement, ast.Assign):
        return all(map(_is_name, statement.targets))
    if isinstance(statement, ast.AnnAssign):
        return _is_name(statement.target)
    return type(statement).__name__ in ("FunctionDef", "AsyncFunctionDef", "ClassDef", "TypeAlias")


def _is_name(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_name, target.elts))
    return isinstance(target, ast.Name) or (isinstance(target, ast.Starred) and _is_name(target.value))


def _joined_text(pieces: list[ast.expr]) -> list[ast.expr]:
    """The pieces of an f-string, with neighbouring pieces of text as one, and without empty ones."""
    joined: list[ast.expr] = []
    for piece in pieces:
        if isinstance(piece, ast.Constant) and joined and isinstance(joined[-1], ast.Constant):
            joined[-1] = ast.Constant(str(joined[-1].value) + str(piece.value))
        elif not (isinstance(piece, ast.Constant) and piece.value == ""):
            joined.append(piece)
    return joined
