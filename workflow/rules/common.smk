"""The plan of this run, and the input functions that read it."""

import re
import sys
from dataclasses import asdict
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

try:
    import brainfed
except ModuleNotFoundError as error:
    raise WorkflowError(
        "The package brainfed is not installed in this Python; run `make install` and `. .venv/bin/activate`."
    ) from error

BASE = Path(workflow.basedir)

if Path(brainfed.__file__).resolve().parents[1] != BASE.resolve():
    raise WorkflowError(
        f"Python imports brainfed from {Path(brainfed.__file__).parent}, not from this workflow; "
        "run `make install` here and activate this .venv."
    )

from brainfed.cohort.sources.freesurfer.files import measure_files
from brainfed.cohort.sources.listing import list_cohort
from brainfed.configuration.planning.figures import knows_truth, scopes_of
from brainfed.configuration.loading import load_plan
from brainfed.configuration.planning.plan import split_content
from brainfed.configuration.shipped import shipped_settings
from brainfed.configuration.twins import find_twins, topology_of, twins_of
from brainfed.configuration.targets import (
    config_of,
    reports_of,
    swept_split,
    targets_of,
)
from brainfed.runtime.devices.lease import missing_gpu, unusable_gpu
from brainfed.runtime.records.digests import SourceTree, code_digest
from brainfed.runtime.errors import UserError
from brainfed.runtime.devices.gpu_limit import announce, gpus
from brainfed.runtime.provenance import versions
from brainfed.runtime.devices.slots import jobs_per_gpu
from brainfed.runtime.records.records import Records
from brainfed.runtime.records.snakemake_records import install

# Parsed files are remembered beside Snakemake's own records of the runs in this folder.
SOURCES = SourceTree(BASE, memory=Path(".snakemake") / "brainfed-sources.json")

FETCHING = any(
    argument.partition(":")[0] in ("fetch_abide", "fetch_atlases")
    for argument in sys.argv[1:]
)

try:
    jobs_per_gpu()
    PLAN = load_plan(config, workflow.configfiles if workflow.is_main_process else [])
except UserError as error:
    raise WorkflowError(str(error)) from None

try:
    LISTINGS = {
        name: list_cohort(name, cohort) for name, cohort in PLAN.project.cohorts.items()
    }
except UserError as error:
    if not FETCHING:
        raise WorkflowError(str(error)) from None
    LISTINGS = {}

PROJECT = PLAN.project


REPORTS = {
    page: [PLAN.experiments[name] for name in names]
    for page, names in reports_of(PLAN).items()
}


def gpus_allowed():
    """Whether this run may use GPUs: `--resources gpu=N`, or no limit at all."""
    limit = workflow.global_resources.get("gpu")
    return limit is None or limit.value is None or limit.value > 0


if workflow.is_main_process:
    announce(gpus_allowed())
    RECORDS = Records(
        Path(".snakemake") / "brainfed-contents.json",
        versions() if PROJECT.library_versions == "rerun" else {},
        writing=lambda: not workflow.dryrun,
        pages=["write_report"],
    )
    install(RECORDS)


def named(**values):
    """A rule's one parameter: its values by name, so that no two of them can trade places unseen."""

    def given(wildcards):
        return {
            name: value(wildcards) if callable(value) else value
            for name, value in values.items()
        }

    return given


def growing(amount):
    """A resource that grows with every further attempt; how many there are, a profile's `retries` says."""
    return lambda wildcards, attempt: amount * attempt


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
    """A wildcard pattern for these names."""
    return "|".join(re.escape(name) for name in names)


wildcard_constraints:
    cohort=either(PROJECT.cohorts),
    repeat=r"\d+",
    fold=r"\d+",
    shard=r"shard-\d+",
    experiment=either(PLAN.experiments),
    part=r"all|fold-\d+",
    split=r"[^/]+",
    features=r"[^/]+",
    graph=r"[^/]+",
    inpainting=r"[^/]+",
    fused=r"[^/]+",
    regime=r"[^/]+",
    variant=r"[^/]+",


def if_subjects_may_be_shown(path, **registration):
    """Register a table that names subjects for `snakemake --report`, where the config lets it."""
    return report(path, **registration) if PROJECT.report.show_subjects else path


def folds_of(cohort, split):
    """Number of folds of a split: its setting, or the number of the cohort's sites that can be scored."""
    settings = PLAN.splits[split]
    if settings.validation == "leave_one_site_out":
        return len(LISTINGS[cohort].labelled_sites)
    return settings.folds


def split_file(wildcards, split):
    return (
        f"results/{wildcards.cohort}/splits/{split}/repeat-{wildcards.repeat}.parquet"
    )


def split_of(wildcards):
    return split_file(wildcards, PLAN.regimes[wildcards.regime].split)


def feature_file(wildcards, stage, fold):
    folder = f"results/{wildcards.cohort}/features/{stage.name}"
    if not stage.fitted:
        return f"{folder}/all.safetensors"
    return f"{folder}/repeat-{wildcards.repeat}/fold-{fold}.safetensors"


def reads_participants(settings):
    """Whether features are fitted on more than what was measured: on diagnoses, or on sites, ages and sexes."""
    return settings.reads_labels or settings.harmonise != "none"


def feature_files(wildcards, stage):
    """What a method reads: nothing, one file for all folds, or one a fold."""
    if stage is None:
        return []
    if not stage.fitted:
        return [feature_file(wildcards, stage, 0)]
    return [
        feature_file(wildcards, stage, fold)
        for fold in range(folds_of(wildcards.cohort, stage.split))
    ]


def parts_of(cohort, stage):
    """The parts of a graph, or of what is made of one: all folds in one, or one a fold; none where there is none."""
    if stage is None:
        return []
    if not stage.by_fold:
        return ["all"]
    return [f"fold-{fold}" for fold in range(folds_of(cohort, stage.split))]


def graph_files(wildcards, stage):
    """What a method reads: nothing, one graph for all folds, or one a fold."""
    return [
        f"results/{wildcards.cohort}/graphs/{stage.name}/repeat-{wildcards.repeat}/{part}.safetensors"
        for part in parts_of(wildcards.cohort, stage)
    ]


def fused_files(wildcards, stage):
    """The same of graphs with generated nodes."""
    return [
        f"results/{wildcards.cohort}/fused/{stage.name}/repeat-{wildcards.repeat}/{part}.safetensors"
        for part in parts_of(wildcards.cohort, stage)
    ]


def part_of_features(wildcards, stage):
    """The features that one part of a graph is made of."""
    return feature_file(wildcards, stage, wildcards.part.removeprefix("fold-"))


def part_of_graph(wildcards, stage):
    return f"results/{wildcards.cohort}/graphs/{stage.name}/repeat-{wildcards.repeat}/{wildcards.part}.safetensors"


def inpainting_of(wildcards):
    """The generator of a fused graph."""
    return PLAN.fused[wildcards.fused].inpainting


def graph_features(wildcards):
    return part_of_features(wildcards, PLAN.graphs[wildcards.graph].features)


def method_files(wildcards, experiment, name):
    """One file of every variant and repeat of an experiment."""
    return [
        f"results/{wildcards.cohort}/methods/{experiment.regime.name}/{variant.name}/repeat-{repeat}/{name}"
        for variant in experiment.variants
        for repeat in range(experiment.repeats)
    ]


@cache
def code_of(*roots):
    """The digest of a script, and of the entry point that it resolves."""
    return code_digest(*roots, base=SOURCES)


def class_path(kind):
    return f"{kind.__module__}:{kind.__qualname__}"


def experiment_tables():
    """The tables of a run that names nothing."""
    return [
        f"results/{cohort}/tables/{experiment.name}.tsv"
        for experiment in REPORTS[PROJECT.project]
        for cohort in experiment.cohorts
    ]


def lists_of_issues():
    """What is worth knowing of the data behind these tables."""
    experiments = REPORTS[PROJECT.project]
    cohorts = dict.fromkeys(name for one in experiments for name in one.cohorts)
    return [f"results/{cohort}/cohort/issues.tsv" for cohort in cohorts]


def variant_of(wildcards):
    return PLAN.variant(wildcards.regime, wildcards.variant)
