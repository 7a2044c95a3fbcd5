"""Names of a target and of its classes."""

from collections.abc import Sequence
from dataclasses import dataclass

from brainfed.cohort.settings.classes import Target

SUBJECTS, GRAPHS = " subjects", " graphs"
"""End the plural of a class that the config names."""


@dataclass(frozen=True)
class ClassWords:
    """Words of one target.

    Attributes:
        target: `diagnosis` or `sex`.
        one: name of one subject of each class; of two classes 1 is the positive one.
        many: the same in the plural, in the order in which messages name them.
        targets: the target in the plural.
        condition: what patients have, as `autism`; empty: not named.
        modality: what institutions hold, as `resting-state scans`; empty: not named.
    """

    target: Target
    one: dict[int, str]
    many: dict[int, str]
    targets: str
    condition: str = ""
    modality: str = ""

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.one)

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
        """What the cohort consists of: `class` is the target of public graphs, of whom nobody is a person."""
        return "graphs" if self.target == "class" else "subjects"

    @property
    def site(self) -> str:
        """What a site is."""
        return "data set" if self.target == "class" else "site"

    @property
    def unread(self) -> str:
        """What baselines do not read."""
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
                    {0: f"{self.subjects[:-1]} of another class", 1: self.one[code]},
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
        two, one = self.count == 2, self.subjects[:-1]
        return {
            "diagnosis": self.target,
            "diagnoses": self.targets,
            "patient": self.one[1] if two else f"{one} of a class",
            "patients": self.many[1] if two else f"{self.subjects} of a class",
            "control": self.one[0] if two else f"{one} of another class",
            "controls": self.many[0] if two else "all others",
            "classes": self.listed,
            "subjects": self.subjects,
            "site": self.site,
            "imaging": self.unread,
        }


PLURALS: dict[Target, str] = {"diagnosis": "diagnoses", "sex": "sexes", "class": "classes"}
CLASS_WORDS: dict[Target, ClassWords] = {
    "diagnosis": ClassWords(
        "diagnosis", {0: "control", 1: "patient"}, {0: "controls", 1: "patients"}, PLURALS["diagnosis"]
    ),
    "sex": ClassWords("sex", {0: "female", 1: "male"}, {0: "females", 1: "males"}, PLURALS["sex"]),
}
DIAGNOSIS_WORDS = CLASS_WORDS["diagnosis"]


def class_words(target: Target, classes: Sequence[str] = ()) -> ClassWords:
    """Words of a target.

    Args:
        target: `diagnosis`, `sex` or `class`.
        classes: names of the diagnoses, or of the classes of graphs, in the order of their codes; empty: patients and
            controls.
    """
    if not classes:
        return CLASS_WORDS[target]
    ending = GRAPHS if target == "class" else SUBJECTS
    one = {code: f"{name}{ending.removesuffix('s')}" for code, name in enumerate(classes)}
    return ClassWords(target, one, {code: f"{name}{ending}" for code, name in enumerate(classes)}, PLURALS[target])
