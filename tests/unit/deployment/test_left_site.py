"""The record of what leaves a site: the table and the terminal say the same, in words that the documents explain."""

import csv
import re
from pathlib import Path

import numpy as np

from brainfed.deployment.left_site import COLUMNS, MASKED, LeftSite
from brainfed.federation.apart.exchange import INTRODUCE, LARGEST, LEAVE, OPEN, REFUSED, REPLY, TOTAL
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SUM

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
    assert found["weight"] == (MASKED, "48") and found["count"] == (MASKED, "8")
    assert {name for name, (kind, _) in found.items() if kind == "words"} == {"bounds", "fingerprint"}


def test_every_kind_of_line_is_explained_among_the_artefacts():
    page = ARTEFACTS.read_text(encoding="utf-8").split("### What left this site\n")[1].split("\n#")[0]
    kinds = (OPEN, REPLY, TOTAL, LARGEST, LEAVE, INTRODUCE, REFUSED, *(f"secure-{step}" for step in STEPS))
    for kind in (*kinds, MASKED, "words", "bounds", "fingerprint"):
        assert f"| `{kind}` |" in page, kind
    assert all(f"`{column}`" in page for column in COLUMNS)
