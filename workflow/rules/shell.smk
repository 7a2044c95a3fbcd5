"""The shell that Snakemake starts a job in, how often Snakemake looks for jobs, and how it ends."""

from snakemake.exceptions import WorkflowError

from brainfed.runtime.errors import UserError
from brainfed.runtime.forking.measured import measure_forked_jobs
from brainfed.runtime.forking.prefix import forking_prefix
from brainfed.runtime.scheduling.ending import end_when_asked
from brainfed.runtime.scheduling.timer import keep_one_timer

# A job is one command, its script. It takes the place of the shell, as it does by itself from bash 5.1 on: an older one
# would die of a signal to all processes (Ctrl-C, a cluster that wants its node back) while the job ends its round, and
# Snakemake would go on without the job. In a rule with `shell:` nothing after its first command would run.
# On Linux the command is passed to a helper process that has imported what jobs import, and forks them
# (`runtime.forking`). A job of a cluster starts by itself: it is alone on its machine.
try:
    FORKING = forking_prefix() if workflow.is_main_process else ""
except UserError as error:
    raise WorkflowError(str(error)) from None
shell.prefix(f"set -euo pipefail; exec {FORKING}")
measure_forked_jobs()
keep_one_timer()
end_when_asked()
