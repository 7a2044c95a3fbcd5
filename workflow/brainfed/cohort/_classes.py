"""Classes of a target: their names, the codes that mean them, and the words for them in sentences."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """Raise `ValueError` unless `classes` may be the diagnoses of a cohort."""
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

    `codes` has the meaning of each; without `classes` they are control and patient.
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


SUBJECTS, GRAPHS = " subjects", " graphs"
"""End the plural of a class that the config names."""


@dataclass(frozen=True)
class ClassWords:
    """Words of one target.

    Attributes:
        target: `diagnosis` or `sex`.
        singular: name of one subject of each class; of two classes 1 is the positive one.
        many: the same in the plural, in the order in which messages name them.
        targets: the target in the plural.
        condition: what patients have, as `autism`; empty: not named.
        modality: what institutions hold, as `resting-state scans`; empty: not named.
    """

    target: Target
    singular: dict[int, str]
    many: dict[int, str]
    targets: str
    condition: str = ""
    modality: str = ""

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.singular)

    @property
    def shown(self) -> tuple[int, ...]:
        """Codes of the classes in the order of figures and tables: of two the positive one first."""
        return (1, 0) if self.count == 2 else tuple(range(self.count))

    @property
    def short(self) -> dict[int, str]:
        """Names for legends: `AD` for `AD subjects`."""
        return {code: word.removesuffix(SUBJECTS).removesuffix(GRAPHS) for code, word in self.many.items()}

    @property
    def listed(self) -> str:
        """All classes: `patients and controls`, `CN, MCI and AD subjects`."""
        if self.count == 2:
            return f"{self.many[1]} and {self.many[0]}"
        *first, last = (self.short[code] for code in self.shown)
        return f"{', '.join(first)} and {last} {self.subjects}"

    @property
    def subjects(self) -> str:
        """Members of the cohort in words: the target `class` is that of public graphs, which are no people."""
        return "graphs" if self.target == "class" else "subjects"

    @property
    def site(self) -> str:
        """A site in words: `data set` or `site`."""
        return "data set" if self.target == "class" else "site"

    @property
    def unread(self) -> str:
        """Data that baselines do not read, in words."""
        return "graphs" if self.target == "class" else "imaging"

    @property
    def contrasts(self) -> tuple[tuple[int, "ClassWords"], ...]:
        """Comparisons of two groups, each the code of one class and the words of it (1) and of all others (0).

        Two classes have one, with their own words.
        """
        if self.count == 2:
            return ((1, self),)
        return tuple(
            (
                code,
                ClassWords(
                    self.target,
                    {0: f"{self.subjects[:-1]} of another class", 1: self.singular[code]},
                    {0: "all others", 1: self.many[code]},
                    self.targets,
                ),
            )
            for code in self.shown
        )

    @property
    def slots(self) -> dict[str, str]:
        """Slot of a caption -> its word; under the target sex `patients` holds `males`.

        Of more than two classes a caption speaks of one class and all others, as `contrasts` do.
        """
        two, subject = self.count == 2, self.subjects[:-1]
        return {
            "diagnosis": self.target,
            "diagnoses": self.targets,
            "patient": self.singular[1] if two else f"{subject} of a class",
            "patients": self.many[1] if two else f"{self.subjects} of a class",
            "control": self.singular[0] if two else f"{subject} of another class",
            "controls": self.many[0] if two else "all others",
            "classes": self.listed,
            "subjects": self.subjects,
            "site": self.site,
            "imaging": self.unread,
        }


PLURALS: dict[Target, str] = {"diagnosis": "diagnoses", "sex": "sexes", "class": "classes"}
CLASS_WORDS: dict[Target, ClassWords] = {
    target: ClassWords(target, dict(enumerate(names)), {n: f"{name}s" for n, name in enumerate(names)}, PLURALS[target])
    for target, names in CLASSES.items()
    if names
}
DIAGNOSIS_WORDS = CLASS_WORDS["diagnosis"]


def class_words(target: Target, classes: Sequence[str] = ()) -> ClassWords:
    """Words of a target; `classes` are its names in the order of their codes, empty: patients and controls."""
    if not classes:
        return CLASS_WORDS[target]
    ending = GRAPHS if target == "class" else SUBJECTS
    many = {code: f"{name}{ending}" for code, name in enumerate(classes)}
    return ClassWords(target, {code: word.removesuffix("s") for code, word in many.items()}, many, PLURALS[target])
