"""A study whose sums are added up unseen: a simulation's scores, no open upload, and sites that are lost in a sum."""

import json
import re
import threading
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.methods.logistic_federated.declaration import FederatedLogisticSettings
from brainfed.methods.logistic_federated.train import train as train_logistic
from brainfed.runtime import UserError
from brainfed.runtime.jobs import Run
from brainfed.sites import ABSENT, LEAVE, REPLY, SEALED, Coordinator, Packet, SiteClient, SiteError
from brainfed.sites._packet import LARGEST, NEXT, OPEN, TOTAL, bounds_of, seal
from brainfed.sites.conversation import Conversation
from brainfed.sites.flower import Outward, SecureSums
from brainfed.sites.flower._secure_site import KEYS, MASKED, UNMASK
from support.sites.apart_sites import only_nodes
from support.sites.secure_sites import Sites
from support.sites.sites_in_threads import NAMES, Site, SiteClients, conversation, numbers
from support.sites.small_studies import INPUTS, ended, mlp, resumable_in, ridge, same, simulated, started


def mlp_by_subjects(inputs):
    return mlp(inputs, weighting="subjects")


def logistic(inputs):
    return train_logistic(inputs, FederatedLogisticSettings(costs=(0.1,), max_rounds=4), Run())


class Wire:
    """What leaves the sites."""

    def __init__(self):
        self.left = []

    def __call__(self, code, request):
        self.left.append((code, request))
        return request

    def of(self, *kinds):
        return [request for _, request in self.left if request.kind in kinds]


def studied(train, clients, talk=None, **options):
    sites = started(clients, train, secure=True)
    (talk or conversation(clients, **options)).run()
    return ended(sites)


@pytest.mark.parametrize("train", [mlp, mlp_by_subjects, ridge, logistic])
def test_scores_are_those_of_a_simulation_and_no_number_leaves_open(train):
    wire = Wire()
    same(studied(train, SiteClients(leaving=wire)), train, atol=1e-6)
    sealed = wire.of(REPLY, TOTAL)
    assert sealed and all(SEALED in request.about and not request.tensors for request in sealed)
    assert all("samples" not in request.about for request in sealed)
    assert wire.of(MASKED)
    assert {request.kind for request in wire.of(OPEN, LARGEST, LEAVE)} >= {LEAVE}


def test_uploads_are_random_to_who_sees_one():
    """The bits of a masked number are set as often as not; open ones would leave the highest of them alike."""
    wire = Wire()
    studied(ridge, SiteClients(leaving=wire))
    uploads = [request.tensors["masked"] for request in wire.of(MASKED)]
    assert len({upload.tobytes() for upload in uploads}) == len(uploads)
    found = np.concatenate(uploads)
    share = [np.mean(found >> np.uint64(bit) & np.uint64(1)) for bit in range(64)]
    np.testing.assert_allclose(share, 0.5, atol=5 / np.sqrt(found.size))


class Losing:
    """A wire on which masked numbers of site 2 are lost in step 4, so many times."""

    def __init__(self, clients, times):
        self.clients, self.times = clients, times

    def __call__(self, code, request):
        if code == 2 and request.kind == MASKED and self.times and self.clients.coordinator.rounds == 3:
            self.times -= 1
            return Packet("absent")
        return request


def with_losses(times, wait):
    clients = SiteClients()
    clients.leaving = Losing(clients, times)
    clients.coordinator = Coordinator(NAMES, 2, SecureSums(clients, 2))
    outcomes = studied(mlp, clients, Conversation(clients, clients.coordinator, wait, None))
    assert clients.leaving.times < times
    return outcomes


def test_a_mean_waits_for_a_site_that_is_lost_in_its_sum():
    same(with_losses(3, wait=20.0), mlp, atol=1e-6)


def test_a_mean_goes_on_without_a_site_that_is_late_in_its_sum():
    """The site's number is in no sum of that round: the others go on from a mean of two."""
    found = with_losses(10**9, wait=0.3)
    assert all(np.isfinite(outcome.scores).any() for outcome in found.values())
    assert np.nanmax(np.abs(found[0].scores - simulated(mlp)[:, INPUTS.members(0)])) > 1e-4


def test_a_sum_of_all_waits_for_a_site_that_is_lost_in_it():
    lost = {"times": 0}

    def leaving(code, request):
        if code == 1 and request.kind in (KEYS, MASKED, UNMASK) and lost["times"] < 3:
            lost["times"] += 1
            return Packet("absent")
        return request

    same(studied(ridge, SiteClients(leaving=leaving)), ridge, atol=1e-9)
    assert lost["times"] == 3


def test_a_site_that_stays_away_from_a_sum_is_named():
    def leaving(code, request):
        return Packet("absent") if code == 1 and request.kind == MASKED else request

    with pytest.raises(UserError, match=r"of every site to add up unseen, found none of 'site-1'; start"):
        studied(ridge, SiteClients(leaving=leaving), wait=0.3)


def test_a_site_whose_job_was_started_again_is_asked_for_its_new_request_at_once(tmp_path):
    """The coordinator holds a request of the earlier job, which no sum can be made of."""
    wire, begun, resumable = Wire(), [], resumable_in(tmp_path)

    def leaving(code, request):
        if code == 0 and SEALED in request.about and request.about.get("round") == 2 and not begun:
            clients.clients[0].close()
            clients.open(0)
            begun.append(Site(clients, INPUTS, 0, resumable, only_nodes, secure=True))
            begun[0].start()
        return wire(code, request)

    clients = SiteClients(leaving=leaving)
    outcomes = studied(resumable, clients)
    begun[0].join(60)
    same({0: begun[0].outcome, 1: outcomes[1]}, mlp, atol=1e-6)
    assert len(wire.of(ABSENT)) == 1


def test_a_number_that_is_not_finite_is_refused_with_the_name_of_the_site(caplog):
    clients = SiteClients()
    of_job = clients.clients[1].of_job

    def broken(request):
        if request.kind == REPLY:
            request = replace(request, tensors={name: numbers(each) for name, each in request.tensors.items()})
        return of_job(request)

    clients.clients[1].of_job = broken
    with pytest.raises(UserError, match=r"round 1: expected at least 3 sites in time, found 2 \(none of 'site-1'\)"):
        studied(mlp, clients, wait=0.5, least=3)
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert re.match(r"site 'site-1', round 1: expected finite numbers in .*, found NaN", line)


def test_a_site_that_starts_again_with_other_numbers_is_refused():
    clients = SiteClients()
    key = {"key": "job/1", "sum": {"count": "<i8"}, "request": "a"}
    coordinator = Coordinator(NAMES, 2, lambda sealed, bounds, all_: ({"count": np.array(6.0)}, tuple(sealed)))
    first = {code: sealed(clients, code, key, 2) for code in NAMES}
    assert {int(packet.tensors["count"]) for packet in coordinator.answers(first).values()} == {6}
    assert coordinator.answers({1: sealed(clients, 1, key, 2)})[1].tensors["count"] == 6
    with pytest.raises(SiteError, match="expected the numbers that it gave before"):
        coordinator.answers({1: sealed(clients, 1, key, 3)})


def test_a_site_whose_masked_numbers_have_another_shape_is_named_with_what_differs():
    def request(code):
        arrays = {"w": np.ones(3 if code == 2 else 2), **({"more": np.ones(1)} if code == 2 else {})}
        return seal(Packet(TOTAL, {"key": "a/1", "sum": {}}, arrays), "secret")

    with pytest.raises(SiteError, match=r"expected w of shape \(2,\) as at site .* found w of shape \(3,\), more of"):
        bounds_of({code: request(code) for code in NAMES}, NAMES)


def sealed(clients, code, about, count):

    return seal(Packet(TOTAL, about, {"count": np.array(count)}), f"secret-{code}")


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


def test_the_client_of_a_site_names_the_step_whatever_the_coordinator_says(tmp_path):
    """Job, round and fingerprint are those of the site's own request."""
    client = SiteClient(dict, lambda request: None, "secret", 5.0)
    request = Packet(TOTAL, {"key": "job/7", "sum": {"n": "<f8"}}, {"n": np.ones(2)})
    threading.Thread(target=client.of_job, args=(request,), daemon=True).start()
    sites, outward = Sites(), Outward(client, 2, lambda packet: None, unmasked=tmp_path / "unmasked.jsonl")
    sites.doors[0], sites.request = outward, client.of_coordinator(Packet(NEXT)).about["request"]
    assert sites.keys()[0].kind == ABSENT
    sealed = outward(Packet(NEXT))
    sites.summed("a", [0, 1, 2])
    line = (tmp_path / "unmasked.jsonl").read_text()
    assert '"job/7"' in line and sealed.about["sealed"]["fingerprint"] in line
