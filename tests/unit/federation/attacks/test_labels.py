"""Labels are turned in attacked institutions alone, and hidden ones stay hidden."""

import numpy as np

from brainfed.federation.attacks.attacked import attacked_institutions
from brainfed.federation.attacks.labels import flipped_labels
from brainfed.federation.robustness_settings import RobustnessSettings
from brainfed.methods.poisoned_inputs import poisoned_inputs
from support.samples.method_inputs import method_inputs


def test_classes_are_counted_from_the_other_end():
    labels = np.array([[0, 1, 2, -1, 0], [-1, 1, 2, 2, -1]])
    institution = np.array([0, 0, 0, 0, 1])
    assert flipped_labels(labels, institution, {0}, 3).tolist() == [[2, 1, 0, -1, 0], [-1, 1, 0, 0, -1]]
    assert flipped_labels(labels, institution, {1}, 3).tolist() == [[0, 1, 2, -1, 2], [-1, 1, 2, 2, -1]]


def test_inputs_are_poisoned_in_attacked_institutions_alone():
    inputs = method_inputs(40, 5, institutions=4)
    poisoned = poisoned_inputs(inputs, RobustnessSettings(attack="label_flip", attacked=0.5))
    own = np.isin(inputs.institution, list(attacked_institutions(0.5, 4, inputs.streams)))
    seen = inputs.labels >= 0
    assert (poisoned.labels[:, own] == np.where(seen, 1 - inputs.labels, -1)[:, own]).all()
    assert (poisoned.labels[:, ~own] == inputs.labels[:, ~own]).all()


def test_other_attacks_leave_the_inputs_as_they_are():
    inputs = method_inputs(40, 5)
    assert poisoned_inputs(inputs, RobustnessSettings(attack="paf")) is inputs
    assert poisoned_inputs(inputs, RobustnessSettings(attack="label_flip", attacked=0)) is inputs
