"""Whether a run may use GPUs, passed to its jobs on a cluster in an environment variable.

Snakemake's limits (`--resources gpu=0`) bind the process that submits the jobs. A submitted job reads the workflow
again without them, in the environment of that process.
"""

import os

VARIABLE = "BRAINFED_GPUS"
NONE = "none"


def announce(allowed: bool) -> None:
    """Set whether this process and the jobs that it submits may use GPUs."""
    os.environ[VARIABLE] = "allowed" if allowed else NONE


def gpus(number: int) -> int:
    """GPUs to request for a job that can use `number`: none in a run that may use none."""
    return 0 if os.environ.get(VARIABLE) == NONE else number
