"""Decide which results are current: those whose record agrees with the code, settings and files of today."""

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from brainfed.runtime import UserError
from brainfed.runtime.records._made import (
    Contents,
    Made,
    Roles,
    contents_of,
    parts_of,
    read,
    record_path,
    roles_of,
    write,
)

NO_RECORD = "no record lies beside them"
CHANGED = "they were changed, or exchanged, after they were made"
OTHER_INPUT = "the content of their inputs has changed"
OTHER_PARTS = "other settings or other code made them"
OTHER_ROLES = "other inputs made them"
OTHER_VERSIONS = "other versions of the libraries made them"
ADOPT = "BRAINFED_ADOPT"
"""Set to 1: existing results are adopted as those of today's config, code and data."""
GIVEN = "given"
"""The one parameter of a rule: a mapping of names to values."""
ADOPTED = "they are made of adopted results"
EDITED = (OTHER_ROLES, OTHER_PARTS)
"""Reasons that are an edit of the config, or of code."""
UNEXPECTED = (NO_RECORD, CHANGED, OTHER_INPUT, OTHER_VERSIONS)
"""Reasons other than an edit of the config."""


def verdict(
    made: Made | None,
    parts: Mapping[str, str],
    inputs: Roles,
    outputs: Sequence[str],
    contents: Contents,
    deleted: Mapping[str, str],
    versions: Mapping[str, str],
) -> str:
    """Why the outputs of a job are not current; empty where they are.

    Args:
        made: the record beside them, if there is one.
        parts: digests of the parameters of today.
        inputs: the job's inputs of today, by role.
        outputs: its outputs; one that does not exist was deleted after it was used.
        contents: of the files as they are.
        deleted: the digests of inputs that do not exist any more, as far as records have them.
        versions: those of today where a result of other versions is not current; empty: versions do not count.
    """
    if made is None or set(made.outputs) != set(outputs):
        return NO_RECORD
    if dict(made.parts) != dict(parts):
        return OTHER_PARTS
    if made.inputs != inputs:
        return OTHER_ROLES
    if not all(contents.is_still(path, made.outputs[path]) for path in outputs if contents.exists(path)):
        return CHANGED
    for path in (path for _, paths in inputs for path in paths):
        if path not in made.contents:
            return OTHER_INPUT
        if contents.exists(path):
            if not contents.is_still(path, made.contents[path]):
                return OTHER_INPUT
        elif deleted.get(path, made.contents[path].digest) != made.contents[path].digest:
            return OTHER_INPUT
    if any(versions.get(name, version) != version for name, version in made.versions.items()):
        return OTHER_VERSIONS
    return ""


def is_one_of(rules: Mapping[str, Any], job: Any) -> bool:
    """Whether a job is of the rules in this namespace, and has the one parameter that its record is judged by."""
    return job.rule.module_globals is rules and GIVEN in dict(job.params.items())


@dataclass(eq=False)
class Records:
    """The records of the jobs of one run.

    Attributes:
        memory: a file for the digests of contents that were read.
        versions: the libraries' versions, where a result of other versions is computed again; empty where it is kept.
        writing: whether this run may write; a dry run adopts nothing.
        rules: the namespace of the rules whose jobs these are; other workflows of the run have namespaces of their own.
        pages: scripts, without their folder and ending, whose outputs list adopted results: they are never
            adopted, and run where anything was.
    """

    memory: Path
    versions: Mapping[str, str]
    writing: Callable[[], bool]
    rules: Mapping[str, Any]
    pages: Collection[str] = ()

    def __post_init__(self) -> None:
        self.contents = Contents(self.memory)
        self.adopting = os.environ.get(ADOPT, "") not in ("", "0")
        self.stale: dict[str, list[str]] = {}
        self.adopted: list[str] = []
        self._judged: dict[tuple[str, ...], tuple[Made | None, str]] = {}
        self._read = cache(read)
        self._stands = cache(self._is_or_has_readers)

    def concerns(self, job: Any) -> bool:
        """Whether a job is one of ours whose result is in use: an output exists, or a file that was made of one.

        Any of its files may be missing, as in a filtered copy. A result that was made of them is current only where
        they would be.
        """
        return is_one_of(self.rules, job) and bool(job.output) and self._stands(job)

    def judge(self, job: Any) -> str:
        """Why the outputs of a job are not current; empty where they are current or adopted."""
        return self._judge(job)[1]

    def checksum(self, job: Any, path: str) -> str | None:
        """SHA-256 of an input when the job ran."""
        adopting = self.adopting and not self._is_page(job)
        made = self._judge(job)[0] if adopting else self._read(str(job.output[0]))
        known = made.contents.get(path) if made else None
        return known.digest if known and known.digest else None

    def finished(self, job: Any) -> None:
        """Cache the outputs that a job has just written: Snakemake gives them another time when it takes them over."""
        made = read(str(job.output[0])) if job.output else None
        for path, known in (made.outputs if made else {}).items():
            self.contents.remember(path, known)

    def announce(self) -> None:
        """Print once which results are computed again, or kept, for reasons other than an edit of the config."""
        self.contents.save()
        for reason in UNEXPECTED:
            if files := self.stale.pop(reason, []):
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
                "the report counts them.",
                file=sys.stderr,
            )
            self.adopted = []

    def _is_page(self, job: Any) -> bool:
        return Path(str(job.rule.script)).stem in self.pages

    def _is_or_has_readers(self, job: Any) -> bool:
        """Whether any output of a job exists, or of what is below it in the plan."""
        return any(self.contents.exists(str(path)) for path in job.output) or any(
            self._stands(reader) for reader in list(job.dag.depending[job])
        )

    def _judge(self, job: Any) -> tuple[Made | None, str]:
        outputs = tuple(map(str, job.output))
        if self.contents.doubted is None:
            self.contents.doubted = self._contradicted(job.dag.jobs)
        if outputs not in self._judged:
            self._judged[outputs] = self._made_and_reason(job, outputs)
        return self._judged[outputs]

    def _made_and_reason(self, job: Any, outputs: tuple[str, ...]) -> tuple[Made | None, str]:
        parts, inputs = parts_of(job.params.get(GIVEN)), roles_of(job.input)
        made = self._read(outputs[0])
        reason = verdict(made, parts, inputs, outputs, self.contents, self._of_deleted(job), self.versions)
        page = self._is_page(job)
        if page and self.adopted:
            reason = reason or ADOPTED
        if reason and self.adopting and not page and all(map(self.contents.exists, outputs)):
            adopted = self._adopt(made, parts, inputs, outputs)
            self.adopted.append(outputs[0])
            return adopted, ""
        if reason and any(map(self.contents.exists, outputs)):
            self.stale.setdefault(reason, []).append(outputs[0])
        return made, reason

    def _contradicted(self, jobs: Iterable[Any]) -> frozenset[str]:
        """The files of which two records name different contents: a disk may change a byte and no time."""
        digests: dict[str, str] = {}
        contradicted = set()
        for made in filter(None, (self._read(str(job.output[0])) for job in jobs if job.output)):
            for path, known in (*made.outputs.items(), *made.contents.items()):
                if known.digest and digests.setdefault(path, known.digest) != known.digest:
                    contradicted.add(path)
        return frozenset(contradicted)

    def _of_deleted(self, job: Any) -> dict[str, str]:
        """Input that was deleted -> the digest that it had, by the record of the job that wrote it."""
        writers = (writer for writer in job.dag.dependencies[job] if writer.output)
        records = filter(None, (self._read(str(writer.output[0])) for writer in writers))
        outputs = (each for made in records for each in made.outputs.items())
        return {path: known.digest for path, known in outputs if not self.contents.exists(path)}

    def _adopt(self, made: Made | None, parts: Mapping[str, str], inputs: Roles, outputs: tuple[str, ...]) -> Made:
        read_now = contents_of(path for _, paths in inputs for path in paths)
        adopted = Made(parts, inputs, read_now, contents_of(outputs), made.versions if made else {}, adopted=True)
        if self.writing():
            try:
                write(adopted)
            except OSError as error:
                raise UserError(
                    f"{record_path(outputs[0])}: {ADOPT} is set and the record could not be written ({error}); make "
                    "the folder writable, or copy the results."
                ) from error
        return adopted
