"""What the two classes of a target are called."""

import re
from dataclasses import dataclass

from brainfed.cohort.settings.cohort import Target


@dataclass(frozen=True)
class ClassWords:
    """Words of one target.

    Attributes:
        target: `diagnosis` or `sex`.
        one: a subject of each class, 1 the positive one.
        many: subjects of each class; messages name them in this order.
        targets: the target in the plural.
    """

    target: Target
    one: dict[int, str]
    many: dict[int, str]
    targets: str

    def worded(self, text: str) -> str:
        """A text about diagnoses, patients and controls in the words of this target."""
        said = {
            "diagnosis": self.target,
            "diagnoses": self.targets,
            "patient": self.one[1],
            "patients": self.many[1],
            "controls": self.many[0],
            "a control": f"a {self.one[0]}",
        }
        pattern = re.compile(rf"\b({'|'.join(said)})\b", re.IGNORECASE)
        return pattern.sub(lambda found: _cased(said[found[0].lower()], found[0]), text)


def _cased(word: str, like: str) -> str:
    return word.capitalize() if like[0].isupper() else word


CLASS_WORDS: dict[Target, ClassWords] = {
    "diagnosis": ClassWords("diagnosis", {0: "control", 1: "patient"}, {0: "controls", 1: "patients"}, "diagnoses"),
    "sex": ClassWords("sex", {0: "female", 1: "male"}, {0: "females", 1: "males"}, "sexes"),
}
DIAGNOSIS_WORDS = CLASS_WORDS["diagnosis"]
