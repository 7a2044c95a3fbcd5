"""A job of this workflow: the runtime's, with the names and remedies of the rules.

A script reads:

    with job(snakemake, gpu=True) as running:
        from brainfed.methods.gcn.train import train_fedgcn  # torch is imported under the lease
        train_fedgcn(..., **running.params.settings, device=running.device)
        write_text(snakemake.output.timing, json.dumps(running.timing()))
"""

from contextlib import AbstractContextManager
from typing import Any

from brainfed.runtime.records.imported import note_sources

note_sources()  # of all modules that follow

from brainfed.runtime.jobs.job import Job, SnakemakeScript, run_job  # noqa: E402
from brainfed.scripting.remedies import smaller  # noqa: E402

NAMING = ("variant", "inpainting", "fused")
"""Wildcards that distinguish the jobs with progress."""


def job(snakemake: SnakemakeScript, *, gpu: bool = False) -> AbstractContextManager[Job]:
    """Run the body as a job of the workflow; see `runtime.jobs.job.run_job`."""
    return run_job(snakemake, gpu=gpu, name_of=job_name, smaller=smaller)


def job_name(wildcards: Any) -> str:
    """The name of the job with these wildcards in lines of progress: `fedgcn, repeat 0`."""
    name = next((wildcards.get(kind) for kind in NAMING if wildcards.get(kind)), "")
    repeat, part = wildcards.get("repeat"), wildcards.get("part")
    further = [f"repeat {repeat}" if repeat else "", part if part != "all" else ""]
    return ", ".join(word for word in [name, *further] if word) if name else ""
