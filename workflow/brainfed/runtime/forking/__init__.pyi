from ._measured import measure_forked_jobs
from ._shell import job_shell

__all__ = ["measure_forked_jobs", "job_shell"]
