"""The two ends of a sum that is added up unseen: a site's part of it, and the coordinator's sum of the replies."""

import base64
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.common.secure_aggregation.crypto.shamir import combine_shares

from brainfed.runtime import UserError
from brainfed.sites import ABSENT, Packet, SiteError, bound, is_bound
from brainfed.sites._packet import SMALLEST
from brainfed.sites.flower._secure_coordinator import secure_sum
from brainfed.sites.flower._secure_site import BITS, KEYS, MASKED, SHARES, UNMASK, Summand, decode, encode, mask
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
    answers = {0: with_other, **sites.masked(shares, codes=[1, 2])}
    total = sum(reply.tensors["masked"] for reply in answers.values())
    assert total.shape == (2,)
    steps = unmasked(total, sites.unmask(NAMES))
    np.testing.assert_array_equal(steps.view(np.int64) * BOUND / 2.0**50, [6.0, 6.0])


def unmasked(total, answers):
    """A sum without the masks of the sites' seeds."""
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


CURVE = ec.generate_private_key(ec.SECP256R1()).public_key()
OTHER_CURVE = CURVE.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


class Direct:
    """A hub to three sites in a secure sum.

    Args:
        kind: of the replies that are changed.
        change: a packet -> another.
        changed: codes of the sites whose replies are changed.
        away: codes of the sites that are lost before they send masked numbers.
    """

    sites = NAMES

    def __init__(self, kind, change, changed=(1,), away=()):
        self._kind, self._change, self._changed, self._away = kind, change, changed, away
        self._doors = Sites().doors

    def ask(self, requests, timeout):
        there = {code: each for code, each in requests.items() if each.kind != MASKED or code not in self._away}
        replies = {code: self._doors[code](each) for code, each in there.items()}
        return {
            code: self._change(reply) if reply.kind == self._kind and code in self._changed else reply
            for code, reply in replies.items()
        }


def summed(hub):
    asked = {code: Packet("addends", {"request": "r"}) for code in NAMES}
    return secure_sum(hub, asked, {"n": BOUND}, 1.0)[0]["n"]


def with_words(**words):
    return lambda reply: replace(reply, about={**reply.about, **words})


def without(word):
    return lambda reply: replace(reply, about={name: each for name, each in reply.about.items() if name != word})


def with_masked(array):
    return lambda reply: replace(reply, tensors={"masked": array})


def shares_as(garbage):
    """Every share of a kind in the place of another."""

    def change(reply):
        return replace(reply, about={kind: dict.fromkeys(held, garbage) for kind, held in reply.about.items()})

    return change


def text(content):
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        (KEYS, without("keys")),
        *((KEYS, with_words(keys=keys)) for keys in (3, [], ["a", "b"], ["a"], [OTHER_CURVE, OTHER_CURVE])),
        *((SHARES, change) for change in (without("shares"), *(with_words(shares=each) for each in (3, {}, {"0": 3})))),
        *((MASKED, change) for change in (without("names"), without("shapes"), with_words(names=["m"]))),
        *((MASKED, with_words(shapes={"n": shape})) for shape in ([3], [-1, -2], 3, None, ["a"])),
        *((MASKED, with_masked(array)) for array in (np.zeros(3, np.uint64), np.zeros(2), np.zeros((1, 2), np.uint64))),
        (MASKED, lambda reply: replace(reply, tensors={})),
        (UNMASK, without("seeds")),
        *((UNMASK, shares_as(each)) for each in (3, None, "%", text(b""), text(b"nonsense"), text(bytes(52)))),
        *((kind, lambda reply: Packet("reply", reply.about, reply.tensors)) for kind in (KEYS, SHARES, MASKED, UNMASK)),
    ],
)
def test_a_reply_that_cannot_be_read_is_refused_with_its_site(kind, change):
    with pytest.raises(SiteError, match=rf"site 'site-1', {kind}: expected .* found none that can be read") as raised:
        summed(Direct(kind, change))
    assert raised.value.code == 1


@pytest.mark.parametrize(("away", "total"), [([], 6.0), ([0], 5.0), ([1], 4.0), ([2], 3.0)])
def test_the_sum_of_those_replies_is_that_of_the_sites_that_sent_numbers(away, total):
    np.testing.assert_array_equal(summed(Direct(KEYS, lambda reply: reply, away=away)), [total, total])


def test_masked_numbers_of_another_shape_are_refused_with_their_site():
    with pytest.raises(
        SiteError, match=r"site 'site-1': expected .* shapes \{'n': \[2\]\}, as at site 'site-0', found"
    ):
        summed(Direct(MASKED, with_words(shapes={"n": [2, 1]})))


@pytest.mark.parametrize("garbage", ["%", text(b"nonsense"), text((2).to_bytes(4, "little") + bytes(320))])
def test_a_garbage_share_of_the_key_of_a_lost_site_ends_the_sum_with_names(garbage):
    with pytest.raises(UserError, match=r"secure-unmask: expected .* keys of site 'site-2'") as raised:
        summed(Direct(UNMASK, with_keys(garbage), away=[2]))
    assert "'site-1'" in str(raised.value)


def with_keys(garbage):
    return lambda reply: replace(reply, about={**reply.about, "keys": {"2": garbage}})


def test_the_wrong_share_is_not_searched_among_too_few():
    """Of three sites two are there: their shares do not fit together, and either may be the wrong one."""
    with pytest.raises(UserError, match=r"expected shares of 'site-0', 'site-1' that give the seeds of") as raised:
        summed(Direct(UNMASK, shares_as(text((2).to_bytes(4, "little") + bytes(48))), away=[2]))
    assert not isinstance(raised.value, SiteError)


LARGEST_BOUND = 2.0**1016


@pytest.mark.parametrize(
    ("largest", "expected"),
    [(1e-30, SMALLEST), (0.5, 1.0), (1.0, 256.0), (255.9, 256.0), (-256.0, 65536.0)],
)
def test_a_bound_is_the_power_of_256_above_all_magnitudes(largest, expected):
    assert bound(np.array([0.0, largest])) == expected


def test_numbers_beyond_the_largest_bound_count_as_not_finite():
    """2^1016 is the last power of 256 among the real numbers; the next one would be 2^1024."""
    below = np.nextafter(LARGEST_BOUND, 0.0)
    assert bound(np.array([below])) == LARGEST_BOUND
    for value in (LARGEST_BOUND, 1e306, np.finfo(np.float64).max, np.inf, np.nan):
        assert bound(np.array([value])) is None


def test_only_powers_of_256_are_bounds():
    for allowed in (SMALLEST, 1.0, 256.0, LARGEST_BOUND):
        assert is_bound(allowed)
    for other in (SMALLEST / 256, 0.0, -256.0, 2.0, 257.0, 2.0**1020, np.inf, np.nan, "256", None, True):
        assert not is_bound(other)


def test_a_number_is_off_by_half_a_step_and_as_often_up_as_down():
    drawn = np.random.default_rng(0).normal(size=100_000)
    off = (decode(encode(drawn, 256.0, "weights"), 256.0) - drawn) * 2.0**BITS / 256.0
    assert np.abs(off).max() <= 0.5
    # A sum over many sites would drift where numbers are cut towards zero.
    assert abs((off * np.sign(drawn)).mean()) < 0.01
