"""What a coordinator holds of trainings and sums that are over, and what a site that is late is answered."""

import gc

import numpy as np
import pytest
import torch

from brainfed.federation.strategies import FedAvg
from brainfed.runtime import UserError
from brainfed.sites import REPLY, Coordinator, KeptState, Packet, SiteError
from brainfed.sites._packet import OPEN, TOTAL, arrays_digest
from brainfed.sites._recipes import recipe_of
from brainfed.sites._sessions import Session

NAMES = {0: "site-0", 1: "site-1"}
ROUNDS = 2
SIZE = 1000


class Study:
    """A coordinator that keeps its state, and two sites that train one model after the other."""

    def __init__(self, folder):
        self.kept = KeptState(folder, "study")
        self.start()

    def start(self):
        """A process of the coordinator."""
        self.coordinator = Coordinator(NAMES)
        self.kept.load(self.coordinator)

    def ask(self, kind, about, tensors):
        found = self.coordinator.answers({code: Packet(kind, about, tensors(code)) for code in NAMES})
        self.kept.save(self.coordinator, {})
        return found

    def train(self, number, rounds=ROUNDS):
        """A training and the sum before it; the last answers."""
        total = {"count": np.full(SIZE, 1.0)}
        self.ask(TOTAL, {"key": f"job-{number}/1"}, lambda code: total)
        self.ask(OPEN, opening(number), lambda code: model(number))
        for last in range(rounds):
            about = {"key": f"job-{number}/2", "round": last, "samples": [3], "plain": []}
            answers = self.ask(REPLY, about, lambda code, last=last: {"w": model(number)["w"] + code + last})
        return answers


def model(number):
    return {"w": np.full((1, SIZE), float(number), np.float32)}


def opening(number):
    recipe = recipe_of(FedAvg(tuple(NAMES), {"w": torch.from_numpy(model(number)["w"])}))
    stated = {"strategy": recipe.strategy, "settings": recipe.settings, "tensors": arrays_digest(recipe.tensors)}
    return {"key": f"job-{number}/2", "round": 0, **stated, "rounds": ROUNDS}


def held(study):
    """Trainings and numbers in the memory of a coordinator."""
    gc.collect()
    met, found, numbers = set(), [study.coordinator], [0, 0]
    while found:
        each = found.pop()
        if id(each) in met or isinstance(each, (type, type(gc))) or callable(each):
            continue
        met.add(id(each))
        if isinstance(each, (np.ndarray, torch.Tensor)):
            numbers[1] += each.size if isinstance(each, np.ndarray) else each.numel()
        numbers[0] += isinstance(each, Session)
        found += gc.get_referents(each)
    return tuple(numbers)


def test_memory_does_not_grow_with_the_trainings_that_are_over(tmp_path):
    study = Study(tmp_path)
    study.train(0, rounds=1)
    assert held(study)[0] == 1 and held(study)[1] >= SIZE
    study = Study(tmp_path / "whole")
    study.train(0)
    first = held(study)
    for number in range(1, 5):
        study.train(number)
    assert held(study) == first == (0, 0)
    study.start()
    assert held(study) == (0, 0)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_site_that_is_late_has_the_last_answer_of_a_training_that_is_over(tmp_path, restarted):
    study = Study(tmp_path)
    expected = study.train(0)
    study.train(1)
    if restarted:
        study.start()
    reply = {"key": "job-0/2", "round": ROUNDS - 1, "samples": [3], "plain": []}
    (again,) = study.coordinator.answers({1: Packet(REPLY, reply, model(0))}).values()
    assert again.about == expected[1].about
    np.testing.assert_array_equal(again.tensors["tensor/w"], expected[1].tensors["tensor/w"])
    opened = study.coordinator.answers({1: Packet(OPEN, opening(0) | {"round": ROUNDS}, model(0))})
    np.testing.assert_array_equal(opened[1].tensors["tensor/w"], expected[1].tensors["tensor/w"])


@pytest.mark.parametrize("restarted", [False, True])
def test_a_site_that_is_late_has_the_sum_that_is_over_if_it_gave_the_same(tmp_path, restarted):
    study = Study(tmp_path)
    study.train(0)
    if restarted:
        study.start()
    count = np.full(SIZE, 1.0)
    (again,) = study.coordinator.answers({1: Packet(TOTAL, {"key": "job-0/1"}, {"count": count})}).values()
    np.testing.assert_array_equal(again.tensors["count"], 2 * count)
    with pytest.raises(SiteError, match="site 'site-1': expected the numbers that it gave before"):
        study.coordinator.answers({1: Packet(TOTAL, {"key": "job-0/1"}, {"count": count + 1})})


def test_a_training_under_way_goes_on_after_a_restart(tmp_path):
    study, whole = Study(tmp_path / "stopped"), Study(tmp_path / "whole")
    expected = whole.train(0)
    study.train(0, rounds=1)
    study.start()
    assert held(study)[0] == 1
    about = {"key": "job-0/2", "round": 1, "samples": [3], "plain": []}
    found = study.ask(REPLY, about, lambda code: {"w": model(0)["w"] + code + 1})
    np.testing.assert_array_equal(found[0].tensors["tensor/w"], expected[0].tensors["tensor/w"])


def test_a_reply_to_a_training_whose_state_is_gone_has_a_sentence(tmp_path):
    about = {"key": "job-0/2", "round": 1, "samples": [3], "plain": []}
    with pytest.raises(UserError, match="job-0/2: expected the state of a training that has begun, found none"):
        Study(tmp_path).ask(REPLY, about, lambda code: model(0))
