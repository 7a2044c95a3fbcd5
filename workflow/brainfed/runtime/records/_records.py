"""The records of the jobs of one run: which results are current, which are adopted, and the messages about them.

Snakemake's metadata of a file is replaced by the record beside it. Snakemake compares parameters as a set of values
without names, inputs by their times, and nothing at all where `.snakemake` is gone. Its queries (does metadata exist,
did parameters or inputs change, which check sum had this input) are answered here from the records; its planning is
untouched, and `--rerun-triggers` works as before.
"""

import atexit
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache, wraps
from pathlib import Path
from typing import Any

from snakemake.exceptions import WorkflowError

from brainfed.runtime import UserError, borrowed
from brainfed.runtime.records._contents import Contents, dated_ahead
from brainfed.runtime.records._made import Made, Roles, contents_of, parts_of, read, record_path, roles_of, write

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


class Records:
    """The records of the jobs of one run.

    Args:
        memory: a file for the digests of contents that were read.
        versions: the libraries' versions, where a result of other versions is computed again; empty where it is kept.
        writing: whether this run may write; a dry run adopts nothing.
        rules: the namespace of the rules whose jobs these are; other workflows of the run have namespaces of their own.
        pages: scripts, without their folder and ending, whose outputs list adopted results: they are never
            adopted, and run where anything was.
    """

    def __init__(
        self,
        memory: Path,
        versions: Mapping[str, str],
        writing: Callable[[], bool],
        rules: Mapping[str, Any],
        pages: Collection[str] = (),
    ) -> None:
        self.contents = Contents(memory)
        self.versions = versions
        self.writing = writing
        self.rules = rules
        self.pages = frozenset(pages)
        self.adopting = os.environ.get(ADOPT, "") not in ("", "0")
        self.stale: dict[str, list[str]] = {}
        self.adopted: list[str] = []
        self._judged: dict[tuple[str, ...], tuple[Made | None, str]] = {}
        self._standing: dict[Any, bool] = {}
        self._read = cache(read)

    def concerns(self, job: Any) -> bool:
        """Whether a job is one of ours whose result is in use: an output exists, or a file that was made of one.

        Any of its files may be missing, as in a filtered copy. A result that was made of them is current only where
        they would be.
        """
        own = job.rule.module_globals is self.rules
        return own and GIVEN in dict(job.params.items()) and bool(job.output) and self._stands(job)

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
                "the report counts them.",
                file=sys.stderr,
            )
            self.adopted = []

    def _is_page(self, job: Any) -> bool:
        return Path(str(job.rule.script)).stem in self.pages

    def _stands(self, job: Any) -> bool:
        """Whether any output of a job exists, or of what is below it in the plan."""
        if job not in self._standing:
            below = (self._stands(reader) for reader in list(job.dag.depending[job]))
            self._standing[job] = any(self.contents.exists(str(path)) for path in job.output) or any(below)
        return self._standing[job]

    def _judge(self, job: Any) -> tuple[Made | None, str]:
        outputs = tuple(map(str, job.output))
        if self.contents.doubted is None:
            self.contents.doubted = self._contradicted(job.dag.jobs)
        if outputs not in self._judged:
            parts, inputs = parts_of(job.params.get(GIVEN)), roles_of(job.input)
            made = self._read(outputs[0])
            reason = verdict(made, parts, inputs, outputs, self.contents, self._of_deleted(job), self.versions)
            page = self._is_page(job)
            if page and self.adopted:
                reason = reason or ADOPTED
            if reason and self.adopting and not page and all(map(self.contents.exists, outputs)):
                made = self._adopt(made, parts, inputs, outputs)
                self.adopted.append(outputs[0])
                reason = ""
            elif reason and any(map(self.contents.exists, outputs)):
                self.stale.setdefault(reason, []).append(outputs[0])
            self._judged[outputs] = made, reason
        return self._judged[outputs]

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
        digests = {}
        for writer in job.dag.dependencies[job]:
            made = self._read(str(writer.output[0])) if writer.output else None
            for path, known in (made.outputs if made else {}).items():
                if not self.contents.exists(path):
                    digests[path] = known.digest
        return digests

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


QUERIES = {
    "has_metadata": ("self", "job"),
    "has_outdated_metadata": ("self", "job"),
    "params_changed": ("self", "job", "file"),
    "input_changed": ("self", "job", "file"),
    "input_checksums": ("self", "job", "input_path"),
    "finished": ("self", "job"),
}
"""Snakemake's functions on the metadata of a job, and their parameters."""
UNRECORDED = "results are judged by Snakemake's own records, and computed again where these are not beside them"


def install(records: Records) -> None:
    """Answer Snakemake's queries about jobs with a named mapping of parameters from these records."""
    place = "snakemake.persistence:PersistenceBase"
    if not all(borrowed(f"{place}.{name}", parameters, UNRECORDED) for name, parameters in QUERIES.items()):
        return
    from snakemake.persistence import NO_PARAMS_CHANGE, ParamsChange, PersistenceBase

    theirs = {name: getattr(PersistenceBase, name) for name in QUERIES}

    def judged(job: Any) -> str:
        try:
            return records.judge(job)
        except UserError as error:
            raise WorkflowError(str(error)) from None

    def has_metadata(self: Any, job: Any) -> bool:
        return records.concerns(job) or bool(theirs["has_metadata"](self, job))

    def has_outdated_metadata(self: Any, job: Any) -> bool:
        return not records.concerns(job) and bool(theirs["has_outdated_metadata"](self, job))

    def params_changed(self: Any, job: Any, file: Any = None) -> Any:
        if not records.concerns(job):
            return theirs["params_changed"](self, job, file=file)
        reason = judged(job)
        return ParamsChange(only_new={reason}, files=set(map(str, job.output))) if reason else NO_PARAMS_CHANGE

    def input_changed(self: Any, job: Any, file: Any = None) -> Any:
        if not records.concerns(job):
            return theirs["input_changed"](self, job, file=file)
        changed = judged(job) in (OTHER_ROLES, OTHER_PARTS)
        return changed if file is not None else (output for output in job.output if changed)

    def input_checksums(self: Any, job: Any, input_path: Any) -> set[Any]:
        digest = records.checksum(job, str(input_path)) if records.concerns(job) else None
        if digest is None:
            return set(theirs["input_checksums"](self, job, input_path))
        cached = job.dag.workflow.iocache
        if cached.active:
            # Snakemake would read the file at every start.
            cached.checksum[input_path] = f"sha256:{records.contents.now(str(input_path)).digest}"
        return {f"sha256:{digest}"}

    async def finished(self: Any, job: Any) -> None:
        await theirs["finished"](self, job)
        records.finished(job)

    for ours in (has_metadata, has_outdated_metadata, params_changed, input_changed, input_checksums, finished):
        setattr(PersistenceBase, ours.__name__, ours)
    atexit.register(records.announce)


_tables: list[str] = []
"""Phenotype tables of our workflows, of which a host may import several."""


def keep_whatever_the_dates(rules: Mapping[str, Any], tables: Iterable[str]) -> None:
    """Name the files of a plan that are dated after now, and let Snakemake keep outputs that are older than an input.

    It would delete them at every start anew, as by dates they are not current. Our records compare contents.

    Args:
        rules: all names in the rule files of the workflow; jobs of other rules are judged by Snakemake.
        tables: its phenotype tables, which no job reads: their values are parameters.
    """
    _tables.extend(tables)
    _name_dated_ahead()
    dag = borrowed(
        "snakemake.dag:DAG.check_output_mtime",
        ("self", "job", "expanded_output"),
        "a job ends with an error if one of its inputs is dated after now",
    )
    if dag is None:
        return
    theirs = dag.check_output_mtime

    @wraps(theirs)
    async def check_output_mtime(self: Any, job: Any, expanded_output: Any) -> None:
        if job.rule.module_globals is not rules or GIVEN not in dict(job.params.items()):
            await theirs(self, job, expanded_output)

    dag.check_output_mtime = check_output_mtime


@cache
def _name_dated_ahead() -> None:
    workflow = borrowed("snakemake.workflow:Workflow._build_dag", ("self",), "files dated after now are not named")
    if workflow is None:
        return
    build = workflow._build_dag

    @wraps(build)
    def build_dag(self: Any) -> None:
        build(self)
        if self.is_main_process:
            of_jobs = (str(path) for job in self.dag.jobs for path in (*job.input, *job.output))
            if sentence := dated_ahead(dict.fromkeys((*_tables, *of_jobs))):
                print(sentence, file=sys.stderr)

    workflow._build_dag = build_dag
