"""A study whose sites are clients in threads: the coordinator's conversation without a network."""

import threading
import time
from functools import partial

import numpy as np

from brainfed.sites import LEAVE, Coordinator, KeptState, Packet, SiteClient
from brainfed.sites.conversation import Conversation
from brainfed.sites.flower import Outward, SecureSums
from brainfed.sites.home import Home, at_home

NAMES = {0: "site-0", 1: "site-1", 2: "site-2"}
PATIENCE = 0.2
BATON = threading.Lock()
"""Held by the site that computes: torch draws initial weights from the one generator of a process."""


class SiteClients:
    """The hub of clients that are in this process.

    Args:
        names: code -> name.
        leaving: called with (code, request) before a request leaves; what it returns leaves in its place.
        noting: called with (code, packet) that a site writes down before it leaves.
        introduction: code -> what the site says of itself.

    Attributes:
        away: code -> whether its client does not answer now.
    """

    def __init__(
        self,
        names=NAMES,
        leaving=lambda code, request: request,
        noting=lambda code, packet: None,
        introduction=lambda code: {"site": NAMES[code]},
    ):
        self._introduction = introduction
        self.clients, self.doors, self.sites = {}, {}, dict(names)
        self.leaving, self.noting, self.away = leaving, noting, lambda code: False
        for code in names:
            self.open(code)

    def open(self, code):
        """A new client of a site, as of a process that has just started."""
        noted = partial(self.noting, code)
        client = SiteClient(lambda: self._introduction(code), noted, f"secret-{code}", PATIENCE)
        self.clients[code], self.doors[code] = client, Outward(client, 2, noted)

    def ask(self, requests, timeout):
        """The replies of those that are there; packets cross as bytes."""
        found = {}
        for code, packet in requests.items():
            if not self.away(code):
                reply = self.doors[code](Packet.from_bytes(packet.to_bytes()))
                changed = self.leaving(code, reply)
                found[code] = Packet.from_bytes(changed.to_bytes())
        if not found:
            time.sleep(min(timeout, PATIENCE))
        return found

    def job_of(self, code):
        """What a job of a site asks; it lets the other sites compute meanwhile."""
        client = self.clients[code]

        def ask(request):
            BATON.release()
            try:
                return client.of_job(request)
            finally:
                BATON.acquire()

        return ask


class Site(threading.Thread):
    """A site that trains in a thread, then leaves; `outcome` or `error` is what came of it."""

    def __init__(self, clients, inputs, code, train, only, secure=False):
        super().__init__(daemon=True)
        self._secure = secure
        self._clients, self._inputs, self._code, self._train, self._only = clients, inputs, code, train, only
        self.outcome = self.error = None

    def run(self):
        """Train with the other sites."""
        ask, names = self._clients.job_of(self._code), self._inputs.institutions
        with BATON:
            try:
                home = Home(self._code, ask, "job", secure=self._secure)
                self.outcome = self._train(
                    at_home(self._only(self._inputs, self._code), names, names[self._code], home)
                )
                ask(Packet(LEAVE, {"scores": []}))
            except Exception as error:
                self.error = error


def conversation(clients, wait=20.0, least=2, kept=None, study="study", names=NAMES):
    """The coordinator's side."""
    state = None if kept is None else KeptState(kept, study)
    return Conversation(clients, Coordinator(names, least, SecureSums(clients, least)), wait, state)


def numbers(array):
    """A tensor with something wrong in it."""
    return np.where(np.arange(array.size).reshape(array.shape) == 0, np.nan, array).astype(array.dtype)
