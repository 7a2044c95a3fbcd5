"""The table of what leaves a site has a line of every word and number that leaves, written before it leaves."""

import threading
import time

import pandas as pd
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment import left_site
from brainfed.deployment.flower.secure.site import KEYS, MASKED, SHARES, UNMASK
from brainfed.deployment.left_site import LeftSite
from brainfed.federation.apart.exchange import ABSENT, INTRODUCE, REFUSED, REPLY, WORKING
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SEALED
from brainfed.runtime.errors import UserError
from support.sites.apart_sites import only_nodes
from support.sites.sites_in_threads import NAMES, Desks, Site, conversation
from support.sites.small_studies import INPUTS, ROUNDS, mlp

NAMES_OF_WORDS = {KEYS: ["keys"], SHARES: ["shares"], MASKED: ["names", "shapes"], UNMASK: ["seeds", "keys"]}


class Watched:
    """A study with secure sums, whose first site writes down what leaves.

    Args:
        folder: of its table.
        changed: called with a reply of the first site; what it returns leaves in its place.
    """

    def __init__(self, folder, changed=lambda reply: reply):
        self.path, self.changed = folder / "left.tsv", changed
        self.noted, self.unnoted = [], []
        self._table = LeftSite(self.path)
        self.desks = Desks(leaving=self._leaving, noting=self._noting)

    def run(self):
        sites = {code: Site(self.desks, INPUTS, code, mlp, only_nodes, secure=True) for code in NAMES}
        for site in sites.values():
            site.start()
        self.desks.ask({0: Packet(INTRODUCE)}, 1.0)
        conversation(self.desks).run()

    def rows(self):
        return pd.read_csv(self.path, sep="\t", keep_default_na=False)

    def _noting(self, code, packet):
        if code == 0:
            self.noted.append(packet)
            self._table(packet)

    def _leaving(self, code, reply):
        if code != 0 or reply.kind in (WORKING, ABSENT):
            return reply
        words = {name: value for name, value in reply.about.items() if name not in (SEALED, "request")}
        if not any(each.kind == reply.kind and words.items() <= dict(each.about).items() for each in self.noted):
            self.unnoted.append(reply)
        return self.changed(reply)


def test_nothing_leaves_that_is_not_noted_before(tmp_path):
    study = Watched(tmp_path)
    study.run()
    assert study.unnoted == []
    rows = study.rows()
    assert {INTRODUCE, REPLY, *NAMES_OF_WORDS} <= set(rows["kind"])
    words = rows[rows["kind"].isin(NAMES_OF_WORDS)]
    assert set(words["job"]) == set(rows.loc[rows["type"] == "masked", "job"])
    assert (words["bytes"] > 0).all() and (words["type"] == "words").all()
    for kind, names in NAMES_OF_WORDS.items():
        own = words[(words["kind"] == kind) & (words["round"] != "")]
        assert own.groupby("round")["name"].agg(list).tolist() == [names] * ROUNDS


def test_numbers_that_are_masked_once_more_are_listed_once_more(tmp_path):
    """Two uploads with different masks are two times the bytes."""
    lost = []

    def losing(reply):
        if reply.kind == MASKED and len(lost) < 2 and study.noted[-1].about.get("round") == 2:
            lost.append(reply)
            return Packet(ABSENT)
        return reply

    study = Watched(tmp_path, losing)
    study.run()
    assert len(lost) == 2
    rows = study.rows()
    numbers = rows[(rows["kind"] == REPLY) & (rows["type"] == "masked")]
    tries = numbers.groupby("round").size() / numbers["name"].nunique()
    assert tries.tolist() == [3 if number == 2 else 1 for number in range(ROUNDS)]


def test_the_sentence_of_a_refusal_is_noted(tmp_path):
    study = Watched(tmp_path)
    with pytest.raises(UserError, match="expected the words of a secure sum") as raised:
        study.desks.doors[0](Packet(KEYS))
    (noted,) = study.noted
    assert (noted.kind, noted.about) == (REFUSED, {"sentence": str(raised.value)})


def test_lines_of_two_requests_at_once_do_not_mix(tmp_path, monkeypatch):
    """Jobs and the coordinator are answered side by side."""
    inside, most = [], []

    def slow(file):
        inside.append(file)
        most.append(len(inside))
        time.sleep(0.02)
        inside.pop()

    monkeypatch.setattr(left_site.os, "fsync", slow)
    table = LeftSite(tmp_path / "left.tsv")
    threads = [threading.Thread(target=table, args=(Packet("largest", {"key": "job"}),)) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert most == [1] * 5
    assert (tmp_path / "left.tsv").read_text().count("time\t") == 1
