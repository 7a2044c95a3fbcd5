"""Files that are dated after now: a run says so, and they are no reason to lose what a job has computed."""

import sys
from collections.abc import Mapping
from typing import Any

from brainfed.runtime.records.contents import dated_ahead
from brainfed.runtime.records.records import GIVEN

TABLES = "PHENOTYPE_TABLES"
_ours = list[Mapping[str, Any]]()
"""Names in the rule files of each of our workflows, of which a host may import several."""


def keep_whatever_the_dates(rules: Mapping[str, Any]) -> None:
    """Name the files of a plan that are dated after now, and let Snakemake keep outputs that are older than an input.

    It would delete them at every start anew, as by dates they are not current. Our records compare contents.

    Args:
        rules: all names in the rule files of the workflow, its phenotype tables under `TABLES`; jobs of other rules are
            judged by Snakemake.
    """
    from snakemake.dag import DAG
    from snakemake.workflow import Workflow

    _ours.append(rules)
    theirs, build = DAG.check_output_mtime, Workflow._build_dag
    if theirs.__module__ == __name__:
        return

    def build_dag(workflow: Any) -> None:
        build(workflow)
        if workflow.is_main_process:
            of_jobs = (str(path) for job in workflow.dag.jobs for path in (*job.input, *job.output))
            # No job reads a phenotype table: its values are parameters.
            tables = (path for rules in _ours for path in rules[TABLES])
            if said := dated_ahead(dict.fromkeys((*tables, *of_jobs))):
                print(said, file=sys.stderr)

    async def check_output_mtime(dag: Any, job: Any, outputs: Any) -> None:
        own = any(job.rule.module_globals is rules for rules in _ours)
        if not own or GIVEN not in dict(job.params.items()):
            await theirs(dag, job, outputs)

    DAG.check_output_mtime, Workflow._build_dag = check_output_mtime, build_dag
