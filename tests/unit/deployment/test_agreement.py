"""Sites whose requests do not agree: with each other, with the study, or with the state that they left."""

import itertools
import threading

import numpy as np
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.deployment.conversation import Conversation
from brainfed.federation.apart.coordinator import Coordinator
from brainfed.federation.apart.exchange import HELD, LEAVE, NEXT, OPEN, REPLY, TOTAL, WORKING
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SUM, fingerprint
from brainfed.federation.apart.site_error import SiteError
from brainfed.federation.apart.steps import Total
from brainfed.runtime.errors import UserError
from brainfed.runtime.jobs.checkpoints import Checkpoint
from support.sites.apart_sites import only_nodes
from support.sites.sites_in_threads import NAMES, Desks, Site, conversation
from support.sites.small_studies import INPUTS, ROUNDS, mlp, ridge, started


def test_a_site_that_leaves_before_a_step_ends_the_study():
    """It has results of an earlier study: sums without it would be sums of the others, in silence."""
    desks = Desks()
    sites = started(desks, ridge, codes=(0, 1))
    leaver = threading.Thread(target=desks.desks[2].of_job, args=(Packet(LEAVE, {"scores": []}),), daemon=True)
    leaver.start()
    with pytest.raises(UserError, match=r"expected 'site-2' in this step too, found that it has left"):
        conversation(desks).run()
    assert all(site.outcome is None for site in sites.values())


def test_a_site_that_has_lost_its_state_is_refused(tmp_path):
    """It would skip all rounds that the others have ended, and score by what it never trained."""
    desks = Desks()
    started(desks, mlp)
    talk = conversation(desks)
    talk.run()
    (key,) = talk._coordinator.index()["sessions"]
    opening = {"key": key, "request": "1-1", "round": 0, **talk._coordinator.steps.session(key).stated}
    with pytest.raises(
        SiteError, match=rf"site 'site-1': expected its state after round {ROUNDS} of .*, found that it"
    ):
        talk._coordinator.answers({1: Packet(OPEN, opening)})


@pytest.mark.parametrize(
    ("what", "value"), [("strategy", "gcfl"), ("settings", {}), ("tensors", "other"), ("rounds", ROUNDS + 1)]
)
def test_a_site_that_comes_back_with_another_training_is_refused(what, value):
    desks = Desks()
    started(desks, mlp)
    talk = conversation(desks)
    talk.run()
    (key,) = talk._coordinator.index()["sessions"]
    opening = {"key": key, "request": "1-1", "round": ROUNDS, **talk._coordinator.steps.session(key).stated}
    assert 1 in talk._coordinator.answers({1: Packet(OPEN, opening)})
    with pytest.raises(SiteError, match=f"site 'site-1': expected the same {what} as the study, found another"):
        talk._coordinator.answers({1: Packet(OPEN, opening | {what: value})})


def test_every_start_of_a_site_is_compared_before_it_is_answered(tmp_path):
    """A site that comes back in mid-study may have another version or other settings."""
    desks, compared = Desks(), []
    first = {"lost": False}

    def resumable(inputs):
        own = Checkpoint(tmp_path / f".{inputs.institution[0]}.predictions.parquet.0123456789abcdef.checkpoint", "key")
        return mlp(inputs, own)

    def leaving(code, request):
        if code == 0 and request.kind == REPLY and request.about["round"] == 2 and not first["lost"]:
            first["lost"] = True
            desks.open(0)
            Site(desks, INPUTS, 0, resumable, only_nodes).start()
        return request

    def compare(codes):
        compared.append(list(codes))
        return codes[:1] if len(compared) == 1 else codes

    desks.leaving = leaving
    sites = started(desks, resumable)
    Conversation(desks, Coordinator(NAMES, 3), 20.0, None, compare).run()
    assert first["lost"] and sites
    assert [code for codes in compared for code in codes].count(0) >= 2
    # The two that did not answer the first time were asked again.
    assert {code for codes in compared[1:] for code in codes} == {0, 1, 2}


def test_what_the_coordinator_has_does_not_cross_again():
    desk = Desks().desks[0]
    threading.Thread(target=desk.of_job, args=(Packet(LEAVE, {"scores": []}),), daemon=True).start()
    request = desk.of_coordinator(Packet(NEXT))
    assert request.kind == LEAVE
    assert desk.of_coordinator(Packet(NEXT, {HELD: request.about["request"]})).kind == WORKING
    assert desk.of_coordinator(Packet(NEXT, {HELD: "another"})).kind == LEAVE


def test_a_site_that_asks_again_does_not_put_off_the_end_of_the_wait():
    clock = iter(np.arange(0.0, 1000.0, 1.0))
    asked = itertools.count()

    class Hub:
        def ask(self, requests, timeout):
            del timeout
            repeated = {0: Packet(TOTAL, {"key": "a/1", "request": f"{next(asked)}-1"}, {"x": np.ones(1)})}
            waiting = {1: Packet(TOTAL, {"key": "a/2", "request": "1-2"}, {"x": np.ones(1)})}
            return {code: packet for code, packet in (repeated | waiting).items() if code in requests}

    coordinator = Coordinator(NAMES, 2)
    given = {"0": fingerprint(Packet(TOTAL, {}, {"x": np.ones(1)}))}
    coordinator.steps.keep_total("a/1", Total(given, {"x": np.ones(1)}))
    with pytest.raises(UserError, match="expected every site"):
        Conversation(Hub(), coordinator, 5.0, None, clock=lambda: float(next(clock))).run()


def test_open_numbers_beside_unseen_ones_are_refused():
    about = {"key": "a/1", "round": 0, SUM: {"x": "<f4"}}
    sealed = {code: Packet(REPLY, about, {"x": np.ones(1)}) for code in (0, 1)}
    requests = sealed | {2: Packet(REPLY, {"key": "a/1", "round": 0, "samples": [1], "plain": []}, {"x": np.ones(1)})}
    with pytest.raises(SiteError, match=r"site 'site-2': expected numbers to add up .* `study.secure_sums`, found"):
        Coordinator(NAMES, 2).answers(requests)
