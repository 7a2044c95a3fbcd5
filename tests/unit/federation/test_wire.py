"""The wire counts, privatises and refuses messages."""

import pytest
import torch

from brainfed.federation import Ledger, Message, WeightNoise, Wire
from brainfed.federation._sharing import UndeclaredCrossing
from brainfed.runtime import Streams
from support.sites.toy_federation import AXES, CODES, PEOPLE, run


def wire(declared=AXES, noise=0.0, folds=(4, 7), **options):
    return Wire(Ledger(declared), dict.fromkeys(CODES, PEOPLE), WeightNoise(noise, Streams(0), folds), **options)


def body(*shape, **options):
    return Message({"body": torch.zeros(shape)}, **options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"declared": {"head": ("width",)}}, "body may not leave an institution: declared are head"),
        ({"people": 2}, "body: axis width of 2 entries is as long as the institution's list"),
    ],
)
def test_undeclared_tensors_and_axes_as_long_as_the_subjects_are_refused(changes, message):
    with pytest.raises(UndeclaredCrossing, match=message):
        run("partial", **changes)


def test_subjects_cannot_cross_in_place_of_folds():
    with pytest.raises(UndeclaredCrossing, match=r"body: expected 2 folds first, found \(9, 2\)"):
        wire().up(0, {0: body(PEOPLE, 2)})


def test_undeclared_tensors_of_absent_institutions_are_refused():
    absent = torch.tensor([0, 5])
    with pytest.raises(UndeclaredCrossing):
        wire({"head": ("width",)}).up(0, {0: body(2, 2, samples=absent)})
    with pytest.raises(UndeclaredCrossing):
        wire({"head": ("width",)}).down(0, {0: body(2, 2)}, to=())


def test_only_the_first_fold_of_participants_is_counted():
    line = wire()
    replies = {0: body(2, 3), 1: body(2, 3, samples=torch.tensor([0, 5])), 2: body(2, 3)}
    line.up(0, replies)
    line.down(0, {code: body(2, 3) for code in CODES}, to={0, 2})
    assert [(row["direction"], row["institutions"], row["bytes"]) for row in line.ledger.rows()] == [
        ("download", "0 2", 24),
        ("upload", "0 2", 24),
    ]


def test_numbers_of_subjects_reach_the_server_only_where_they_are_reported():
    reply = {0: body(2, 3, samples=torch.tensor([7, 0]))}
    assert wire().up(0, reply)[0].samples.tolist() == [1, 0]
    declared = AXES | {"training-subjects": ()}
    line = wire(declared, reported={0: 7})
    assert line.up(0, reply)[0].samples.tolist() == [7, 0]
    assert {row["name"] for row in line.ledger.rows()} == {"body", "training-subjects"}


def test_noise_is_added_to_every_fold_of_a_reply_and_to_no_broadcast():
    line = wire(noise=1.0)
    parameter = torch.nn.Parameter(torch.zeros(2, 3))
    sent = line.up(0, {0: Message({"body": parameter, "head": torch.zeros(2, 3)}, plain=frozenset({"head"}))})
    assert (sent[0].tensors["body"] != 0).all()
    assert (sent[0].tensors["head"] == 0).all()
    assert not torch.equal(sent[0].tensors["body"][0], sent[0].tensors["body"][1])
    assert (line.down(0, {0: body(2, 3)}, to={0})[0].tensors["body"] == 0).all()


def test_an_attack_replaces_replies_after_the_noise_and_before_the_server():
    def flipped(number, replies, _sent):
        assert number == 3
        return {0: Message({"body": -replies[0].tensors["body"]})}

    line = wire(noise=1.0, attack=flipped)
    sent = {code: Message({"body": torch.zeros(2, 3)}) for code in (0, 1)}
    got = line.up(3, sent)
    assert torch.equal(got[0].tensors["body"], -sent[0].tensors["body"])
    assert got[1].tensors["body"] is sent[1].tensors["body"]


def test_an_attack_knows_what_institutions_last_received():
    seen = []

    def spied(_number, replies, received):
        seen.append(dict(received))
        return replies

    line = wire(attack=spied)
    first, second = body(2, 3), body(2, 3)
    line.up(0, {0: body(2, 3)})
    line.down(1, {0: first, 1: first}, to={0})
    line.up(1, {0: body(2, 3)})
    line.down(2, {0: second}, to={0})
    line.up(2, {0: body(2, 3)})
    assert seen == [{}, {0: first, 1: first}, {0: second, 1: first}]


def test_an_institution_that_is_the_server_sends_one_noisy_copy_and_nothing_to_itself():
    line = wire(noise=1.0, home=2)
    model = body(2, 3)
    got = line.down(0, dict.fromkeys(CODES, model), to=CODES)
    assert got[2] is model and (model.tensors["body"] == 0).all()
    assert got[0] is got[1] is got[3] and (got[0].tensors["body"] != 0).all()
    line.up(0, {code: body(2, 3, plain=frozenset({"body"})) for code in CODES})
    rows = {row["direction"]: row for row in line.ledger.rows()}
    for row in rows.values():
        assert (row["to"], row["institutions"], row["tensors"], row["rounds"]) == ("institutions", "0 1 2 3", 6, 1)


@pytest.mark.parametrize("options", [{"noise": 1.0}, {"attack": lambda _, replies, __: replies}])
def test_a_sum_of_replies_takes_no_noise_and_no_attack(options):
    with pytest.raises(ValueError, match="found their sum"):
        wire(**options).up(0, {0: body(2, 3, summed=True)})


def test_a_plain_sum_of_replies_crosses_a_noisy_wire_unchanged():
    summed = body(2, 3, summed=True, plain=frozenset({"body"}))
    assert wire(noise=1.0).up(0, {0: summed})[0].tensors["body"] is summed.tensors["body"]
