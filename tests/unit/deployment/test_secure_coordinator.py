"""The coordinator of a secure sum whose sites reply what cannot be read: it names the site."""

import base64
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from brainfed.deployment.flower.secure.coordinator import secure_sum
from brainfed.deployment.flower.secure.site import KEYS, MASKED, SHARES, UNMASK
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.site_error import SiteError
from brainfed.runtime.errors import UserError
from support.sites.secure_sites import BOUND, Sites
from support.sites.sites_in_threads import NAMES

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
    return secure_sum(hub, asked, {"n": BOUND}, 1.0).tensors["n"]


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


def test_the_sum_of_those_replies_is_the_sum():
    np.testing.assert_array_equal(summed(Direct(KEYS, lambda reply: reply)), [6.0, 6.0])


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
