"""The shell that Snakemake starts a job in."""

# A job is one command, its script. It takes the place of the shell, as it does by itself from bash 5.1 on: an older one
# would die of a signal to all processes (Ctrl-C, a cluster that wants its node back) while the job ends its round, and
# Snakemake would go on without the job. In a rule with `shell:` nothing after its first command would run.
shell.prefix("set -euo pipefail; exec ")
