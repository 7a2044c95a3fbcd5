"""Options of the scripts in benchmarks/: those that its README names, and those that a script declares."""

import ast
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SPAN = re.compile(r"`([^`]+)`")
SCRIPT = re.compile(r"(?:benchmarks/)?(\w+\.py)\b")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@dataclass(frozen=True)
class NamedOption:
    """An option that a document names, of the script that it named last."""

    line: int
    script: str
    option: str


def named_options(document: Path, folder: Path) -> list[NamedOption]:
    """The options within code of a document that follow the name of a script in `folder`."""
    text = document.read_text(encoding="utf-8")
    found: list[NamedOption] = []
    script = ""
    for span in SPAN.finditer(text):
        for name in SCRIPT.findall(span[1]):
            script = name if (folder / name).exists() else script
        line = text.count("\n", 0, span.start()) + 1
        found += [NamedOption(line, script, option) for option in OPTION.findall(span[1]) if script]
    return found


def unknown_options(script: Path, options: set[str]) -> set[str]:
    """Those of the options that a script's parser does not have."""
    if options <= _literal_options(script):
        return set()
    # Some parsers add options in a loop over names, which their help alone shows.
    done = subprocess.run([sys.executable, str(script), "--help"], text=True, capture_output=True, check=True)
    return options - set(OPTION.findall(done.stdout))


def _literal_options(script: Path) -> set[str]:
    """The options that a script names as text where it adds arguments."""
    tree = ast.parse(script.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    words = [word for call in calls if call.func.attr == "add_argument" for word in call.args]
    return {word.value for word in words if isinstance(word, ast.Constant)}
