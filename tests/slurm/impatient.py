"""snakemake whose SLURM plugin looks at its jobs every second.

By itself it looks ever more rarely, 10 s later each time, while nothing ends: too rarely for jobs of seconds.
"""

import sys

from snakemake.cli import main
from snakemake_executor_plugin_slurm import Executor

Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, seconds: None)

if __name__ == "__main__":
    sys.exit(main())
