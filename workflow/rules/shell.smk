"""The shell that jobs start in, how often Snakemake looks for jobs, and how it ends."""

from snakemake.exceptions import WorkflowError

from brainfed.runtime import UserError, end_when_asked, keep_one_timer
from brainfed.runtime.jobs import require_room

try:
    from brainfed.forking import job_shell
except ModuleNotFoundError as error:  # The package can be deleted: jobs then start in Snakemake's own shell.
    if error.name != "brainfed.forking":
        raise
    job_shell = lambda forks: None

# `job_needs` gives it to every rule with a script, as the resource `shell_exec`: a prefix would act on all rules,
# those of a workflow that uses this one among them. A job of a cluster is not forked: it is alone on its machine.
try:
    require_room("snakemake", 1)
    JOB_SHELL = job_shell(forks=workflow.is_main_process)
except UserError as error:
    raise WorkflowError(str(error)) from None
keep_one_timer()
end_when_asked()
