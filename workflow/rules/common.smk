"""The plan of this run, and where its files lie."""

import atexit
import os
import re
import sys
from dataclasses import asdict
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from snakemake.cli import get_argument_parser
from snakemake.exceptions import WorkflowError

try:
    import brainfed
except ModuleNotFoundError as error:
    raise WorkflowError(
        "The package brainfed is not installed in this Python; run `make install` and `. .venv/bin/activate`."
    ) from error

# In another workflow, of which this one is a module, `workflow.basedir` is the other's folder.
if not isinstance(workflow.current_basedir, os.PathLike):
    raise WorkflowError(
        f"module: expected `snakefile` to be a file of the clone that is installed, found {workflow.current_basedir}; "
        f"write {Path(brainfed.__file__).parents[1] / 'Snakefile'}: jobs import their code from there."
    )

BASE = Path(workflow.current_basedir).parent
IS_MODULE = Path(workflow.basedir).resolve() != BASE.resolve()

# Snakemake puts the folder of a workflow first, and this process finds the package there. Jobs look elsewhere.
KEPT = os.environ.get("PYTHONPATH", "").split(os.pathsep)
ELSEWHERE = [folder for folder in sys.path if folder in KEPT or Path(folder).resolve() != BASE.resolve()]
OF_JOBS = PathFinder.find_spec("brainfed", ELSEWHERE)
for imported in (brainfed.__file__, (OF_JOBS and OF_JOBS.origin) or brainfed.__file__):
    if Path(imported).resolve().parents[1] != BASE.resolve():
        raise WorkflowError(
            f"Python imports brainfed from {Path(imported).parent}, not from this workflow, {BASE}; run `make install` "
            f"here and activate this .venv, or name the other's Snakefile: {Path(imported).parents[1] / 'Snakefile'}."
        )

from brainfed.cohort.phenotype import ALL, FIELDS
from brainfed.cohort.sources import FOLDER, list_cohort
from brainfed.configuration import (
    PAPER_FIGURES,
    SITE_JOB,
    clustered_variants,
    counterparts_of,
    cuts,
    drawn_graphs,
    experiments_with,
    explained_variants,
    figure_outline,
    groups_drawn_as,
    ledger_variants,
    load_plan,
    local_counterparts,
    outline_files,
    refuse_rewritten,
    report_files,
    report_outline,
    reports_of,
    scope_inputs,
    shown_variant,
    targets_of,
    truth_file,
)
from brainfed.configuration.layout import (
    BETWEEN,
    CohortInputs,
    Layout,
    atlases_to_fetch,
    cohorts_from,
    cohorts_yielding,
    covariance_pattern,
    data_sets_to_fetch,
    exported_folders,
    graphs_file,
    is_joint,
    kept_parameters,
    lock_files,
    method_file,
    model_file,
    own_files,
    participants_file,
    result_files,
    split_file,
    stage_pattern,
    table_pattern,
    timing_of,
    trains_jointly,
)
from brainfed.configuration.planning import REPEAT, split_content
from brainfed.configuration.stages.graphs import max_generated
from brainfed.configuration.stages.registry import KINDS
from brainfed.digests import SourceTree, code_digest
from brainfed.runtime import UserError, judge_by_records, keep_whatever_the_dates, run_alone, versions
from brainfed.runtime.devices import (
    announce,
    gpus,
    jobs_per_gpu,
    missing_gpu,
    unusable_gpu,
)
from brainfed.runtime.records import Records, state_sources

# Parsed files are remembered beside Snakemake's own records of the runs in this folder.
PARSED = Path.cwd() / ".snakemake" / "brainfed-sources.json"
SOURCES = SourceTree(BASE, memory=PARSED)
if not workflow.dryrun:
    state_sources(SOURCES.contents, PARSED.parent)
atexit.register(lambda: SOURCES.remember() if PARSED.parent.exists() else None)

# A workflow of which this one is a module may put a word before the names of its rules.
FETCHING = any(
    argument.partition(":")[0].endswith(("fetch_abide", "fetch_atlases", "fetch_tudatasets"))
    for argument in sys.argv[1:]
)

try:
    jobs_per_gpu()
    own_files_only = workflow.is_main_process and not IS_MODULE
    if own_files_only:
        refuse_rewritten(workflow.config_settings.config_args)
    PLAN = load_plan(config, workflow.configfiles if own_files_only else [])
except UserError as error:
    raise WorkflowError(str(error)) from None

try:
    LISTINGS = {
        name: list_cohort(name, cohort, cohorts=PLAN.project.cohorts) for name, cohort in PLAN.project.cohorts.items()
    }
except UserError as error:
    if not FETCHING:
        raise WorkflowError(str(error)) from None
    LISTINGS = {}

for cohort in PLAN.project.cohorts:
    folder = f"results/{cohort}/"
    if workflow.modifier.path_modifier.replace_prefix(folder) != folder:
        raise WorkflowError(
            f"module: expected {folder} to stay where it is, found `prefix` or `replace_prefix`; remove it: settings "
            "and reports name these files too. brainfed writes into results/COHORT, results/reports and logs."
        )

PROJECT = PLAN.project
LAYOUT = Layout(PLAN, LISTINGS)
COHORTS = {name: CohortInputs(name, PROJECT.cohorts[name], listing) for name, listing in LISTINGS.items()}
PHENOTYPE_TABLES = [path for listing in LISTINGS.values() for path in listing.tables]


REPORTS = {page: [PLAN.experiments[name] for name in names] for page, names in reports_of(PLAN).items()}


def gpus_allowed():
    """Whether this run may use GPUs: `--resources gpu=N`, or no limit at all."""
    limit = workflow.global_resources.get("gpu")
    return limit is None or limit.value is None or limit.value > 0


keep_whatever_the_dates(globals(), PHENOTYPE_TABLES)
if workflow.is_main_process:
    announce(gpus_allowed())
    run_alone(
        f"{BASE} {PROJECT.project}",
        lambda: lock_files(Path("results"), PROJECT.cohorts, PROJECT.project),
    )
    RECORDS = Records(
        Path(".snakemake") / "brainfed-contents.json",
        versions() if PROJECT.library_versions == "rerun" else {},
        writing=lambda: not workflow.dryrun,
        rules=globals(),
        pages=["write_report"],
    )
    judge_by_records(RECORDS)


def named(**values):
    """A rule's one parameter: its values by name, so that no two of them can trade places unseen."""

    def given(wildcards):
        return {name: value(wildcards) if callable(value) else value for name, value in values.items()}

    return given


# What the labels of a cohort are: parameters of the rules that read or name them.
CLASSES = {
    "target": lambda wc: PROJECT.cohorts[wc.cohort].target,
    "classes": lambda wc: list(PROJECT.cohorts[wc.cohort].classes),
}


def some(target, files, mistake):
    """The input of a target; asked for where the config names nothing for it to make, it stops with a sentence."""
    if files:
        return files
    nothing, name = f"{target}: {mistake}", workflow.modifier.modify_rulename(target)
    # The word may also be the value of an option, as of `--directory`.
    words = sys.argv[1:]
    if name in words and name in get_argument_parser().parse_args(words).targets:
        raise WorkflowError(nothing)

    # A rule of another workflow, of which this one is a module, may need the target.
    def refused(wildcards):
        raise WorkflowError(nothing)

    return refused


def joint(is_joint):
    """The parameters of a job that may train with other sites; none where all sites are in one place."""
    study = PROJECT.study
    if not study.site:
        return {}
    values = {
        "sites": list(study.ordered),
        "site": study.site,
        "noise": study.noise,
        "secure_sums": study.secure_sums,
        "entry": SITE_JOB,
        "code": code_of(SITE_JOB),
    }
    return {"study": lambda wildcards: values if is_joint(wildcards) else {}}


def job_needs(mem_mb, runtime):
    """What every job with a script asks for: memory (MB) and minutes, more with every further attempt; its shell.

    How many attempts there are, a profile's `retries` says. A rule takes one thread where it names no other number.
    """
    return {
        "mem_mb": lambda wildcards, attempt: mem_mb * attempt,
        "runtime": lambda wildcards, attempt: runtime * attempt,
        "shell_exec": JOB_SHELL,
    }


onstart:
    if workflow.is_main_process:
        RECORDS.announce()
    for name, listing in LISTINGS.items():
        if listing.unlisted:
            print(
                f"Cohort {name!r}: {len(listing.unlisted)} series have no row in the phenotype table, the first is "
                f"{listing.unlisted[0]}; add rows if these subjects belong to the cohort.",
                file=sys.stderr,
            )
    if workflow.local_exec and gpus_allowed():
        if missing_gpu():
            print(
                f"{missing_gpu()}; jobs that can use a GPU run on the CPU.",
                file=sys.stderr,
            )
        elif sentence := unusable_gpu():
            print(f"Jobs that use a GPU will fail: {sentence}", file=sys.stderr)


def either(names):
    """A wildcard pattern for these names; one that matches nothing where there are none."""
    return "|".join(re.escape(name) for name in names) or "no-such-name"


wildcard_constraints:
    **{kind.name: r"[^/]+" for kind in KINDS},
    cohort=either(PROJECT.cohorts),
    repeat=r"\d+",
    fold=r"\d+",
    shard=r"shard-\d+",
    experiment=either(PLAN.experiments),
    part=r"all|fold-\d+",
    columns=rf"(?:{either(FIELDS)})(?:{BETWEEN}(?:{either(FIELDS)}))*",
    split=r"[^/]+",
    regime=r"[^/]+",
    variant=r"[^/]+",


# Which trainings keep their models. The regime is the first part of a path that differs: what follows is looked ahead.
WITH_MODEL = (
    "|".join(
        sorted(
            {f"{re.escape(model.regime)}(?=/{re.escape(model.variant.name)}/repeat-{REPEAT}/)" for model in PLAN.models}
        )
    )
    or "no-such-regime"
)


def if_subjects_may_be_shown(path, **registration):
    """Register a table that names subjects for `snakemake --report`, where the config lets it."""
    return report(path, **registration) if PROJECT.report.show_subjects else path


@cache
def code_of(*roots):
    """The digest of a script, and of the entry point that it resolves."""
    return code_digest(*roots, base=SOURCES)


def columns_of(wildcards):
    """The columns of the phenotype table in the participants that a job writes: those in its name, or all."""
    return wildcards.columns.split(BETWEEN) if wildcards.get("columns") else ALL


def class_path(kind):
    return f"{kind.__module__}:{kind.__qualname__}"


def settings_class_of(stage):
    return class_path(type(stage.settings))


def stage_of(wildcards, kind):
    """The stage that a rule's wildcard of the same name as its kind names."""
    return PLAN.stage(kind, wildcards[kind])


def fused_generator(wildcards):
    """The stage of the generator whose neighbours a job adds."""
    return stage_of(wildcards, "fused").parent("inpainting")


def correlations_of(kind):
    """Whether the features behind a stage are correlations."""
    return lambda wc: stage_of(wc, kind).parent("features").settings.correlations


def stage_inputs(kind, part=None):
    """The inputs of the job of one part of a stage, by default the job's wildcard."""
    return lambda wc: LAYOUT.stage_inputs(stage_of(wc, kind), wc.cohort, wc.repeat, part or wc.part)


def experiment_tables():
    """The tables of a run that names nothing."""
    return [
        table_pattern(kind).format(cohort=cohort, experiment=experiment.name)
        for experiment in REPORTS[PROJECT.project]
        for cohort in experiment.cohorts
        for kind in ("", *(("-clients",) if clustered_variants(experiment) else ()))
    ]


def lists_of_issues():
    """The lists of issues of the data behind these tables."""
    experiments = REPORTS[PROJECT.project]
    cohorts = dict.fromkeys(name for experiment in experiments for name in experiment.cohorts)
    return [f"results/{cohort}/cohort/issues.tsv" for cohort in cohorts]


def experiment_of(wildcards):
    return PLAN.experiments[wildcards.experiment]


def files_of_variants(name, chosen=lambda experiment: experiment.variants, repeats=None):
    """One file of every training that a job's experiment compares, or of those of the chosen variants."""

    def files(wildcards):
        experiment = experiment_of(wildcards)
        variants = chosen(experiment)
        return result_files(wildcards.cohort, experiment, name, variants, repeats)

    return files


def names_of_variants(wildcards):
    return [variant.name for variant in experiment_of(wildcards).variants]


def ledgers_of(wildcards):
    """The variants of an experiment, each with the records of what crossed institutions."""
    return ledger_variants(LAYOUT, wildcards.cohort, experiment_of(wildcards))


def variant_of(wildcards):
    return PLAN.variant(wildcards.regime, wildcards.variant)


def kept_of(wildcards):
    """What the job keeps of its models: nothing, but for variants under `models`."""
    if not re.match(WITH_MODEL, "{regime}/{variant}/repeat-{repeat}/".format(**wildcards)):
        return {}
    return kept_parameters(
        variant_of(wildcards),
        COHORTS[wildcards.cohort],
        PLAN.split_of(wildcards.regime),
    )


def entries_of_model(wildcards):
    """The entry points that keep a model, and score by it."""
    kept = kept_of(wildcards)
    return [kept["keep"], kept["score"]] if kept else []


def model_of(wildcards):
    """The kept model of a variant on a cohort."""
    return next(
        model for model in PLAN.models if (model.cohort, model.variant.name) == (wildcards.cohort, wildcards.variant)
    )


def training_of(name):
    """One file of the training that kept a model."""
    return lambda wc: method_file(wc.cohort, model_of(wc).regime, wc.variant, REPEAT, name)


def files_of_the_workflow(folder, *patterns):
    """Files beside the rules; those inside the project keep their names when its folder moves."""
    here = Path.cwd()
    files = sorted(path for pattern in patterns for path in (BASE / folder).glob(pattern))
    return [str(path.relative_to(here) if path.is_relative_to(here) else path) for path in files]


def outline_of(wildcards):
    """The content of a page; empty while data are fetched, as no cohort is listed."""
    return {} if FETCHING else report_outline(LAYOUT, COHORTS, wildcards.page)
