"""Whether a run may use GPUs, as its jobs on a cluster learn of it.

Snakemake's limits (`--resources gpu=0`) bind the process that submits the jobs. A submitted job reads the workflow
again without them, in the environment of that process.
"""

import os

VARIABLE = "BRAINFED_GPUS"
NONE = "none"


def announce(allowed: bool) -> None:
    """Tell this process and the jobs that it will submit whether there may be GPUs."""
    os.environ[VARIABLE] = "allowed" if allowed else NONE


def gpus(number: int) -> int:
    """The GPUs of a job that can use `number` of them: none in a run that may use none."""
    return 0 if os.environ.get(VARIABLE) == NONE else number
