"""Three sites in a secure sum, with a test for their coordinator."""

import numpy as np
import pytest

from brainfed.sites import Packet
from brainfed.sites.flower._secure_site import KEYS, MASKED, SHARES, UNMASK, Summand, Unmasked
from support.sites.sites_in_threads import NAMES

BOUND = 256.0


class Sites:
    """Three sites, each with (code + 1, code + 1) to add to round 5 of a job; the test is their coordinator."""

    request = "r"

    def __init__(self, folder=None, fewest=2):
        self.folder, self.fewest = folder, fewest
        self.numbers = {code: np.full(2, code + 1.0) for code in NAMES}
        self.doors = {}
        for code in NAMES:
            self.open(code)

    def open(self, code):
        """A site's process, which has just started."""
        kept = Unmasked(None if self.folder is None else self.folder / f"{code}.jsonl")
        self.doors[code] = Summand(lambda asked: self.addends(code, asked), pytest.fail, self.fewest, kept)

    def addends(self, code, asked):
        return Packet(asked.kind, {"key": "job/1", "round": 4}, {"n": self.numbers[code]})

    def ask(self, kind, packets, session="s"):
        return {code: self.doors[code](Packet(kind, {**about, "session": session})) for code, about in packets.items()}

    def keys(self, session="s", bound=BOUND, codes=tuple(NAMES), threshold=2):
        about = {"kind": "addends", "about": {"request": self.request}, "bounds": {"n": bound}, "threshold": threshold}
        return self.ask(KEYS, {code: {**about, "code": code} for code in codes}, session)

    def shares(self, keys, session="s"):
        public = {str(code): reply.about["keys"] for code, reply in keys.items()}
        return self.ask(SHARES, {code: {"keys": public} for code in keys}, session)

    def masked(self, shares, session="s", codes=tuple(NAMES)):
        return self.ask(MASKED, {code: {"shares": shares_for(code, shares)} for code in codes}, session)

    def unmask(self, alive, gone=(), session="s", codes=None):
        about = {"alive": list(alive), "gone": list(gone), "names": {str(code): name for code, name in NAMES.items()}}
        return self.ask(UNMASK, dict.fromkeys(alive if codes is None else codes, about), session)

    def summed(self, session, alive, gone=(), codes=None):
        """A sum up to its unmasking."""
        self.masked(self.shares(self.keys(session), session), session, alive)
        return self.unmask(alive, gone, session, codes)


def shares_for(code, shares):
    return {str(other): reply.about["shares"][str(code)] for other, reply in shares.items() if other != code}
