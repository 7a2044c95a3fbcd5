"""Turned labels and poisoned uploads are those of the formulas, in attacked institutions alone."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from brainfed.federation import (
    Federation,
    Message,
    RobustnessSettings,
    attack_of,
    attacked_institutions,
    flipped_labels,
)
from brainfed.methods import poisoned_inputs
from brainfed.runtime import Streams
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


STREAMS = Streams(3)

FOLDS = (2, 5)


def attack(kind, share, institutions, start=None, folds=FOLDS):
    settings = RobustnessSettings(attack=kind, attacked=share)
    return attack_of(settings, Federation(institutions, folds, STREAMS, start or {}))


def replies_of(institutions, samples=None, **shapes):
    """Replies of random tensors; (M, F) samples."""
    generator = torch.Generator().manual_seed(0)
    samples = torch.ones(institutions, len(FOLDS), dtype=torch.int64) if samples is None else samples
    return {
        code: Message(
            {name: torch.randn(len(FOLDS), *shape, generator=generator) for name, shape in shapes.items()},
            samples[code],
        )
        for code in range(institutions)
    }


def flat(message):
    """(F, P) all tensors."""
    return torch.cat([tensor.reshape(len(tensor), -1) for tensor in message.tensors.values()], dim=1)


def mean(replies, codes):
    return torch.stack([flat(replies[code]) for code in codes]).mean(dim=0)


MODEL = {"weight": (3, 4), "bias": (3,), "scale": ()}

LOGITS = {"logits": (6, 2)}

contents = pytest.mark.parametrize("shapes", [MODEL, LOGITS], ids=["model", "logits"])


@pytest.mark.parametrize("institutions", [1, 4, 9, 100])
def test_larger_shares_hold_the_institutions_of_smaller_ones(institutions):
    shares = (0.0, 0.07, 0.25, 0.5, 1.0)
    held = [attacked_institutions(share, institutions, STREAMS) for share in shares]
    expected = {1: [0, 1, 1, 1, 1], 4: [0, 1, 1, 2, 4], 9: [0, 1, 3, 5, 9], 100: [0, 7, 25, 50, 100]}
    assert [len(codes) for codes in held] == expected[institutions]
    assert all(smaller <= larger for smaller, larger in pairwise(held))
    assert held[-1] == set(range(institutions))


def test_another_repeat_poisons_others():
    assert len({attacked_institutions(0.25, 20, Streams(3, repeat)) for repeat in range(5)}) > 1


@contents
def test_paf_is_ten_norms_of_the_benign_mean_away_in_directions_of_their_own(shapes):
    replies = replies_of(4, **shapes)
    attacked = attacked_institutions(0.5, 4, STREAMS)
    found = attack("paf", 0.5, 4)(1, replies, {})
    honest = mean(replies, set(range(4)) - attacked)
    away = [flat(found[code]) - honest for code in attacked]
    for vector in away:
        torch.testing.assert_close(vector.norm(dim=1), 10 * honest.norm(dim=1))
    first, second = away
    assert (torch.cosine_similarity(first, second, dim=1) < 0.99).all()
    assert torch.cosine_similarity(first[0], first[1], dim=0) < 0.99
    assert all(found[code] is replies[code] for code in set(range(4)) - attacked)


def test_directions_belong_to_round_and_fold_and_not_to_the_place_in_a_stack():
    replies = replies_of(4, **MODEL)
    both = attack("paf", 0.25, 4)(1, replies, {})
    (code,) = attacked_institutions(0.25, 4, STREAMS)
    last = {
        place: replace(reply, tensors={name: tensor[1:] for name, tensor in reply.tensors.items()},
                       samples=reply.samples[1:])
        for place, reply in replies.items()
    }  # fmt: skip
    alone = attack("paf", 0.25, 4, folds=FOLDS[1:])(1, last, {})
    torch.testing.assert_close(flat(alone[code])[0], flat(both[code])[1])
    assert not torch.allclose(flat(attack("paf", 0.25, 4)(2, replies, {})[code]), flat(both[code]))


@contents
def test_ofom_sends_one_far_upload_and_the_mean_of_all_with_it(shapes):
    replies = replies_of(5, **shapes)
    attacked = sorted(attacked_institutions(0.4, 5, STREAMS))
    found = attack("ofom", 0.4, 5)(0, replies, {})
    honest = mean(replies, set(range(5)) - set(attacked))
    far, hidden = attacked
    torch.testing.assert_close((flat(found[far]) - honest).norm(dim=1), 10 * honest.norm(dim=1))
    torch.testing.assert_close(flat(found[hidden]), mean(found, set(range(5)) - {hidden}))
    torch.testing.assert_close(flat(found[hidden]), mean(found, range(5)))


def test_ofom_with_one_attacker_is_far():
    replies = replies_of(4, **MODEL)
    (code,) = attacked_institutions(0.25, 4, STREAMS)
    honest = mean(replies, set(range(4)) - {code})
    found = attack("ofom", 0.25, 4)(0, replies, {})
    torch.testing.assert_close((flat(found[code]) - honest).norm(dim=1), 10 * honest.norm(dim=1))


def test_institutions_that_take_no_part_in_a_fold_stay_out_of_its_mean():
    attacked = sorted(attacked_institutions(0.5, 4, STREAMS))
    absent = next(code for code in range(4) if code not in attacked)
    (left,) = set(range(4)) - {absent, *attacked}
    samples = torch.ones(4, 2, dtype=torch.int64)
    samples[absent, 1] = samples[attacked[0], 1] = 0
    replies = replies_of(4, samples, **MODEL)
    found = attack("ofom", 0.5, 4)(0, replies, {})
    honest = flat(replies[left])[1]
    # The first attacker is away in the second fold, so that the second one is far there.
    torch.testing.assert_close((flat(found[attacked[1]])[1] - honest).norm(), 10 * honest.norm())
    torch.testing.assert_close(flat(found[attacked[1]])[0], mean(found, range(4))[0])


def test_without_benign_institutions_the_mean_is_that_of_all():
    replies = replies_of(3, **MODEL)
    found = attack("paf", 1.0, 3)(0, replies, {})
    center = mean(replies, range(3))
    for code in range(3):
        torch.testing.assert_close((flat(found[code]) - center).norm(dim=1), 10 * center.norm(dim=1))


@pytest.mark.parametrize(("kind", "factor"), [("sign_flip", -1), ("scale", 10)])
def test_updates_are_multiplied_from_what_was_received_last(kind, factor):
    replies = replies_of(4, **MODEL)
    start = {name: torch.full((2, *shape), 2.0) for name, shape in MODEL.items()}
    poison = attack(kind, 0.25, 4, start)
    (code,) = attacked_institutions(0.25, 4, STREAMS)
    first = poison(0, replies, {})
    torch.testing.assert_close(flat(first[code]), 2 + factor * (flat(replies[code]) - 2))
    received = {code: Message({name: tensor + 5 for name, tensor in start.items()})}
    second = poison(1, replies, received)
    torch.testing.assert_close(flat(second[code]), 7 + factor * (flat(replies[code]) - 7))
    assert all(second[other] is replies[other] for other in replies if other != code)


@pytest.mark.parametrize(("kind", "factor"), [("sign_flip", -1), ("scale", 10)])
def test_logits_that_no_server_sends_are_multiplied(kind, factor):
    replies = replies_of(2, **LOGITS)
    (code,) = attacked_institutions(0.5, 2, STREAMS)
    found = attack(kind, 0.5, 2)(3, replies, {code: Message({"model": torch.ones(2, 4)})})
    torch.testing.assert_close(flat(found[code]), factor * flat(replies[code]))


@pytest.mark.parametrize(("kind", "share"), [("none", 0.25), ("label_flip", 0.5), ("paf", 0.0)])
def test_nothing_happens_on_the_wire_without_an_attack_on_it(kind, share):
    assert attack(kind, share, 4) is None


@pytest.mark.parametrize("kind", ["paf", "ofom", "sign_flip", "scale"])
def test_the_senders_keep_their_own_tensors(kind):
    replies, same = replies_of(4, **MODEL), replies_of(4, **MODEL)
    attack(kind, 1.0, 4)(0, replies, {})
    assert all(torch.equal(flat(replies[code]), flat(same[code])) for code in range(4))
