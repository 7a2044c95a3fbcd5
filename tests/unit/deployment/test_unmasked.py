"""A site helps to unmask its numbers over one set of sites, also after a restart."""

import json
import threading

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.desk import Desk
from brainfed.deployment.flower.outward import Outward
from brainfed.federation.apart.exchange import ABSENT, NEXT, TOTAL
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.errors import UserError
from support.sites.secure_sites import Sites
from support.sites.sites_in_threads import NAMES


@pytest.mark.parametrize("again", ["the same process", "a new process"])
def test_one_request_is_unmasked_for_one_set_of_sites(again, tmp_path):
    """The coordinator was killed after the sites had unmasked a round, and one of them is away now."""
    sites = Sites(tmp_path)
    sites.summed("a", [0, 1, 2])
    if again == "a new process":
        for code in NAMES:
            sites.open(code)
    sites.summed("b", [0, 1, 2])
    with pytest.raises(
        UserError, match=r"job/1, round 5: expected .* 'site-0', 'site-1', 'site-2', .* found .* 'site-0', 'site-1'; .*"
        r"start the coordinator again when it reaches 'site-2'"
    ):  # fmt: skip
        sites.summed("c", [0, 1], [2])


def test_a_site_that_was_not_in_the_sum_is_to_stay_away(tmp_path):
    sites = Sites(tmp_path)
    sites.summed("a", [0, 1], [2])
    with pytest.raises(UserError, match=r"job/1, round 5: .* stop `brainfed join` at 'site-2' until this step is over"):
        sites.summed("b", [0, 1, 2])


def test_other_numbers_or_another_round_are_unmasked_for_other_sites(tmp_path):
    sites = Sites(tmp_path)
    sites.summed("a", [0, 1, 2])
    sites.numbers = {code: np.full(2, 9.0) for code in NAMES}
    sites.summed("b", [0, 1], [2])
    with pytest.raises(UserError, match="job/1, round 5"):
        sites.summed("c", [0, 1, 2])
    sites.addends = lambda code, asked: Packet(asked.kind, {"key": "job/2"}, {"n": sites.numbers[code]})
    sites.summed("d", [0, 1, 2])
    with pytest.raises(UserError, match=r"^job/2: "):
        sites.summed("e", [0, 1], [2])


def test_the_sets_are_on_the_disk_before_the_reply_and_are_the_users_alone(tmp_path):
    sites = Sites(tmp_path)
    (tmp_path / "0.jsonl").mkdir()
    with pytest.raises(OSError):
        sites.open(0)
    (tmp_path / "0.jsonl").rmdir()
    sites.summed("a", [0, 1, 2])
    assert (tmp_path / "0.jsonl").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "0.jsonl").read_text().count("\n") == 1
    sites.summed("b", [0, 1, 2])
    assert (tmp_path / "0.jsonl").read_text().count("\n") == 1


def test_a_full_disk_leaves_the_sum_masked(tmp_path, monkeypatch):
    sites = Sites(tmp_path)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space left"):
            sites.summed("a", [0, 1, 2])
    assert (tmp_path / "0.jsonl").read_bytes() == b""
    sites.summed("b", [0, 1], [2])
    sites.open(0)
    with pytest.raises(UserError, match="job/1, round 5"):
        sites.summed("c", [0, 1, 2], codes=[0])


def test_a_line_that_was_cut_off_is_no_set(tmp_path):
    """A power cut in the middle of a line: its reply had not left the site."""
    sites = Sites(tmp_path)
    sites.summed("a", [0, 1, 2])
    whole = (tmp_path / "0.jsonl").read_text()
    (tmp_path / "0.jsonl").write_text(whole + whole[:30])
    sites.open(0)
    sites.addends = lambda code, asked: Packet(asked.kind, {"key": "job/2"}, {"n": sites.numbers[code]})
    sites.summed("b", [0, 1, 2])
    lines = (tmp_path / "0.jsonl").read_text().splitlines(keepends=True)
    assert lines[0] == whole
    assert [json.loads(line)["key"] for line in lines] == ["job/1", "job/2"]


def test_a_damaged_file_of_sets_is_named(tmp_path):
    (tmp_path / "0.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match=r"0\.jsonl, line 1: expected a sum that was unmasked"):
        Sites(tmp_path)


def test_the_desk_of_a_site_names_the_step_whatever_the_coordinator_says(tmp_path):
    """Job, round and fingerprint are those of the site's own request."""
    desk = Desk(dict, lambda request: None, "secret", 5.0)
    request = Packet(TOTAL, {"key": "job/7", "sum": {"n": "<f8"}}, {"n": np.ones(2)})
    threading.Thread(target=desk.of_job, args=(request,), daemon=True).start()
    sites, outward = Sites(), Outward(desk, 2, lambda packet: None, unmasked=tmp_path / "unmasked.jsonl")
    sites.doors[0], sites.request = outward, desk.of_coordinator(Packet(NEXT)).about["request"]
    assert sites.keys()[0].kind == ABSENT
    sealed = outward(Packet(NEXT))
    sites.summed("a", [0, 1, 2])
    line = (tmp_path / "unmasked.jsonl").read_text()
    assert '"job/7"' in line and sealed.about["sealed"]["fingerprint"] in line
