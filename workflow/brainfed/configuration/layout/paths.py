"""Paths of the artefacts, from their names."""

from collections.abc import Iterable
from pathlib import PurePosixPath

from brainfed.cohort.phenotype.columns import in_order
from brainfed.configuration.names import TABLE_ENDINGS
from brainfed.configuration.stages.features import covariances_folder
from brainfed.configuration.stages.registry import kind_of
from brainfed.configuration.stages.stage import Stage

ARTEFACT = ".safetensors"
TIMING = "-timing.json"
BETWEEN = "-"
"""Between the columns in a name of participants."""


def cohort_file(cohort: str, name: str) -> str:
    """An artefact that describes a cohort, such as `participants.parquet`."""
    return f"results/{cohort}/cohort/{name}"


def participants_file(cohort: str, columns: Iterable[str]) -> str:
    """The participants with some columns of the phenotype table, as jobs declare what they read of it."""
    return cohort_file(cohort, f"participants/{BETWEEN.join(in_order(columns))}.parquet")


def graphs_file(cohort: str) -> str:
    """The graphs of a cohort whose samples they are from the start."""
    return f"results/{cohort}/graphs-read/graphs{ARTEFACT}"


def split_file(cohort: str, split: str, repeat: int | str) -> str:
    """Institutions and folds of one repeat."""
    return f"results/{cohort}/splits/{split}/repeat-{repeat}.parquet"


def table_pattern(ending: str = "") -> str:
    """Output path of a table of an experiment, with wildcards.

    Raises:
        ValueError: no ending of `names.TABLE_ENDINGS`: an experiment could have the name of this table.
    """
    if ending not in ("", *TABLE_ENDINGS):
        raise ValueError(f"{ending!r} is not in TABLE_ENDINGS; add it there")
    return f"results/{{cohort}}/tables/{{experiment}}{ending}.tsv"


def stage_file(stage: Stage, cohort: str, repeat: int | str, part: str = "all") -> str:
    """One part of a stage; the path has a part if every fold has one, a repeat if the stage depends on a split."""
    own = stage.kind.file.format(part=part if stage.by_fold else "all")
    return f"results/{cohort}/{stage.kind.folder}/{stage.name}/{f'repeat-{repeat}/' if stage.split else ''}{own}"


def stage_pattern(kind: str, *, part: str = "{part}", repeat: str = "repeat-{repeat}/", name: str = "") -> str:
    """Output path of the stages of a kind, with wildcards; with a name, another file of the part's folder."""
    declared = kind_of(kind)
    path = f"results/{{cohort}}/{declared.folder}/{{{kind}}}/{repeat}{declared.file.replace('{part}', part)}"
    return beside(path, name) if name else path


def beside(path: str, name: str) -> str:
    """Another file in the folder of an artefact."""
    return str(PurePosixPath(path).with_name(name))


def timing_of(path: str) -> str:
    """The timing file of an artefact, in the same folder."""
    return path.removesuffix(ARTEFACT) + TIMING


def covariance_pattern() -> str:
    """Output path of the covariances of one shard, with wildcards."""
    return f"results/{{cohort}}/{covariances_folder('{shrinkage}')}/{{shard}}{ARTEFACT}"


def covariance_file(features: Stage, cohort: str, shard: str) -> str:
    """The covariances of one shard that tangent features read."""
    return f"results/{cohort}/{covariances_folder(features.settings.shrinkage)}/{shard}{ARTEFACT}"


def model_file(cohort: str, variant: str, name: str) -> str:
    """A file of a kept model's folder, which a user may copy elsewhere."""
    return f"results/{cohort}/models/{variant}/{name}"


def method_file(cohort: str, regime: str, variant: str, repeat: int | str, name: str) -> str:
    """One result file of a variant."""
    return f"results/{cohort}/methods/{regime}/{variant}/repeat-{repeat}/{name}"
