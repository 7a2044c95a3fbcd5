"""The commands of the documents: those of shell blocks, and those within sentences and tables."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
PROGRAMS = ("snakemake", "brainfed", "make", "python", "pip", "conda", "git", "cd", ".")
"""First words of what a reader types into a shell."""
ASSIGNMENT = re.compile(r"[A-Z][A-Z0-9_]*=\S*")


@dataclass(frozen=True)
class Command:
    """One command of a document.

    Attributes:
        document: path of the document from the repository.
        line: number of its first line.
        text: as it is written, on one line and without its comment.
        config: content of the config that the document calls config/mystudy.yaml, as YAML; empty if it shows none.
        in_block: whether it stands in a shell block, where everything is a command.
    """

    document: str
    line: int
    text: str
    config: str = ""
    in_block: bool = True

    @property
    def place(self) -> str:
        """Document and line, as an editor opens them."""
        return f"{self.document}:{self.line}"

    @property
    def words(self) -> list[str]:
        """The words that a shell would pass on, without assignments to environment variables."""
        words = shlex.split(self.text)
        return words[len(self.environment) :]

    @property
    def environment(self) -> dict[str, str]:
        """The variables that are set for this command alone."""
        found = {}
        for word in shlex.split(self.text):
            if not ASSIGNMENT.fullmatch(word):
                break
            name, _, value = word.partition("=")
            found[name] = value
        return found


def documents(repository: Path) -> list[Path]:
    """The documents that a reader is sent to: of every folder but those that a run or an installation writes."""
    folders = [repository / name for name in ("docs", "config", "benchmarks")]
    return sorted([*repository.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))])


def commands_of(path: Path, repository: Path) -> list[Command]:
    """All commands of a document, in their order.

    A shell block holds one command a line, which a backslash continues; a block without a language is one if its first
    line begins with a program. A config with `project: mystudy` belongs to the commands below it, up to the next one.
    """
    text = path.read_text(encoding="utf-8")
    name = path.relative_to(repository).as_posix()
    found, shown = [], ""
    blocks = list(FENCE.finditer(text))
    ends = [0, *(block.end() for block in blocks)]
    starts = [*(block.start() for block in blocks), len(text)]
    for end, start, block in zip(ends, starts, [*blocks, None], strict=True):
        for line, command in _within(text[end:start]):
            found.append(Command(name, _line(text, end) + line, command, shown, in_block=False))
        if block is None:
            break
        language, content = block.groups()
        if language == "yaml" and re.search(r"^project: mystudy$", content, re.MULTILINE):
            shown = content
        elif language in ("bash", "sh", "shell", "console") or (not language and _is_shell(content)):
            first = _line(text, block.start(2))
            found += [Command(name, first + line, command, shown) for line, command in _lines(content)]
    return found


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _is_shell(content: str) -> bool:
    first = content.split()
    return bool(first) and (first[0] in PROGRAMS or bool(ASSIGNMENT.fullmatch(first[0])))


def _lines(block: str) -> Iterator[tuple[int, str]]:
    """(line within the block, command) of each command, without comments."""
    number = 0
    for whole in re.split(r"(?<!\\)\n", block):
        joined = " ".join(whole.replace("\\\n", " ").split())
        command = re.sub(r"(^|\s)#.*$", "", joined).strip()
        if command:
            yield number, command
        number += whole.count("\n") + 1


def _within(prose: str) -> Iterator[tuple[int, str]]:
    """(line, command) of the code within sentences and tables that begins with a program and goes on."""
    for match in INLINE.finditer(prose):
        words = match[1].split()
        program = next((word for word in words if not ASSIGNMENT.fullmatch(word)), "")
        if len(words) > 1 and program in PROGRAMS:
            yield prose.count("\n", 0, match.start()), " ".join(words)
