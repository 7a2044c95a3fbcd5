from ._checkpoints import Checkpoint, inputs_digest, Run
from ._memory import require_room
from ._stopping import stop_asked, whole
from ._job import NamedFiles, SnakemakeScript, Job, run_job

__all__ = [
    "Checkpoint", "inputs_digest", "Run",
    "require_room",
    "stop_asked", "whole",
    "NamedFiles", "SnakemakeScript", "Job", "run_job",
]
