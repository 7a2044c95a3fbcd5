"""What leaves a site: all of it is noted before, and listed in its table."""

import csv
import re
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.runtime import UserError
from brainfed.sites import ABSENT, INTRODUCE, LEAVE, REFUSED, REPLY, SEALED, Packet
from brainfed.sites import _site_client as left_site
from brainfed.sites._packet import LARGEST, OPEN, SUM, TOTAL, WORKING
from brainfed.sites._site_client import COLUMNS, LeftSite
from brainfed.sites.flower._secure_site import KEYS, MASKED, SHARES, UNMASK
from support.sites.apart_sites import only_nodes
from support.sites.sites_in_threads import NAMES, Site, SiteClients, conversation
from support.sites.small_studies import INPUTS, ROUNDS, mlp

STEPS = ("keys", "shares", "masked", "unmask")
"""Of a secure sum."""
ARTEFACTS = Path(__file__).parents[3] / "docs" / "reference" / "artefacts.md"
MODEL = {"weight": np.ones((3, 2), dtype=np.float32), "count": np.float32(7.0).reshape(())}


def listed(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_a_round_counts_from_one_in_the_table_and_on_the_terminal(tmp_path, capsys):
    leaving = LeftSite(tmp_path / "left.tsv")
    leaving(Packet(OPEN, {"key": "a/1", "round": 0, "strategy": "fedavg"}, MODEL))
    leaving(Packet(REPLY, {"key": "a/1", "round": 0, "samples": [5]}, MODEL))
    leaving(Packet(REPLY, {"key": "a/1", "round": 1, "samples": [5]}, MODEL))
    assert [row["round"] for row in listed(tmp_path / "left.tsv")] == 6 * ["1"] + 3 * ["2"]
    said = capsys.readouterr().err.splitlines()
    assert [re.findall(r"\(a/1, round (\d+)\)", line) for line in said] == [["1"], ["1"], ["2"]]


def test_a_request_outside_of_rounds_has_no_round(tmp_path, capsys):
    LeftSite(tmp_path / "left.tsv")(Packet(TOTAL, {"key": "a/1"}, MODEL))
    assert {row["round"] for row in listed(tmp_path / "left.tsv")} == {""}
    assert "(a/1):" in capsys.readouterr().err


def test_a_single_number_has_a_shape(tmp_path, capsys):
    LeftSite(tmp_path / "left.tsv")(Packet(TOTAL, {"key": "a/1"}, MODEL))
    assert [(row["name"], row["shape"]) for row in listed(tmp_path / "left.tsv")] == [("weight", "3x2"), ("count", "1")]
    assert "leaves this site (a/1): weight 3x2, count 1; 28 bytes" in capsys.readouterr().err


def test_numbers_to_be_added_up_are_listed_as_masked_and_their_bounds_as_words(tmp_path):
    LeftSite(tmp_path / "left.tsv")(Packet(TOTAL, {"key": "a/1", SUM: {"weight": "<f4", "count": "<f4"}}, MODEL))
    found = {row["name"]: (row["type"], row["bytes"]) for row in listed(tmp_path / "left.tsv")}
    assert found["weight"] == (left_site.MASKED, "48") and found["count"] == (left_site.MASKED, "8")
    assert {name for name, (kind, _) in found.items() if kind == "words"} == {"bounds", "fingerprint"}


def test_every_kind_of_line_is_explained_among_the_artefacts():
    page = ARTEFACTS.read_text(encoding="utf-8").split("### What left this site\n")[1].split("\n#")[0]
    kinds = (OPEN, REPLY, TOTAL, LARGEST, LEAVE, INTRODUCE, REFUSED, *(f"secure-{step}" for step in STEPS))
    for kind in (*kinds, left_site.MASKED, "words", "bounds", "fingerprint"):
        assert f"| `{kind}` |" in page, kind
    assert all(f"`{column}`" in page for column in COLUMNS)


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
        self.clients = SiteClients(leaving=self._leaving, noting=self._noting)

    def run(self):
        sites = {code: Site(self.clients, INPUTS, code, mlp, only_nodes, secure=True) for code in NAMES}
        for site in sites.values():
            site.start()
        self.clients.ask({0: Packet(INTRODUCE)}, 1.0)
        conversation(self.clients).run()

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
        study.clients.doors[0](Packet(KEYS))
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
