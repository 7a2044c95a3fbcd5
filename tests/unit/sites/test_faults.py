"""A site is late, leaves and comes back, or sends nonsense; a coordinator is killed."""

import logging
import re
from dataclasses import replace
from threading import Thread

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.federation.strategies import FedAvg, Selection
from brainfed.runtime import Streams, UserError
from brainfed.sites import REFUSED, REPLY, Coordinator, DifferingSitesError, Packet, SiteError
from brainfed.sites import conversation as talking
from brainfed.sites._recipes import recipe_of
from brainfed.sites._sessions import Session
from brainfed.sites.conversation import Conversation
from support.sites.apart_sites import only_nodes
from support.sites.sites_in_threads import NAMES, Site, SiteClients, conversation, numbers
from support.sites.small_studies import INPUTS, ROUNDS, ended, mlp, resumable_in, ridge, same, started


def test_a_whole_study_ends_with_the_last_words_of_every_site():
    clients = SiteClients()
    sites = started(clients, ridge)
    left = conversation(clients).run()
    assert sorted(left) == [0, 1, 2] and all(packet.about["scores"] == [] for packet in left.values())
    same(ended(sites), ridge, atol=1e-12)


CHANGES = {
    "NaN": numbers,
    "shape": lambda array: array[..., :-1],
    "type": lambda array: array.astype(np.float64),
}
"""What makes numbers that cannot be used of good ones."""


def spoiling(change, number, site=1):
    """A site sends other numbers once, in round `number`."""
    spoilt = []

    def leaving(code, request):
        if spoilt or code != site or request.kind != REPLY or request.about["round"] != number:
            return request
        spoilt.append(request)
        return replace(request, tensors={name: change(array) for name, array in request.tensors.items()})

    return leaving


def starting_again(clients, sites, code, train):
    """A thread that waits for a site's end, and starts it once more."""

    def again():
        sites[code].join(20)
        clients.open(code)
        sites[code] = Site(clients, INPUTS, code, train, only_nodes)
        sites[code].start()

    return Thread(target=again)


@pytest.mark.parametrize("number", [0, 2])
@pytest.mark.parametrize("broken", CHANGES)
def test_a_site_whose_numbers_cannot_be_used_is_refused_alone_and_mended(broken, number, tmp_path, monkeypatch, caplog):
    """The others hear nothing of it, and all find the simulation's scores. In the first round the majority decides."""
    monkeypatch.setattr(talking, "REST_S", 0.1)
    clients = SiteClients(leaving=spoiling(CHANGES[broken], number))
    sites = started(clients, resumable_in(tmp_path))
    first, mending = sites[1], starting_again(clients, sites, 1, resumable_in(tmp_path))
    mending.start()
    with caplog.at_level(logging.WARNING, "brainfed"):
        conversation(clients).run()
    mending.join(20)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert re.match(rf"site 'site-1', round {number + 1}: expected .* found", str(first.error))
    assert line == f"{first.error} It counts as absent until `brainfed join` is started there again."
    same(ended(sites), mlp)


def test_a_site_that_cannot_be_read_for_a_while_holds_nobody_up_for_longer(monkeypatch, caplog):
    """It is refused each time, which is said once; its job, of which nothing came, goes on."""
    monkeypatch.setattr(talking, "REST_S", 0.1)
    clients, broken = SiteClients(), []
    ask = clients.ask

    def asking(requests, timeout):
        packets = [packet for code, packet in requests.items() if code == 1]
        if len(broken) < 3 and packets and packets[0].kind != REFUSED:
            broken.append(packets)
            raise SiteError(1, "site 'site-1': expected a packet, found none that can be read.")
        return {} if any(packet.kind == REFUSED for packet in requests.values()) else ask(requests, timeout)

    clients.ask = asking
    sites = started(clients, mlp)
    conversation(clients).run()
    same(ended(sites), mlp)
    assert len(broken) == 3
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "site 'site-1': expected a packet, found none that can be read. It counts as absent until `brainfed join` is "
        "started there again."
    ]


def test_sites_that_all_differ_from_the_first_round_on_end_the_study_as_any_of_them_may_be_wrong():
    one, other = (spoiling(CHANGES[broken], 0, site) for broken, site in (("shape", 1), ("type", 2)))
    clients = SiteClients(leaving=lambda code, request: other(code, one(code, request)))
    sites = started(clients, mlp)
    with pytest.raises(DifferingSitesError, match=r"site 'site-1', round 1: expected .* found") as raised:
        conversation(clients).run()
    sites[1].join(20)
    assert str(sites[1].error) == str(raised.value)


def test_rounds_go_on_without_a_site_whose_numbers_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr(talking, "REST_S", 0.1)
    clients, coordinator = SiteClients(leaving=spoiling(numbers, 2)), Coordinator(NAMES, 2)
    sites = started(clients, resumable_in(tmp_path))
    talk = Thread(target=Conversation(clients, coordinator, 0.5, None).run)
    talk.start()
    for code in (0, 2):
        sites[code].join(60)
        assert np.isfinite(sites[code].outcome.training_loss[:, code]).all()
    assert "expected finite numbers" in str(sites[1].error)
    starting_again(clients, sites, 1, resumable_in(tmp_path)).start()
    talk.join(60)
    assert not talk.is_alive()


def test_a_round_goes_on_without_a_late_site_which_takes_part_again():
    """The site sits out two rounds: institutions that were not drawn do the same in a simulation."""
    clients, coordinator = SiteClients(), Coordinator(NAMES, 2)
    clients.away = lambda code: code == 2 and coordinator.rounds in (3, 4)
    sites = started(clients, mlp)
    Conversation(clients, coordinator, 0.5, None).run()
    losses = {code: outcome.training_loss[:, code] for code, outcome in ended(sites).items()}
    assert np.isfinite(losses[0]).all() and np.isfinite(losses[1]).all()
    trained = np.isfinite(losses[2]).all(axis=1)
    assert not trained.all() and trained[:2].all() and trained[-1]


def test_a_sum_waits_for_all_and_says_who_is_missing():
    clients = SiteClients()
    started(clients, ridge)
    clients.away = lambda code: code == 1
    with pytest.raises(UserError, match=r"expected every site, .* found none of 'site-1' in time; start"):
        conversation(clients, wait=0.5).run()


def test_too_few_sites_end_a_round_with_their_names():
    clients, coordinator = SiteClients(), Coordinator(NAMES, 2)
    clients.away = lambda code: code > 0 and coordinator.rounds == 3
    started(clients, mlp)
    with pytest.raises(UserError, match=r"round 3: expected at least 2 sites in time, found 1 \(none of 'site-1'"):
        Conversation(clients, coordinator, 0.5, None).run()


def test_a_killed_coordinator_goes_on_from_its_state(tmp_path):
    """Killed after each of its saved states in turn: sites wait, and find the simulation's scores."""
    kept = tmp_path / "state"
    clients = SiteClients()
    sites = started(clients, mlp)
    kills = 0
    while True:
        talk = conversation(clients, kept=kept)
        save = talk._save

        def dying(save=save):
            save()
            raise InterruptedError

        talk._save = dying
        try:
            talk.run()
            break
        except InterruptedError:
            kills += 1
        assert kills < 4 * ROUNDS
        if all(site.outcome is not None for site in sites.values()):
            break
    assert kills > ROUNDS
    same(ended(sites), mlp)


def test_a_state_of_another_study_is_refused(tmp_path):
    clients, kept = SiteClients(), tmp_path / "state"
    started(clients, ridge)
    conversation(clients, kept=kept).run()
    with pytest.raises(UserError, match="expected the state of this study, found that of another"):
        conversation(SiteClients(), kept=kept, study="another").run()


@pytest.mark.parametrize("gone", [1, 3, ROUNDS - 1])
def test_a_site_that_was_killed_trains_on_from_its_last_round(tmp_path, gone):
    """Killed after a round's reply has left and before its answer came: it trains that round again, to the same end."""
    clients = SiteClients()
    first = {"lost": False}

    def leaving(code, request):
        if code == 0 and request.kind == REPLY and request.about["round"] == gone and not first["lost"]:
            first["lost"] = True
            clients.open(0)
            sites[0] = Site(clients, INPUTS, 0, resumable_in(tmp_path), only_nodes)
            sites[0].start()
        return request

    clients.leaving = leaving
    sites = started(clients, resumable_in(tmp_path))
    conversation(clients).run()
    assert first["lost"]
    same(ended(sites), mlp)


def test_a_round_that_a_site_sat_out_is_not_trained_by_it_when_it_comes_back():
    start = {"weight-0": torch.zeros(1, 2)}
    recipe = recipe_of(FedAvg((0, 1, 2), start, selection=Selection(3, 0.4, Streams(5))))
    session = Session(recipe, (0, 1, 2), ROUNDS)
    (drawn,) = session.strategy.choose(0)
    reply = {"weight-0": np.ones((1, 2), dtype=np.float32)}
    requests = {code: Packet(REPLY, {"round": 0, "samples": [1], "plain": []}) for code in NAMES}
    requests[drawn] = Packet(REPLY, {"round": 0, "samples": [1], "plain": []}, reply)
    session.aggregate(requests, NAMES, pytest.fail)
    again = {code: session.answer(code, 0).about for code in NAMES}
    assert {code: about["trains"] for code, about in again.items()} == {code: code == drawn for code in NAMES}
    assert all(about["round"] == 0 for about in again.values())


def test_a_site_that_comes_back_changed_is_absent_and_the_study_waits_for_it_alone():
    """The others hear nothing of it; mended within `wait`, it takes part as if it had not been away."""
    clients, refused = SiteClients(), []

    def compare(codes):
        wrong = [code for code in codes if code == 1 and not refused]
        for code in wrong:
            refused.append(code)
            clients.ask({code: Packet(REFUSED, {"sentence": "site 'site-1': expected seed: 1"})}, 1.0)
            sites[1].join(20)
            clients.open(1)
            mended = Site(clients, INPUTS, 1, ridge, only_nodes)
            sites[1] = mended
            mended.start()
        return set(codes) - set(wrong)

    sites = started(clients, ridge)
    first = sites[1]
    left = Conversation(clients, Coordinator(NAMES, 3), 20.0, None, compare).run()
    assert sorted(left) == [0, 1, 2]
    assert str(first.error) == "site 'site-1': expected seed: 1"
    same(ended(sites), ridge, atol=1e-12)


def test_a_site_that_is_refused_and_not_mended_is_late_as_every_absent_site():
    clients = SiteClients()
    started(clients, ridge)
    with pytest.raises(UserError, match=r"expected every site, .* found none of 'site-1' in time; start"):
        Conversation(clients, Coordinator(NAMES, 2), 0.5, None, lambda codes: set(codes) - {1}).run()


def test_the_log_names_each_site_that_leaves(caplog):
    caplog.set_level(logging.INFO, "brainfed")
    clients = SiteClients()
    started(clients, ridge)
    conversation(clients).run()
    lines = [record.getMessage() for record in caplog.records]
    found = [line for line in lines if "has left" in line]
    assert sorted(line.split(";")[0] for line in found) == [f"site site-{code} has left" for code in NAMES]
    assert found[-1].endswith("has left; all sites have left")
    assert lines[0] == "1 step, the last of job; waiting for site-0, site-1, site-2"
