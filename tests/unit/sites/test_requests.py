"""What the requests of sites must say: the words of their kind, and the same at every site."""

import itertools
import json
import re
import threading
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import save

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.runtime import UserError
from brainfed.sites import (
    INTRODUCE,
    LEAVE,
    REFUSED,
    REPLY,
    SEALED,
    BrokenPacketError,
    Coordinator,
    Packet,
    SiteError,
    fingerprint,
)
from brainfed.sites._packet import (
    HELD,
    LARGEST,
    NEXT,
    OPEN,
    SUM,
    TOTAL,
    WORKING,
    require_introduction,
    require_request,
    seal,
)
from brainfed.sites._sessions import Total
from brainfed.sites.conversation import Comparison, Conversation
from support.sites.apart_sites import only_nodes
from support.sites.sites_in_threads import NAMES, Site, SiteClients, conversation
from support.sites.small_studies import INPUTS, ROUNDS, mlp, resumable_in, ridge, started

WORDS = {"request": "a-1", "key": "job/1"}
WHOLE = {
    OPEN: {**WORDS, "round": 0, "strategy": "fedavg", "settings": {}, "tensors": "0123", "rounds": 3},
    REPLY: {**WORDS, "round": 0, "samples": [1, 2], "plain": []},
    TOTAL: WORDS,
    LARGEST: {**WORDS, "number": 3},
    LEAVE: {"request": "a-1"},
}
ONE = {"w": np.ones(2, np.float32)}
RELEASED = {"subjects": 40, "epsilon": None, "delta": 0.0}
INTRODUCTION = {
    "site": "site-1",
    "study": "a",
    "versions": {},
    "settings": {},
    "released": RELEASED,
    "clock": 1.5,
}
SUMMED = seal(Packet(TOTAL, {**WORDS, SUM: {"n": "<i8"}}, {"n": np.array(3)}), "secret").about


@pytest.mark.parametrize(("kind", "word"), [(kind, word) for kind, words in WHOLE.items() for word in words])
def test_a_request_needs_every_word_of_its_kind(kind, word):
    require_request(1, Packet(kind, WHOLE[kind], ONE), "site-1")
    lacking = {name: value for name, value in WHOLE[kind].items() if name != word}
    for words in (lacking, lacking | {word: None}):
        with pytest.raises(SiteError, match=rf"site 'site-1': expected the word '{word}' .* of kind '{kind}'") as found:
            require_request(1, Packet(kind, words, ONE), "site-1")
        assert found.value.code == 1


@pytest.mark.parametrize("word", INTRODUCTION)
def test_an_introduction_needs_every_word(word):
    require_introduction(1, Packet(INTRODUCE, INTRODUCTION), "site-1")
    with pytest.raises(SiteError, match=f"site 'site-1': expected the word '{word}'"):
        require_introduction(1, Packet(INTRODUCE, INTRODUCTION | {word: None}), "site-1")


@pytest.mark.parametrize("word", RELEASED)
def test_an_introduction_needs_numbers_of_what_is_released(word):
    lacking = {name: value for name, value in RELEASED.items() if name != word}
    for released in (lacking, *(RELEASED | {word: odd} for odd in ("many", -1, float("nan")))):
        with pytest.raises(SiteError, match="site 'site-1': expected numbers of subjects and epsilon"):
            require_introduction(1, Packet(INTRODUCE, INTRODUCTION | {"released": released}), "site-1")


ROW = {"variant": "ridge", "repeat": 0, "fold": 1, "subjects": 9, "counts": [[4, 1], [1, 3]], "measures": {"auc": None}}


@pytest.mark.parametrize("scores", ["oops", ["oops"], [{}], *([{**ROW, word: None}] for word in ROW)])
def test_last_words_have_rows_of_counts_and_measures(scores):
    require_request(1, Packet(LEAVE, {"request": "a-1", "scores": [ROW]}), "site-1")
    with pytest.raises(SiteError, match="site 'site-1': expected scores as rows of counts and measures"):
        require_request(1, Packet(LEAVE, {"request": "a-1", "scores": scores}), "site-1")


@pytest.mark.parametrize("kind", [INTRODUCE, "", "secure-keys"])
def test_a_request_of_another_kind_is_refused(kind):
    with pytest.raises(SiteError, match=rf"site 'site-1': expected a request of one of .* the kind '{kind}'"):
        require_request(1, Packet(kind, INTRODUCTION | WORDS), "site-1")


def sealed_with(**words):
    return {**SUMMED, SEALED: {**SUMMED[SEALED], **words}}


@pytest.mark.parametrize(
    "words",
    [
        {SUM: {"n": "<i8"}, **WORDS},
        {**SUMMED, SEALED: 3},
        {**SUMMED, SUM: {"n": "whole"}},
        {**SUMMED, SUM: {"m": "<i8"}},
        sealed_with(fingerprint=3),
        *(sealed_with(arrays=arrays) for arrays in (3, {}, {"n": 3}, {"n": [[-1], 256.0]}, {"n": [[1], 255.0]})),
        *(sealed_with(arrays={"n": [shape, 256.0]}) for shape in (3, ["a"], [1.5])),
    ],
)
def test_a_request_to_add_up_unseen_needs_what_is_seen_of_its_numbers(words):
    require_request(1, Packet(TOTAL, SUMMED), "site-1")
    with pytest.raises(SiteError, match="site 'site-1': expected types, shapes, bounds and a fingerprint"):
        require_request(1, Packet(TOTAL, words), "site-1")


def test_samples_are_whole_numbers():
    with pytest.raises(SiteError, match="site 'site-1': expected whole numbers of samples"):
        require_request(1, Packet(REPLY, WHOLE[REPLY] | {"samples": [1, "2"]}, ONE), "site-1")


def without(word):
    return lambda request: replace(
        request, about={name: value for name, value in request.about.items() if name != word}
    )


def with_tensors(count):
    return lambda request: replace(request, tensors=dict(list(request.tensors.items())[:count]))


@pytest.mark.parametrize(
    ("train", "kind", "change", "found"),
    [
        *((mlp, REPLY, without(word), f"expected the word '{word}'") for word in ("request", "round", "samples")),
        *(
            (train, kind, with_tensors(count), "expected .* found")
            for train, kind in ((mlp, REPLY), (ridge, REPLY), (ridge, TOTAL))
            for count in (0, 1)
        ),
    ],
)
def test_a_site_that_leaves_words_or_tensors_out_is_refused(train, kind, change, found, caplog):
    """A sum without a part of one site would be another sum, in silence."""
    clients = SiteClients(
        leaving=lambda code, request: change(request) if code == 1 and request.kind == kind else request
    )
    sites = started(clients, train)
    ends = r"site 'site-1'.*: expected .* found|found 2 \(none of 'site-1'\)|found none of 'site-1' in time"
    with pytest.raises(UserError, match=ends) as raised:
        conversation(clients, wait=0.5, least=3).run()
    sites[1].join(20)
    assert re.match(f"site 'site-1'.*: {found}", str(sites[1].error))
    said = [str(raised.value), *(record.getMessage() for record in caplog.records)]
    assert any(line.startswith(str(sites[1].error)) for line in said)


class Greeted:
    """A hub whose second site says what it is not; what it is sent is kept."""

    sites = NAMES

    def __init__(self, said):
        self.said, self.sent = said, []

    def ask(self, requests, timeout):
        del timeout
        self.sent += [(code, packet) for code, packet in requests.items() if packet.kind == REFUSED]
        if any(packet.kind == INTRODUCE for packet in requests.values()) and isinstance(self.said, Exception):
            raise self.said
        return {code: self.said for code, packet in requests.items() if packet.kind == INTRODUCE}


@pytest.mark.parametrize("said", [Packet(INTRODUCE), SiteError(1, "site 'site-1': expected a packet, found none")])
def test_a_site_without_an_introduction_is_refused_before_the_study(said):
    hub = Greeted(said)
    assert Comparison(hub, {1: "site-1"}, INTRODUCTION)([1]) == set()
    ((code, packet),) = hub.sent
    assert code == 1 and packet.about["sentence"].startswith("site 'site-1': expected")


@pytest.mark.parametrize("change", [{"kind": 3}, {"about": []}, {"number": None}])
def test_a_packet_of_other_types_is_none(change):
    header = {"kind": "a", "about": {}, "number": "", "names": []} | change
    with pytest.raises(BrokenPacketError, match="expected a packet"):
        Packet.from_bytes(save({}, metadata={"packet": json.dumps(header)}))


def test_a_site_that_leaves_before_a_step_ends_the_study():
    """It has results of an earlier study: sums without it would be sums of the others, in silence."""
    clients = SiteClients()
    sites = started(clients, ridge, codes=(0, 1))
    leaver = threading.Thread(target=clients.clients[2].of_job, args=(Packet(LEAVE, {"scores": []}),), daemon=True)
    leaver.start()
    with pytest.raises(UserError, match=r"expected 'site-2' in this step too, found that it has left"):
        conversation(clients).run()
    assert all(site.outcome is None for site in sites.values())


@pytest.fixture(scope="module")
def ended():
    """The coordinator of a training that has ended, and what a site says that opens it."""
    clients = SiteClients()
    started(clients, mlp)
    talk = conversation(clients)
    talk.run()
    (key,) = talk._coordinator.index()["sessions"]
    session = talk._coordinator.steps.session(key)
    return talk._coordinator, {"key": key, "request": "1-1", **session.recipe.stated(session.rounds)}


def test_a_site_that_has_lost_its_state_is_refused(ended):
    """It would skip all rounds that the others have ended, and score by what it never trained."""
    coordinator, opening = ended
    expected = rf"site 'site-1': expected its state after round {ROUNDS} of .*, found that it"
    with pytest.raises(SiteError, match=expected):
        coordinator.answers({1: Packet(OPEN, opening | {"round": 0})})


@pytest.mark.parametrize(
    ("what", "value"), [("strategy", "gcfl"), ("settings", {}), ("tensors", "other"), ("rounds", ROUNDS + 1)]
)
def test_a_site_that_comes_back_with_another_training_is_refused(ended, what, value):
    coordinator, opening = ended
    assert 1 in coordinator.answers({1: Packet(OPEN, opening | {"round": ROUNDS})})
    with pytest.raises(SiteError, match=f"site 'site-1': expected the same {what} as the study, found another"):
        coordinator.answers({1: Packet(OPEN, opening | {"round": ROUNDS, what: value})})


def test_every_start_of_a_site_is_compared_before_it_is_answered(tmp_path):
    """A site that comes back in mid-study may have another version or other settings."""
    clients, compared = SiteClients(), []
    lost = []

    def leaving(code, request):
        if code == 0 and request.kind == REPLY and request.about["round"] == 2 and not lost:
            clients.open(0)
            lost.append(Site(clients, INPUTS, 0, resumable_in(tmp_path), only_nodes))
            lost[0].start()
        return request

    def compare(codes):
        compared.append(list(codes))
        return codes[:1] if len(compared) == 1 else codes

    clients.leaving = leaving
    started(clients, resumable_in(tmp_path))
    Conversation(clients, Coordinator(NAMES, 3), 20.0, None, compare).run()
    assert lost
    assert [code for codes in compared for code in codes].count(0) >= 2
    # The two that did not answer the first time were asked again.
    assert {code for codes in compared[1:] for code in codes} == {0, 1, 2}


def test_what_the_coordinator_has_does_not_cross_again():
    client = SiteClients().clients[0]
    threading.Thread(target=client.of_job, args=(Packet(LEAVE, {"scores": []}),), daemon=True).start()
    request = client.of_coordinator(Packet(NEXT))
    assert request.kind == LEAVE
    assert client.of_coordinator(Packet(NEXT, {HELD: request.about["request"]})).kind == WORKING
    assert client.of_coordinator(Packet(NEXT, {HELD: "another"})).kind == LEAVE


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
    coordinator.steps.keep("a/1", Total(given, {"x": np.ones(1)}))
    with pytest.raises(UserError, match="expected every site"):
        Conversation(Hub(), coordinator, 5.0, None, clock=lambda: float(next(clock))).run()


def test_open_numbers_beside_unseen_ones_are_refused():
    about = {"key": "a/1", "round": 0, SUM: {"x": "<f4"}}
    sealed = {code: Packet(REPLY, about, {"x": np.ones(1)}) for code in (0, 1)}
    requests = sealed | {2: Packet(REPLY, {"key": "a/1", "round": 0, "samples": [1], "plain": []}, {"x": np.ones(1)})}
    with pytest.raises(SiteError, match=r"site 'site-2': expected numbers to add up .* `study.secure_sums`, found"):
        Coordinator(NAMES, 2).answers(requests)
