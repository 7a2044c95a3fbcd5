"""The shell that jobs start in, how often Snakemake looks for jobs, and how it ends."""

from snakemake.exceptions import WorkflowError

from brainfed.runtime.errors import UserError
from brainfed.runtime.forking.measured import measure_forked_jobs
from brainfed.runtime.forking.shell import job_shell
from brainfed.runtime.jobs.memory import require_room
from brainfed.runtime.scheduling import end_when_asked
from brainfed.runtime.scheduling import keep_one_timer

# `job_needs` gives it to every rule with a script, as the resource `shell_exec`: a prefix would act on all rules,
# those of a workflow that uses this one among them. A job of a cluster is not forked: it is alone on its machine.
try:
    require_room("snakemake", 1)
    JOB_SHELL = job_shell(forks=workflow.is_main_process)
except UserError as error:
    raise WorkflowError(str(error)) from None
measure_forked_jobs()
keep_one_timer()
end_when_asked()
