"""Copies of one scan with different diagnoses: at least one file or row is wrong, and nobody knows which."""

from collections.abc import Iterable
from typing import Any

from brainfed.cohort.settings.classes import Target
from brainfed.runtime.errors import UserError

PLURAL: dict[Target, str] = {"diagnosis": "diagnoses", "sex": "sexes", "class": "classes"}


def require_agreement(people: Iterable[tuple[str, str, Any]], target: Target) -> None:
    """Refuse copies that would train and be tested under two labels.

    Args:
        people: of every included subject its id, the same name for all copies of one scan, and its label; None or NaN
            where unknown.
        target: what the labels are, for the message.

    Raises:
        UserError: two copies have different labels.
    """
    copies: dict[str, dict[str, int]] = {}
    for subject, scan, label in people:
        if label is not None and label == label:
            copies.setdefault(scan, {})[subject] = int(label)
    wrong = [labels for labels in copies.values() if len(set(labels.values())) > 1]
    if wrong:
        more = f" (and {len(wrong) - 1} more such groups)" if len(wrong) > 1 else ""
        raise UserError(
            f"Subjects {', '.join(wrong[0])}{more}: expected one {target} of one scan, found the same or nearly the "
            f"same data with different {PLURAL[target]}; correct the table or the file that was copied, remove the "
            "wrong rows, or set `contradictory_copies: keep` to train on all of them."
        )
