"""The part of an attack that happens at home, before a method sees its inputs."""

from dataclasses import replace
from typing import TypeVar

from brainfed.federation.attacks.attacked import attacked_institutions
from brainfed.federation.attacks.labels import flipped_labels
from brainfed.federation.robustness_settings import RobustnessSettings
from brainfed.samples.labelled_subjects import LabelledSubjects

Inputs = TypeVar("Inputs", bound=LabelledSubjects)


def poisoned_inputs(inputs: Inputs, settings: RobustnessSettings) -> Inputs:
    """The inputs that the institutions train on: under `label_flip` with turned labels in the attacked ones.

    Scores stay those of true labels, which no method has.
    """
    if settings.attack != "label_flip" or not settings.poisons:
        return inputs
    attacked = attacked_institutions(settings.attacked, len(inputs.institutions), inputs.streams)
    return replace(inputs, labels=flipped_labels(inputs.labels, inputs.institution, attacked, inputs.classes))
