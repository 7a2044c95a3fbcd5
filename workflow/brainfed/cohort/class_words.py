"""Names of a target and of its two classes."""

from dataclasses import dataclass

from brainfed.cohort.settings.cohort import Target


@dataclass(frozen=True)
class ClassWords:
    """Words of one target.

    Attributes:
        target: `diagnosis` or `sex`.
        one: name of one subject of each class; 1 is the positive class.
        many: the same in the plural, in the order in which messages name them.
        targets: the target in the plural.
    """

    target: Target
    one: dict[int, str]
    many: dict[int, str]
    targets: str

    @property
    def slots(self) -> dict[str, str]:
        """Slot of a caption -> its word; under the target sex `patients` holds `males`."""
        return {
            "diagnosis": self.target,
            "diagnoses": self.targets,
            "patient": self.one[1],
            "patients": self.many[1],
            "control": self.one[0],
            "controls": self.many[0],
        }


CLASS_WORDS: dict[Target, ClassWords] = {
    "diagnosis": ClassWords("diagnosis", {0: "control", 1: "patient"}, {0: "controls", 1: "patients"}, "diagnoses"),
    "sex": ClassWords("sex", {0: "female", 1: "male"}, {0: "females", 1: "males"}, "sexes"),
}
DIAGNOSIS_WORDS = CLASS_WORDS["diagnosis"]
