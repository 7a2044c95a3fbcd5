"""Variants that choose on further folds need enough of them."""

from collections.abc import Sequence

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.planning.experiments import Variant
from brainfed.methods.classifier_settings import ChoiceSettings
from brainfed.runtime.errors import UserError
from brainfed.runtime.settings import restore


def check_inner_folds(where: str, split: SplitSettings, variants: Sequence[Variant]) -> None:
    """Refuse a split with too few folds for `choose: inner`.

    Raises:
        UserError: with the variant's name.
    """
    folds = split.test_folds
    if folds is None:
        return
    for variant in variants:
        least = least_folds(variant)
        if folds < least:
            more = "raise split.folds" if split.validation == "folds" else "set split.validation: folds"
            raise UserError(
                f"{where}: variant {variant.name!r} with `choose: inner` needs {least} folds or more, "
                f"one to test, one to choose by and one to learn from, found {folds}; {more}, or set `choose: none`."
            )


def least_folds(variant: Variant) -> int:
    """The fewest folds, or sites that are left out, with which a variant trains."""
    if not issubclass(variant.method.settings, ChoiceSettings):
        return 1
    settings: ChoiceSettings = restore(variant.method.settings, variant.settings)
    return settings.least_folds
