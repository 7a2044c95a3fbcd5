"""Snakemake's metadata of a file, replaced by the record beside it.

Snakemake compares parameters as a set of values without names, inputs by their times, and nothing at all where
`.snakemake` is gone. Its queries (does metadata exist, did parameters or inputs change, which check sum had this
input) are answered here from `runtime.records.records`; its planning is untouched, and `--rerun-triggers` works as
before.
"""

import atexit
from typing import Any

from snakemake.exceptions import WorkflowError
from snakemake.persistence import NO_PARAMS_CHANGE, ParamsChange, PersistenceBase

from brainfed.runtime.errors import UserError
from brainfed.runtime.records.judging import OTHER_PARTS, OTHER_ROLES
from brainfed.runtime.records.records import Records


def install(records: Records) -> None:
    """Answer Snakemake's queries about jobs with a named mapping of parameters from these records."""
    queries = (
        "has_metadata",
        "has_outdated_metadata",
        "params_changed",
        "input_changed",
        "input_checksums",
        "finished",
    )
    theirs = {name: getattr(PersistenceBase, name) for name in queries}

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
        found = judged(job)
        return ParamsChange(only_new={found}, files=set(map(str, job.output))) if found else NO_PARAMS_CHANGE

    def input_changed(self: Any, job: Any, file: Any = None) -> Any:
        if not records.concerns(job):
            return theirs["input_changed"](self, job, file=file)
        changed = judged(job) in (OTHER_ROLES, OTHER_PARTS)
        return changed if file is not None else (found for found in job.output if changed)

    def input_checksums(self: Any, job: Any, input_path: Any) -> set[Any]:
        found = records.checksum(job, str(input_path)) if records.concerns(job) else None
        if found is None:
            return set(theirs["input_checksums"](self, job, input_path))
        cached = job.dag.workflow.iocache
        if cached.active:
            # Snakemake would read the file at every start.
            cached.checksum[input_path] = f"sha256:{records.contents.now(str(input_path)).digest}"
        return {f"sha256:{found}"}

    async def finished(self: Any, job: Any) -> None:
        await theirs["finished"](self, job)
        records.finished(job)

    for ours in (has_metadata, has_outdated_metadata, params_changed, input_changed, input_checksums, finished):
        setattr(PersistenceBase, ours.__name__, ours)
    atexit.register(records.announce)
