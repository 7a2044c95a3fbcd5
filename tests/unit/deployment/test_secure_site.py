"""A site in a secure sum whose coordinator asks for more than one sum, repeats itself, or sends what is no packet."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.flower.secure.site import KEYS, MASKED, SHARES, UNMASK, Summand
from brainfed.federation.apart.exchange import ABSENT
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError
from support.sites.secure_sites import BOUND, Sites, shares_for
from support.sites.sites_in_threads import NAMES


def test_numbers_are_masked_once_in_a_sum():
    """Two uploads with one mask differ by the site's numbers: with steps of another bound, or without one site."""
    sites = Sites()
    shares = sites.shares(sites.keys())
    sites.masked(shares)
    with pytest.raises(UserError, match="secure-masked: expected a request of kind secure-unmask"):
        sites.masked({code: shares[code] for code in (0, 1)}, codes=[0])


def test_the_bounds_of_a_sum_are_those_of_its_first_request():
    sites = Sites()
    shares = sites.shares(sites.keys())
    other = {"shares": shares_for(0, shares), "bounds": {"n": 256.0**2}}
    with_other = sites.ask(MASKED, {0: other})[0]
    plain = Sites.masked(sites, shares, codes=[1, 2])
    answers = {0: with_other, **plain}
    total = sum(reply.tensors["masked"] for reply in answers.values())
    assert total.shape == (2,)
    steps = unmasked(total, sites.unmask(NAMES))
    np.testing.assert_array_equal(steps.view(np.int64) * BOUND / 2.0**50, [6.0, 6.0])


def unmasked(total, answers):
    """A sum without the masks of the sites' seeds."""
    import base64

    from flwr.common.secure_aggregation.crypto.shamir import combine_shares

    from brainfed.deployment.flower.secure.masks import mask

    for code in NAMES:
        shares = [base64.b64decode(reply.about["seeds"][str(code)]) for reply in answers.values()]
        total = total - mask(bytes(combine_shares(shares[:2])), total.size)
    return total


def test_shares_are_made_once_in_a_sum():
    sites = Sites()
    keys = sites.keys()
    sites.shares(keys)
    with pytest.raises(UserError, match="secure-shares: expected a request of kind secure-masked"):
        sites.shares({code: keys[code] for code in (0, 1)})


@pytest.mark.parametrize("kind", [MASKED, UNMASK])
def test_no_step_of_a_sum_is_left_out(kind):
    sites = Sites()
    sites.keys()
    with pytest.raises(UserError, match=rf"{kind}: expected a request of kind secure-shares"):
        sites.ask(kind, {0: {"shares": {}, "alive": [0, 1, 2], "gone": [], "names": {}}})


def test_a_sum_ends_when_it_is_unmasked():
    """Of a site that is alive its seed is given, and of one that is gone its key; both show its numbers."""
    sites = Sites()
    sites.summed("s", [0, 1, 2])
    assert sites.unmask([0, 1], [2])[0].kind == ABSENT


def test_a_question_that_is_asked_again_has_the_same_reply():
    """A reply that was lost on its way is asked for once more, in each of the four steps."""
    sites = Sites()
    keys = sites.keys()
    same(sites.keys(), keys)
    shares = sites.shares(keys)
    same(sites.shares(keys), shares)
    masked = sites.masked(shares)
    same(sites.masked(shares), masked)
    same(sites.keys(), keys)
    answers = sites.unmask(NAMES)
    same(sites.unmask(NAMES), answers)
    total = unmasked(sum(reply.tensors["masked"] for reply in masked.values()), answers)
    np.testing.assert_array_equal(total.view(np.int64) * BOUND / 2.0**50, [6.0, 6.0])


def same(again, first):
    assert {code: reply.to_bytes() for code, reply in again.items()} == {
        code: reply.to_bytes() for code, reply in first.items()
    }


def test_a_site_that_is_named_twice_counts_once():
    """`alive` of three that is one site, and the keys of the others, would unmask that site's numbers."""
    sites = Sites()
    sites.masked(sites.shares(sites.keys()))
    with pytest.raises(UserError, match="expected at least 2 sites"):
        sites.unmask([0, 0, 0], [1, 2])


def test_keys_of_a_site_that_is_written_in_two_ways_count_once():
    sites = Sites(fewest=3)
    keys = sites.keys(codes=[0, 1])
    public = {str(code): reply.about["keys"] for code, reply in keys.items()}
    extra = Sites().keys(codes=[1])[1].about["keys"]
    with pytest.raises(UserError, match="a secure sum over 2 sites"):
        sites.ask(SHARES, {0: {"keys": {**public, "01": extra}}})


def test_a_site_without_the_request_is_in_no_sum():
    sites = Sites()
    sites.doors[0] = Summand(lambda asked: Packet(ABSENT), pytest.fail)
    assert sites.keys()[0].kind == ABSENT
    assert sites.ask(SHARES, {0: {"keys": {}}})[0].kind == ABSENT


@pytest.mark.parametrize("bound", [255.0, 512.0, 1.0, 0.0, -256.0, float("nan"), float("inf"), "256", None])
def test_a_bound_that_is_not_allowed_is_refused_without_a_number_of_the_site(bound):
    sites = Sites()
    sites.numbers[0] = np.array([7.25, -3.5])
    with pytest.raises(UserError, match=r"\bn: expected .*power of 256") as refusal:
        sites.keys(bound=bound)
    assert "7" not in str(refusal.value) and "3.5" not in str(refusal.value)


@pytest.mark.parametrize("bound", [256.0, 65536.0])
def test_a_bound_of_another_site_is_allowed(bound):
    assert Sites().keys(bound=bound)[0].kind == KEYS


def test_a_number_that_is_not_finite_is_refused_at_the_site():
    sites = Sites()
    sites.numbers[0] = np.array([np.nan, 1.0])
    with pytest.raises(UserError, match=r"\bn: expected finite numbers"):
        sites.keys()


@pytest.mark.parametrize("garbage", ["gAAAAA", "", 3, None, ["a"]])
def test_a_share_that_cannot_be_read_is_refused_with_its_site(garbage):
    sites = Sites()
    shares = sites.shares(sites.keys())
    mine = shares_for(0, shares)
    with pytest.raises(UserError, match=r"secure-masked: expected the shares of site 2"):
        sites.ask(MASKED, {0: {"shares": {**mine, "2": garbage}}})
    assert sites.ask(MASKED, {0: {"shares": mine}})[0].kind == MASKED


@pytest.mark.parametrize("sender", ["7", "0", "x"])
def test_a_share_of_nobody_is_refused(sender):
    sites = Sites()
    mine = shares_for(0, sites.shares(sites.keys()))
    with pytest.raises(UserError, match=rf"secure-masked: expected the shares of site {sender}"):
        sites.ask(MASKED, {0: {"shares": {**mine, sender: mine["1"]}}})


@pytest.mark.parametrize("key", [["a", "b"], ["a"], [], 3, None, "xy"])
def test_a_key_that_cannot_be_read_is_refused_with_its_site(key):
    sites = Sites()
    public = {str(code): reply.about["keys"] for code, reply in sites.keys().items()}
    with pytest.raises(UserError, match="secure-shares: expected the keys of site 1"):
        sites.ask(SHARES, {0: {"keys": {**public, "1": key}}})


WRONG = {"keys": 3, "shares": 3, "alive": 3, "gone": 3, "names": 3}


@pytest.mark.parametrize("kind", [KEYS, SHARES, MASKED, UNMASK])
@pytest.mark.parametrize("words", [{}, WRONG])
def test_a_packet_with_other_words_is_refused(kind, words):
    sites = Sites()
    if kind != KEYS:
        found = sites.keys()
    if kind in (MASKED, UNMASK):
        found = sites.shares(found)
    if kind == UNMASK:
        sites.masked(found)
    with pytest.raises(UserError, match=rf"{kind}: expected the words of a secure sum"):
        sites.ask(kind, {0: words})


@pytest.mark.parametrize("kind", [SHARES, MASKED, UNMASK])
def test_a_packet_without_its_sum_is_of_no_sum(kind):
    sites = Sites()
    sites.keys()
    assert sites.doors[0](Packet(kind)).kind == ABSENT
