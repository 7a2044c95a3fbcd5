"""Digests against what really runs: little packages are written, executed, and edited at each number in them.

If another number changes the outcome of the script, it must change the digest. Where the code leaves nothing open, a
number that does not change the outcome changes no digest either.
"""

import re
import runpy
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.digests import SourceTree, code_digest
from support.imports import import_closure

SCRIPT = "scripts/run.py"
# A stand-in for the library of this name: it imports what the stub offers when it is asked for.
LAZY_LOADER = """
import ast, importlib, pathlib

def attach_stub(name, file):
    stub = ast.parse(pathlib.Path(file).with_suffix(".pyi").read_text())
    modules = {a.asname or a.name: (f"{name}.{s.module}", a.name) for s in stub.body for a in s.names}

    def find(asked):
        if asked not in modules:
            raise AttributeError(asked)
        module, attribute = modules[asked]
        return getattr(importlib.import_module(module), attribute)

    return find, lambda: sorted(modules), sorted(modules)
"""
DOOR = "import lazy_loader as lazy\n__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)\n"


@contextmanager
def written(files) -> Iterator[Path]:
    """A folder with these files."""
    folder = Path(tempfile.mkdtemp())
    try:
        for place, text in files.items():
            path = folder / "workflow" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield folder / "workflow"
    finally:
        shutil.rmtree(folder)


def digest(files, *roots):
    with written(files) as base:
        return code_digest(*(roots or (SCRIPT,)), base=base)


def outcome(files):
    """The value of `RESULT` in the script."""
    with written(files) as base, tempfile.TemporaryDirectory() as libraries, pytest.MonkeyPatch.context() as patched:
        Path(libraries, "lazy_loader.py").write_text(LAZY_LOADER)
        patched.setattr(sys, "path", [str(base / "scripts"), str(base), libraries, *sys.path])
        patched.setattr(sys, "dont_write_bytecode", True)
        before = set(sys.modules)
        try:
            return runpy.run_path(str(base / SCRIPT))["RESULT"]
        finally:
            for name in set(sys.modules) - before:
                del sys.modules[name]
            sys.path_importer_cache.clear()


def edits(files):
    """Each number of the files made larger: its file and place -> the files."""
    for place, text in files.items():
        for number in re.finditer(r"\b\d+\b", text):
            larger = f"{text[: number.start()]}{int(number.group()) + 1000}{text[number.end() :]}"
            yield f"{place}: {text[: number.end()].splitlines()[-1]}", files | {place: larger}


def seen(files):
    """What is edited -> whether the outcome, and whether the digest changes."""
    result, code = outcome(files), digest(files)
    return {name: (outcome(other) != result, digest(other) != code) for name, other in edits(files)}


# Generated packages: definitions that add up their own number and those of what they mention.

KINDS = ("function", "constant", "class")
STYLES = ("from", "as", "relative", "module", "dotted", "submodule", "late", "door")


@st.composite
def packages(draw, styles=STYLES, late=True):
    """Definitions, each with its kind, its module, and the earlier ones that it mentions, with the way of the import.

    Args:
        styles: ways to import.
        late: whether functions also mention what is in modules after their own.
    """
    definitions = []
    for place in range(draw(st.integers(2, 8))):
        kind, module, mentions = draw(st.sampled_from(KINDS)), draw(st.integers(0, 3)), {}
        for other in draw(st.sets(st.integers(0, place - 1), max_size=3) if place else st.just(set())):
            kind_of_other, module_of_other, _ = definitions[other]
            style = draw(st.sampled_from(styles))
            # What a constant needs must be there when its module is imported.
            if kind == "constant" and kind_of_other != "constant":
                continue
            if module_of_other <= module or (late and kind != "constant"):
                mentions[other] = style
        definitions.append((kind, module, mentions))
    started = draw(st.sets(st.integers(0, len(definitions) - 1), min_size=1, max_size=2))
    return definitions, sorted(started)


class Rendered:
    """The files of a package; `into` packs modules into others."""

    def __init__(self, definitions, started, into=lambda module: module):
        self.definitions, self.into = definitions, into
        self.imports = {None: [], **{into(module): [] for _, module, _ in definitions}}
        self.texts = {module: [] for module in self.imports}
        self.offered = set()
        for place, (_, module, mentions) in enumerate(definitions):
            self.texts[into(module)].append(self.definition(place, mentions))
        total = [self.mention(None, target, "door" if target % 3 == 0 else "from", []) for target in started]
        self.texts[None].append(f"RESULT = {' + '.join(total)}\n")

    def files(self):
        texts = {module: "\n".join((*self.imports[module], *self.texts[module])) for module in self.imports}
        parts = {f"door/_{each}.py": f"from pack.m{self.module(each)} import d{each}\n" for each in self.offered}
        stub = [f"from ._{each} import d{each} as d{each}\n" for each in sorted(self.offered)]
        modules = {f"pack/m{module}.py" if module is not None else SCRIPT: text for module, text in texts.items()}
        return modules | parts | {"pack/__init__.py": "", "door/__init__.py": DOOR, "door/__init__.pyi": "".join(stub)}

    def module(self, place):
        return self.into(self.definitions[place][1])

    def definition(self, place, mentions):
        own, late = self.module(place), []
        values = [str(2**place), *(self.mention(own, other, style, late) for other, style in mentions.items())]
        total, kind = " + ".join(values), self.definitions[place][0]
        if kind == "constant":
            self.imports[own].extend(late)
            return f"d{place} = {total}\n"
        body = "".join(f"        {line}\n" for line in (*late, f"return {total}"))
        return f"def d{place}():\n{body}" if kind == "function" else f"class d{place}:\n    def __call__(self):\n{body}"

    def mention(self, own, target, style, late):
        """How the module `own` (the script: None) writes that it uses a definition."""
        module, name = self.module(target), f"d{target}"
        # A module that is imported later than its user may not be there yet when the user is imported.
        lines = self.imports[own] if own is None or (module < own and style != "late") else late
        if own == module:
            pass
        elif style == "door":
            self.offered.add(target)
            (self.imports[None] if own is None else late).append(f"from door import {name}")
        elif style in ("from", "as", "relative", "late"):
            start = "." if style == "relative" and own is not None else "pack."
            lines.append(f"from {start}m{module} import {name}{f' as other{target}' if style == 'as' else ''}")
            name = f"other{target}" if style == "as" else name
        elif style == "dotted":
            lines.append(f"import pack.m{module}")
            name = f"pack.m{module}.{name}"
        else:
            lines.append(
                f"from pack import m{module}" if style == "submodule" else f"import pack.m{module} as m{module}"
            )
            name = f"m{module}.{name}"
        return name + {"function": "()", "constant": "", "class": "()()"}[self.definitions[target][0]]


PLACES = st.lists(st.integers(0, 3), min_size=4, max_size=4).map(sorted)


@settings(max_examples=40)
@given(packages(), PLACES)
def test_an_edit_counts_if_and_only_if_it_changes_what_is_computed(package, places):
    for into in (lambda module: module, places.__getitem__):
        files = Rendered(*package, into).files()
        for name, (counts, changes) in seen(files).items():
            assert counts == changes, (name, files)


@settings(max_examples=100)
@given(packages(styles=("from", "relative"), late=False), PLACES)
def test_packing_modules_into_one_keeps_the_digest(package, places):
    assert digest(Rendered(*package).files()) == digest(Rendered(*package, places.__getitem__).files())


# What is hard to resolve: every number of these files is edited.

PACK = {"pack/__init__.py": "", "pack/other.py": "OTHER = 70\n\n\ndef unused():\n    return 71\n"}
OPEN = {
    "an effect": {
        "pack/a.py": "STATE = [1]\nSTATE.append(2)\nfor each in (3, 4):\n    STATE.append(each)\n\n\n"
        "def f():\n    return sum(STATE)\n",
        SCRIPT: "from pack.a import f\nRESULT = f()\n",
    },
    "a decorator that registers": {
        "pack/registry.py": "FOUND = []\n\n\ndef register(f):\n    FOUND.append(f)\n    return f\n",
        "pack/a.py": "from pack.registry import register\n\n\n@register\ndef one():\n    return 1\n",
        SCRIPT: "import pack.a\nfrom pack.registry import FOUND\nRESULT = sum(f() for f in FOUND)\n",
    },
    "an assignment that registers": {
        "pack/registry.py": "FOUND = {}\n\n\nclass Entry:\n    def __init__(self, n):\n        FOUND[n] = self\n",
        "pack/a.py": "from pack.registry import Entry\nFIRST = Entry(1)\nLAST = [Entry(n) for n in (2, 3)]\n",
        "pack/b.py": "from pack import registry\nTABLE = tuple(map(lambda n: registry.Entry(n), (4, 5)))\n",
        SCRIPT: "import pack.a\nfrom pack import b, registry\nRESULT = sum(registry.FOUND)\n",
    },
    "objects that register themselves": {
        "pack/registry.py": "FOUND, HELD = [], {}\n\n\ndef number():\n    FOUND.append(1)\n    return 2\n",
        "pack/a.py": "from dataclasses import dataclass, field\nfrom pack.registry import FOUND, HELD, number\n\n\n"
        "@dataclass\nclass A:\n    n: int = field(default_factory=number)\n\n\n"
        "class B:\n    def __init__(self, n):\n        self.inner = B(False) if n else None\n\n\n"
        "class C:\n    def __init__(self, n):\n        self.held = FOUND\n        self.held += [n]\n\n\n"
        "class D(C):\n    pass\n\n\nclass E:\n    def __init__(self, n):\n        HELD['n'] = n\n",
        "pack/b.py": "from pack.a import A, B, D, E\nMADE = A()\nUNUSED = B(4)\nINHERITED = D(5)\nLAST = E(6)\n",
        SCRIPT: "import pack.b\nfrom pack.registry import FOUND, HELD\nRESULT = FOUND, HELD\n",
    },
    "a class that registers itself": {
        "pack/base.py": "FOUND = []\n\n\nclass Base:\n    def __init_subclass__(cls):\n        FOUND.append(cls)\n",
        "pack/a.py": "from pack.base import Base\n\n\nclass A(Base):\n    value = 1\n",
        "pack/b.py": "from pack.a import A\n\n\nclass B(A):\n    value = 2\n",
        SCRIPT: "import pack.b\nfrom pack.base import FOUND\nRESULT = sum(each.value for each in FOUND)\n",
    },
    "a class that writes elsewhere": {
        "pack/registry.py": "FOUND, HELD = [], {}\n",
        "pack/a.py": "from pack.registry import FOUND, HELD\n\n\nclass A:\n    HELD['a'] = 1\n    found = FOUND\n"
        "    found += [2]\n",
        SCRIPT: "import pack.a\nfrom pack.registry import FOUND, HELD\nRESULT = FOUND, HELD\n",
    },
    "subclasses": {
        "pack/base.py": "class Base:\n    @classmethod\n    def all(cls):\n        return cls.__subclasses__()\n",
        "pack/a.py": "from pack.base import Base\n\n\nclass A(Base):\n    value = 1\n",
        SCRIPT: "import pack.a\nfrom pack.base import Base\nRESULT = sum(each.value for each in Base.all())\n",
    },
    "a module that is passed on": {
        "pack/a.py": "from pack.b import f as g\nVALUE = 1\n\n\ndef f():\n    return VALUE + 2\n",
        "pack/b.py": "def f():\n    return 3\n",
        SCRIPT: "from pack import a\n\n\ndef call(module, name):\n    return getattr(module, name)()\n\n\n"
        "RESULT = call(a, 'f') + call(a, 'g')\n",
    },
    "a package that is passed on": {
        "pack/sub/__init__.py": "from pack.sub import a\n",
        "pack/sub/a.py": "VALUE = 1\n",
        "pack/sub/b.py": "VALUE = 2\n",
        SCRIPT: "import pack.sub.b\nRESULT = sum(getattr(pack.sub, n).VALUE for n in ('a', 'b'))\n",
    },
    "a star": {
        "pack/a.py": "from pack.b import *\nA = 1\n",
        "pack/b.py": "B = 2\n",
        SCRIPT: "from pack.a import *\nfrom pack.a import B as C\nRESULT = A + B + C\n",
    },
    "all names": {
        "pack/a.py": "from pack.b import B\nA = 1\n\n\ndef f(name):\n    return globals()[name]\n",
        "pack/b.py": "B = 2\n",
        SCRIPT: "from pack.a import f\nRESULT = f('A') + f('B')\n",
    },
    "the table of modules": {
        "pack/a.py": "import sys as system\nA = 1\n\n\ndef f():\n    return system.modules[__name__].A\n",
        SCRIPT: "from pack.a import f\nRESULT = f()\n",
    },
    "a module with __getattr__": {
        "pack/a.py": "_VALUE = 1\n\n\ndef __getattr__(name):\n    if name != 'A':\n"
        "        raise AttributeError(name)\n    return _VALUE + 2\n",
        SCRIPT: "from pack.a import A\nRESULT = A\n",
    },
    "a package that imports when it is asked": {
        "pack/sub/__init__.py": "import importlib\n\n\ndef __getattr__(name):\n"
        "    if name != 'a':\n        raise AttributeError(name)\n"
        "    return importlib.import_module(f'pack.sub._{name}').VALUE\n",
        "pack/sub/_a.py": "from pack.b import B\nVALUE = 1 + B\n",
        "pack/b.py": "B = 2\n",
        SCRIPT: "from pack.sub import a\nRESULT = a\n",
    },
    "a name with several values": {
        "pack/a.py": "X = 1\nY = X\nX = 2\n\n\ndef f():\n    return 3\n\n\n"
        "def wrapped(g=f):\n    return g() + 4\n\n\nf = wrapped\n",
        SCRIPT: "from pack.a import f, X, Y\nRESULT = f() + X + Y\n",
    },
    "an import that may fail": {
        "pack/a.py": "try:\n    from pack.absent import X\nexcept ImportError:\n    X = 1\n",
        "pack/b.py": "try:\n    from pack.a import X as Y\nexcept ImportError:\n    Y = 2\n",
        SCRIPT: "from pack.a import X\nfrom pack.b import Y\nRESULT = X + Y\n",
    },
    "names for type checkers": {
        "pack/a.py": "class A:\n    value = 1\n",
        "pack/b.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.a import A\n"
        "else:\n    from pack.other import OTHER as A\n",
        SCRIPT: "from pack.b import A\nRESULT = A\n",
    },
    "a type in quotes": {
        "pack/a.py": "class A:\n    value = 1\n",
        "pack/b.py": "from typing import get_type_hints\nfrom pack.a import A\n\n\nclass B:\n    x: 'list[A]'\n\n\n"
        "def f():\n    (kind,) = get_type_hints(B)['x'].__args__\n    return kind.value\n",
        SCRIPT: "from pack.b import f\nRESULT = f()\n",
    },
    "a global that a function sets": {
        "pack/a.py": "def start():\n    global LEVEL\n    LEVEL = 1\n\n\ndef level():\n    return LEVEL\n",
        SCRIPT: "from pack.a import level, start\nstart()\nRESULT = level()\n",
    },
    "an attribute of a module that is set elsewhere": {
        "pack/a.py": "LEVEL = 1\n\n\ndef level():\n    return LEVEL\n",
        "pack/b.py": "import pack.a\npack.a.LEVEL = 2\n",
        SCRIPT: "import pack.b\nfrom pack.a import level\nRESULT = level()\n",
    },
    "scopes": {
        "pack/a.py": "x = 1\ny = 2\nz = 3\nw = 4\n\n\ndef f():\n    x = [y for y in (y,)]\n"
        "    class C:\n        z = z\n        w = 5\n        def g(self):\n            return w\n"
        "    return x.pop() + C.z + C().g()\n",
        SCRIPT: "from pack.a import f\nRESULT = f()\n",
    },
    "what a late import runs": {
        "pack/state.py": "STATE = []\n",
        "pack/a.py": "from pack.state import STATE\nSTATE.append(1)\nUNUSED = 2\n",
        SCRIPT: "from pack.state import STATE\ndef f():\n    import pack.a\n    return sum(STATE)\nRESULT = f()\n",
    },
    "what the package runs": {
        "pack/sub/__init__.py": "from pack.b import one\nfrom pack.state import STATE\n"
        "STATE.append(one())\nUNUSED = 2\n",
        "pack/b.py": "def one():\n    return 1\n",
        "pack/sub/a.py": "from pack.state import STATE\n\n\ndef f():\n    return sum(STATE)\n",
        "pack/state.py": "STATE = []\n",
        SCRIPT: "from pack.sub.a import f\nRESULT = f()\n",
    },
    "a door whose module has effects": {
        "pack/state.py": "STATE = []\n",
        "pack/sub/__init__.py": DOOR,
        "pack/sub/__init__.pyi": "from ._a import f as f\nfrom ._b import g as g\n",
        "pack/sub/_a.py": "from pack.state import STATE\nSTATE.append(1)\n\n\ndef f():\n    return sum(STATE)\n",
        "pack/sub/_b.py": "def g():\n    return 2\n",
        SCRIPT: "from pack import sub\nRESULT = sub.f()\n",
    },
    "a module beside the script": {
        "scripts/beside.py": "VALUE = 1\n",
        SCRIPT: "from beside import VALUE\nRESULT = VALUE\n",
    },
    "a method of a class in another module": {
        "pack/a.py": "class A:\n    def f(self):\n        return self.g() + 1\n",
        "pack/b.py": "from pack.a import A\nclass B(A):\n    def g(self):\n        return 2\n\n\n"
        "def make():\n    return B()\n",
        SCRIPT: "from pack.b import make\nRESULT = make().f()\n",
    },
    "a pattern and a walrus": {
        "pack/a.py": "A, B = 1, 2\n\n\ndef f(x):\n    match x:\n"
        "        case [first, *_] if (y := A) and [z := B for _ in (0,)]:\n            return first + y + z\n",
        SCRIPT: "from pack.a import f\nRESULT = f([3])\n",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", OPEN)
def test_no_edit_that_changes_what_is_computed_goes_unseen(name):
    edited = seen(PACK | OPEN[name])
    assert any(counts for counts, _ in edited.values())
    assert not [each for each, (counts, changes) in edited.items() if counts and not changes]
    assert not edited["pack/other.py:     return 71"][1]
    assert not edited.get("pack/b.py: UNUSED = B(4", (False, False))[1]


# One set of definitions, another meaning.

SAME = "def g():\n    return 1\n\n\ndef f():\n    return g()\n"
USES_BOTH = "\n\n\ndef both():\n    return a.f() + b.f()\n"
TWO = PACK | {
    "pack/a.py": "import pack.c as c\nSTATE = []\n\n\ndef g():\n    return 1\n\n\ndef f():\n    return g()\n",
    "pack/b.py": "import pack.c as c\nSTATE = []\n\n\ndef g():\n    return 2\n\n\ndef f():\n    return g()\n",
    "pack/c.py": "C = 3\n",
}


@pytest.mark.parametrize(
    ("script", "old", "new"),
    [
        ("from pack import a, b\nfrom pack.a import f\nRESULT = f(), a.f() + b.f()\n", "pack.a", "pack.b"),
        ("import pack.a as a, pack.b as b\nf = a.f\nRESULT = f(), a.f() + b.f()\n", "f = a", "f = b"),
        ("from pack import a, b\nfrom pack.a import STATE as s\ns.append(1)\nRESULT = len(a.STATE), len(b.STATE)\n",
         "pack.a", "pack.b"),
        ("from pack import a, b\ndef f():\n    from pack.a import f\n    return f()\nRESULT = f(), a.f() + b.f()\n",
         "from pack.a", "from pack.b"),
        ("from math import sin as f\nRESULT = f(1)\n", "sin", "cos"),
        ("import math as m\nRESULT = repr(m.cos(4))\n", "import math", "import cmath"),
        ("S = [1]\nS.append(2)\nT = sum(S)\nRESULT = T\n", "S.append(2)\nT = sum(S)\n", "T = sum(S)\nS.append(2)\n"),
        ("X = 1\nY = X\nX = 2\nRESULT = X, Y\n", "Y = X\nX = 2\n", "X = 2\nY = X\n"),
        ("from pack.c import C as f\ndef f():\n    return 1\nRESULT = callable(f)\n",
         "from pack.c import C as f\ndef f():\n    return 1\n", "def f():\n    return 1\nfrom pack.c import C as f\n"),
        ("x = 1\ndef f():\n    x = 2\n    def g():\n        global x\n        return x\n    return g()\nRESULT = f()\n",
         "global", "nonlocal"),
    ],
)  # fmt: skip
def test_a_name_that_comes_to_stand_for_something_else_changes_the_digest(script, old, new):
    before, after = TWO | {SCRIPT: script}, TWO | {SCRIPT: script.replace(old, new)}
    assert outcome(before) != outcome(after)
    assert digest(before) != digest(after)


def test_the_order_of_imports_counts_where_what_they_run_does():
    files = PACK | {
        "pack/state.py": "STATE = []\n",
        "pack/a.py": "from pack.state import STATE\nSTATE.append(1)\n",
        "pack/b.py": "from pack.state import STATE\nSTATE.append(2)\n",
    }
    first, second = (
        files | {SCRIPT: f"import pack.{one}\nimport pack.{other}\nfrom pack.state import STATE\nRESULT = STATE\n"}
        for one, other in ("ab", "ba")
    )
    assert outcome(first) != outcome(second)
    assert digest(first) != digest(second)


MOVED = PACK | {
    "pack/a.py": "import logging\nlogger = logging.getLogger(__name__)\nSLOPE = 2\n\n\n"
    "def f():\n    logger.info('f')\n    return SLOPE * 3\n",
    "pack/b.py": '"""Empty."""\n',
    SCRIPT: "from pack.a import f\nRESULT = f()\n",
}


@pytest.mark.parametrize(
    "files",
    [
        {"pack/a.py": "", "pack/b.py": MOVED["pack/a.py"], SCRIPT: "from pack.b import f\nRESULT = f()\n"},
        {"pack/a.py": MOVED["pack/a.py"].replace("SLOPE = 2", "from .b import SLOPE"), "pack/b.py": "SLOPE = 2\n"},
        {"pack/b.py": "from .a import f\n", SCRIPT: "from pack.b import f\nRESULT = f()\n"},
        {"pack/__init__.py": "from .a import f\n", SCRIPT: "from pack import f\nRESULT = f()\n"},
        {"pack/__init__.py": DOOR, "pack/__init__.pyi": "from .a import f as f\n",
         SCRIPT: "from pack import f\nRESULT = f()\n"},
        {"pack/a.py": f"import os\nimport sys\n{MOVED['pack/a.py']}\n\nclass Unused:\n    pass\n"},
        {"pack/other.py": "def"},
    ],
)  # fmt: skip
def test_where_a_definition_stands_does_not_count(files):
    assert digest(MOVED) == digest(MOVED | files)


@pytest.mark.parametrize("name", ["__name__", "__file__"])
def test_a_definition_that_asks_where_it_stands_changes_with_its_place(name):
    here = PACK | {"pack/a.py": f"X = {name}\n", SCRIPT: "from pack.a import X\nRESULT = X\n"}
    there = PACK | {"pack/b.py": f"X = {name}\n", SCRIPT: "from pack.b import X\nRESULT = X\n"}
    assert digest(here) != digest(there)


OFFERS = PACK | {
    "pack/sub/__init__.py": DOOR,
    "pack/sub/__init__.pyi": "from ._a import f as f\nfrom ._b import g as g\n",
    "pack/sub/_a.py": "def f():\n    return 1\n",
    "pack/sub/_b.py": "import torch\n\n\ndef g():\n    return 2\n",
    SCRIPT: "from pack.sub import f\nRESULT = f()\n",
}


def test_of_a_lazy_door_only_what_is_asked_for_counts():
    assert {name: changes for name, (_, changes) in seen(OFFERS).items()} == {
        "pack/other.py: OTHER = 70": False,
        "pack/other.py:     return 71": False,
        "pack/sub/_a.py:     return 1": True,
        "pack/sub/_b.py:     return 2": False,
    }
    with written(OFFERS) as base:
        closure = {path.relative_to(base).as_posix() for path in import_closure(SCRIPT, base=base)}
    assert closure == {SCRIPT, "pack/sub/__init__.py", "pack/sub/_a.py"}


def test_a_lazy_door_without_its_loader_is_a_module_like_any_other():
    files = OFFERS | {"pack/sub/__init__.py": "def f():\n    return 3\n"}
    changed = {name for name, (_, changes) in seen(files).items() if changes}
    assert changed == {"pack/sub/__init__.py:     return 3"}


def test_entry_points_reach_what_they_mention_alone():
    with written(MOVED) as base:
        tree = SourceTree(base)
        by_function, by_module = (code_digest(root, base=tree) for root in ("pack.a:f", "pack.a"))
        assert by_function != by_module
        assert code_digest("pack.other:unused", base=tree) == code_digest("pack.other:unused", base=base)


def test_an_entry_point_reaches_what_its_packages_run():
    files = PACK | OPEN["what the package runs"]
    (numbered,) = (other for name, other in edits(files) if name == "pack/b.py:     return 1")
    assert digest(files, "pack.sub.a:f") != digest(numbered, "pack.sub.a:f")
    assert digest(files, "pack.state:STATE") == digest(numbered, "pack.state:STATE")
