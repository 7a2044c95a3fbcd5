"""What an experiment on a cohort of public graphs may have: methods that read them, and institutions that fit them."""

from collections.abc import Sequence

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.planning.experiments import Variant
from brainfed.configuration.planning.sweeps import Definitions
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS
from brainfed.runtime.errors import UserError


def takes_graphs(method: Method) -> bool:
    """Whether a method reads nothing but whole graphs and labels."""
    return method.needs == ("connectomes",) or method.name == "majority"


def refuse_other_than_graphs(
    where: str,
    name: str,
    cohort: CohortSettings,
    split: SplitSettings,
    variants: Sequence[Variant],
    definitions: Definitions,
) -> None:
    """Refuse what has no meaning for a cohort of graphs.

    Args:
        where: name of the experiment in messages.
        name: of the cohort.
        cohort: its settings.
        split: of the experiment.
        variants: of the experiment.
        definitions: of all variants.

    Raises:
        UserError: a method reads features or phenotypes, a variant has settings of connectomes, or data sets with other
            features and classes are pooled.
    """
    several = len(cohort.tudataset.names) > 1
    if several and (split.institutions != "sites" or split.validation == "leave_one_site_out"):
        raise UserError(
            f"{where}.split: expected `institutions: sites` and no site left out for cohort {name!r}, whose data sets "
            f"differ in features and classes, found institutions: {split.institutions}, validation: "
            f"{split.validation}; change it, or name one data set in the cohort."
        )
    for variant in variants:
        if not takes_graphs(variant.method):
            able = ", ".join(method.name for method in METHODS.values() if takes_graphs(method))
            raise UserError(
                f"{where}: expected variants that classify graphs for cohort {name!r}, whose source is 'tudataset', "
                f"found {variant.name!r}; choose among the methods {able}, or name other `cohorts` in the experiment."
            )
        if several and variant.method.needs and variant.method.topology == "central":
            raise UserError(
                f"{where}: expected no training on pooled data for cohort {name!r}, whose data sets differ in "
                f"features and classes, found {variant.name!r}; remove it, or name one data set in the cohort."
            )
        idle = [key for key in ("connectomes", "features") if definitions.single[variant.name].get(key)]
        if idle:
            raise UserError(
                f"variants.{variant.name}.{idle[0]}: expected none for cohort {name!r}, whose graphs are made already, "
                "found some; remove the key, or name other `cohorts` in the experiment."
            )
