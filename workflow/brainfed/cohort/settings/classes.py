"""The classes that a cohort's target has: their names, and the codes that mean them."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Literal

Target = Literal["diagnosis", "sex", "class"]
Sex = Literal["male", "female"]
Diagnosis = Literal["patient", "control"]

CLASSES: dict[Target, tuple[str, ...]] = {"diagnosis": ("control", "patient"), "sex": ("female", "male"), "class": ()}
"""Target -> its two classes in the order of their codes 0 and 1, where a cohort names no others."""
NO_CLASS = ("unlabelled", "excluded")
"""Meanings of a diagnosis code that are no class."""
NO_NUMBERS = "numbers as targets are not supported yet"
NO_COVARIATES = "covariates of methods are not supported yet"


def check_class_names(classes: Sequence[str], target: Target, *, simulated: bool) -> None:
    """Raise `ValueError` unless `classes` may be the diagnoses of a cohort.

    Args:
        classes: their names.
        target: what the cohort learns.
        simulated: whether its subjects are made up.
    """
    if target == "sex":
        raise ValueError(f"classes: expected target diagnosis, found {target}; leave classes out")
    if simulated:
        raise ValueError("classes: expected none for a simulated cohort, which has patients and controls; remove them")
    if len(classes) < 2 or len(set(classes)) < len(classes):
        raise ValueError(f"classes: expected two or more different names, found {list(classes)}; fix them")
    for name in classes:
        if name in NO_CLASS or name != name.strip() or not name or not name.isprintable():
            raise ValueError(f"classes: expected the name of a diagnosis, found {name!r}; choose another")


def check_meanings(codes: Mapping[str, str], classes: Sequence[str], *, needed: bool) -> None:
    """Raise `ValueError` where a diagnosis code means no class, or, where they are `needed`, a class has no code.

    Args:
        codes: diagnosis code -> its meaning.
        classes: names of the diagnoses; empty: control and patient.
        needed: whether every class is to have a code.
    """
    known = tuple(classes) or CLASSES["diagnosis"]
    allowed = (*known, *NO_CLASS)
    usual = {name: name for name in ("patient", "control")}
    for code, meaning in codes.items() if codes != usual or not needed else ():  # Nobody wrote the usual codes.
        if meaning not in allowed:
            near = difflib.get_close_matches(meaning, allowed, n=1)
            remedy = f"did you mean {near[0]!r}?" if near else "fix it, or name it under `classes`"
            raise ValueError(
                f"codes.diagnosis.{code}: expected one of {', '.join(allowed)}, found {meaning!r}; {remedy}"
            )
    for name in reversed(known):
        if needed and name not in codes.values():
            raise ValueError(
                f"codes.diagnosis: expected a code that means {name}, found none; write what the table has for it, as "
                f"`codes: {{diagnosis: {{1: {name}}}}}`, with a code for each of {', '.join(known)}"
            )
