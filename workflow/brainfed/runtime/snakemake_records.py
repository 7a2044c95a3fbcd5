"""Snakemake's memory of what made a file, replaced by the record that lies beside it.

Snakemake compares parameters as a set of values without names, inputs by their times, and nothing at all where
`.snakemake` is gone. Its own questions (is there a memory of this job, did parameters or inputs change, which check
sum had this input) are answered here from `runtime.made`; how it plans is untouched, and `--rerun-triggers` keeps its
sense.
"""

import atexit
import os
import sys
from collections.abc import Callable, Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from snakemake.persistence import NO_PARAMS_CHANGE, ParamsChange, PersistenceBase

from brainfed.runtime.contents import Contents
from brainfed.runtime.judging import CHANGED, NO_RECORD, OTHER_INPUT, OTHER_PARTS, OTHER_ROLES, OTHER_VERSIONS, verdict
from brainfed.runtime.made import Made, contents_of, parts_of, read, roles_of, write

ADOPT = "BRAINFED_ADOPT"
"""Set to 1: results are taken for those of today's config, code and data, whatever made them."""
GIVEN = "given"
"""The one parameter of a rule: a mapping of names to values."""
ADOPTED = "results behind them are taken as they are"
UNEXPECTED = (NO_RECORD, CHANGED, OTHER_INPUT, OTHER_VERSIONS)
"""What a person cannot know from what they edited."""


class Records:
    """The records of the jobs of one run.

    Args:
        memory: a file for the digests of contents that were read.
        versions: the libraries' versions where a result of others is computed again; empty where it is kept.
        writing: whether this run may write; a dry run adopts nothing.
        pages: rules whose outputs say what was adopted: they are adopted never, and run where anything was.
    """

    def __init__(
        self, memory: Path, versions: Mapping[str, str], writing: Callable[[], bool], pages: Collection[str] = ()
    ) -> None:
        self.pages = frozenset(pages)
        self.contents = Contents(memory)
        self.versions = versions
        self.writing = writing
        self.adopting = os.environ.get(ADOPT, "") not in ("", "0")
        self.stale: dict[str, list[str]] = {}
        self.adopted: list[str] = []
        self._judged: dict[tuple[str, ...], tuple[Made | None, str]] = {}
        self._read = cache(read)

    def concerns(self, job: Any) -> bool:
        """Whether a job is one of ours, with outputs that all exist."""
        return (
            GIVEN in dict(job.params.items())
            and bool(job.output)
            and all(map(self.contents.exists, map(str, job.output)))
        )

    def judge(self, job: Any) -> str:
        """Why the outputs of a job are not current; empty where they are, or are taken to be."""
        return self._judge(job)[1]

    def checksum(self, job: Any, path: str) -> str | None:
        """SHA-256 of an input when the job ran."""
        made = (
            self._judge(job)[0] if self.adopting and job.rule.name not in self.pages else self._read(str(job.output[0]))
        )
        held = made.contents.get(path) if made else None
        return held.digest if held and held.digest else None

    def _judge(self, job: Any) -> tuple[Made | None, str]:
        outputs = tuple(map(str, job.output))
        if outputs not in self._judged:
            parts, inputs = parts_of(job.params.get(GIVEN)), roles_of(job.input)
            made = self._read(outputs[0])
            found = verdict(made, parts, inputs, outputs, self.contents, self.versions)
            page = job.rule.name in self.pages
            if page and self.adopted:
                found = found or ADOPTED
            if found and self.adopting and not page:
                made = self._adopt(made, parts, inputs, outputs)
                self.adopted.append(outputs[0])
                found = ""
            elif found:
                self.stale.setdefault(found, []).append(outputs[0])
            self._judged[outputs] = made, found
        return self._judged[outputs]

    def _adopt(self, made: Made | None, parts: Mapping[str, str], inputs: Any, outputs: tuple[str, ...]) -> Made:
        read_now = contents_of(path for _, paths in inputs for path in paths)
        adopted = Made(parts, inputs, read_now, contents_of(outputs), made.versions if made else {}, adopted=True)
        if self.writing():
            write(adopted)
        return adopted

    def announce(self) -> None:
        """Say once what is computed again, or kept, for reasons that no edit of the config shows."""
        self.contents.save()
        for reason in UNEXPECTED:
            files = self.stale.pop(reason, [])
            if files:
                several = f"{len(files)} results are" if len(files) > 1 else "1 result is"
                print(
                    f"{several} computed again, the first is {files[0]}: {reason}. {ADOPT}=1 in the environment keeps "
                    "such results as they are.",
                    file=sys.stderr,
                )
        if self.adopted:
            done = "kept as they are" if self.writing() else "would be kept as they are"
            print(
                f"{len(self.adopted)} result(s) {done} because {ADOPT} is set, the first is {self.adopted[0]}; "
                "the report says so.",
                file=sys.stderr,
            )
            self.adopted = []


def install(records: Records) -> None:
    """Answer Snakemake's questions about jobs with a named mapping of parameters from these records."""
    theirs = {
        name: getattr(PersistenceBase, name)
        for name in ("has_metadata", "has_outdated_metadata", "params_changed", "input_changed", "input_checksums")
    }

    def has_metadata(self: Any, job: Any) -> bool:
        return records.concerns(job) or bool(theirs["has_metadata"](self, job))

    def has_outdated_metadata(self: Any, job: Any) -> bool:
        return not records.concerns(job) and bool(theirs["has_outdated_metadata"](self, job))

    def params_changed(self: Any, job: Any, file: Any = None) -> Any:
        if not records.concerns(job):
            return theirs["params_changed"](self, job, file=file)
        found = records.judge(job)
        return ParamsChange(only_new={found}, files=set(map(str, job.output))) if found else NO_PARAMS_CHANGE

    def input_changed(self: Any, job: Any, file: Any = None) -> Any:
        if not records.concerns(job):
            return theirs["input_changed"](self, job, file=file)
        changed = records.judge(job) in (OTHER_ROLES, OTHER_PARTS)
        return changed if file is not None else (found for found in job.output if changed)

    def input_checksums(self: Any, job: Any, input_path: Any) -> set[Any]:
        found = records.checksum(job, str(input_path)) if records.concerns(job) else None
        return {f"sha256:{found}"} if found else set(theirs["input_checksums"](self, job, input_path))

    for ours in (has_metadata, has_outdated_metadata, params_changed, input_changed, input_checksums):
        setattr(PersistenceBase, ours.__name__, ours)
    atexit.register(records.announce)
