"""The coordinator waits for its sites, and refuses one that differs without harm to the others."""

import logging
import re
import time
from itertools import pairwise

import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from brainfed.sites import INTRODUCE, LEAVE, REFUSED, Packet, SiteError
from brainfed.sites.conversation import AGAIN_S, FRESH_S, HERE_S, Comparison, greet
from brainfed.sites.study import introduction
from support.sites.sites_in_threads import SiteClients
from support.sites.study_config import planned

NAMES = {0: "berlin", 1: "oslo"}


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, "brainfed")
    return lambda: [record.getMessage() for record in caplog.records]


STATED = {"sets": 5, "accept_reconstruction": False, "epsilon": 10.0}
RELEASED = {"subjects": 20, "epsilon": 10.0, "delta": 1e-5}


def site(name, ahead=0.0, released=RELEASED, **changes):
    """What the client of a site says of itself."""
    plan = planned({"study": {"site": name}} | changes)
    return lambda: introduction(plan, time.time() + ahead, released=released)


def study(**introductions):
    """SiteClients of sites, and the coordinator's comparison."""
    clients = SiteClients(NAMES, introduction=lambda code: introductions[NAMES[code]]())
    return clients, Comparison(clients, NAMES, introduction(planned(), 0.0, stated=STATED))


MISTAKES = [
    (site("oslo", 120.0), "expected a clock within 60 s of the coordinator's, found one that is 1[12]. s ahead"),
    (site("oslo", -120.0), "found one that is 12. s behind; set both by NTP"),
    (site("oslo", seed=8), "expected seed: 20240101, as in the study, found 8"),
    (site("oslo", released=RELEASED | {"subjects": 19}), "expected 20 subjects or more, .* of 5 different sets .* 19"),
    (site("oslo", released=RELEASED | {"epsilon": 23.1}), "epsilon 10 or less for one subject, .*, found 23.1 over"),
    (site("oslo", released=RELEASED | {"epsilon": None}), "expected private variants alone, as epsilon 10 is stated"),
    (site("berlin"), "by its key: expected `study.site: oslo`, found 'berlin'"),
    (lambda: site("oslo")() | {"versions": {}}, "expected numpy .*, as at the coordinator, found none"),
]


@pytest.mark.parametrize(("mistaken", "words"), MISTAKES)
def test_a_site_that_differs_is_refused_alone_and_said_once(lines, mistaken, words):
    clients, compare = study(berlin=site("berlin"), oslo=mistaken)
    assert compare(NAMES) == {0}
    assert compare(NAMES) == {0}
    assert clients.clients[0].refused == ""
    (line,) = lines()
    assert line.startswith("site 'oslo'")
    assert re.search(words, line)
    assert re.search(words, clients.clients[1].refused)


def test_a_site_that_comes_back_mended_is_accepted_and_one_that_is_not_is_said_again(lines):
    said = {"berlin": site("berlin"), "oslo": site("oslo", seed=8)}
    clients, compare = study(berlin=said["berlin"], oslo=lambda: said["oslo"]())
    compare(NAMES)
    clients.open(1)
    compare(NAMES)
    assert len(lines()) == 2
    clients.open(1)
    said["oslo"] = site("oslo")
    assert compare(NAMES) == {0, 1}
    assert clients.clients[1].refused == ""


def test_a_mistake_of_a_sites_own_process_is_refused_too(lines):
    class Hub:
        def ask(self, requests, timeout):
            del timeout
            return {
                code: Packet("refused", {"sentence": "no table"})
                for code, asked in requests.items()
                if asked.kind == INTRODUCE
            }

    assert Comparison(Hub(), NAMES, introduction(planned(), 0.0, stated=STATED))(NAMES) == set()
    assert lines() == ["site 'berlin': no table", "site 'oslo': no table"]


def test_the_job_of_a_site_that_is_refused_ends_with_the_sentence():
    clients, compare = study(berlin=site("berlin"), oslo=site("oslo", seed=8))
    compare(NAMES)
    answer = clients.clients[1].of_job(Packet(LEAVE, {"scores": []}))
    assert answer.about["sentence"].startswith("site 'oslo': expected seed")


def greeted(answers, step, lines):
    """Lines of a greeting whose questions take `step` seconds, and are answered by these sites in turn if asked."""
    now, there = [0.0], iter(answers)

    def compare(codes):
        now[0] += step
        return set(next(there)) & set(codes)

    greet(compare, NAMES, lambda: now[0], lambda seconds: None)
    assert next(there, None) is None
    return lines()


def test_a_greeting_waits_without_end_and_names_who_is_absent_when_it_changes_and_now_and_then(lines):
    many = int(AGAIN_S / 10) + 1
    found = greeted([[]] * many + [[1]] + [[1]] * many + [[0, 1], [0, 1]], 10.0, lines)
    assert found == [
        "waits for berlin, oslo: ask them to run `brainfed join`",
        "site oslo is there; waits for berlin",
        "waits for berlin: ask them to run `brainfed join`",
        "site berlin is there; all sites are there",
    ]


def test_a_site_that_is_gone_before_the_others_come_is_waited_for_again(lines):
    found = greeted([[1], *([[]] * int(HERE_S / 20)), [0], [1], [0, 1]], 20.0, lines)
    assert found == [
        "site oslo is there; waits for berlin",
        "site oslo is gone; waits for berlin, oslo",
        "site berlin is there; waits for oslo",
        "site oslo is there; all sites are there",
    ]


def test_a_site_that_misses_one_question_is_still_there(lines):
    assert greeted([[1], [], [0], [0, 1]], 10.0, lines)[-1] == "site berlin is there; all sites are there"


def test_a_site_that_is_refused_when_the_last_one_comes_is_waited_for(lines):
    """It was there a moment ago, and was started again with other settings."""
    assert greeted([[1], [0], [0], [1], [0, 1]], 10.0, lines)[1:] == [
        "site berlin is there; all sites are there",
        "site oslo is there; all sites are there",
    ]


class Broken:
    """A hub to two sites of which one sends what no one can read, and answers nothing else."""

    def __init__(self):
        self.asked = []

    def ask(self, requests, timeout):
        self.asked.append({code: packet.kind for code, packet in requests.items()})
        if 1 in requests:
            raise SiteError(1, "site 'oslo': expected a packet, found 11 bytes.")
        return {0: Packet(INTRODUCE, site("berlin")())}


def test_a_site_that_cannot_be_read_is_refused_alone(lines):
    hub = Broken()
    compare = Comparison(hub, NAMES, introduction(planned(), 0.0, stated=STATED))
    assert compare([0, 1]) == compare([0, 1]) == {0}
    assert lines() == ["site 'oslo': expected a packet, found 11 bytes."]
    assert {1: REFUSED} in hub.asked


def test_a_clock_that_is_no_number_is_refused(lines):
    class Timeless:
        def ask(self, requests, timeout):
            return dict.fromkeys(requests, Packet(INTRODUCE, site("berlin", float("nan"))()))

    assert Comparison(Timeless(), NAMES, introduction(planned(), 0.0, stated=STATED))([0]) == set()
    assert "expected a clock within 60 s" in lines()[0]


def test_a_site_that_is_there_is_asked_now_and_then_for_one_that_hears_nothing_connects_anew():
    now, asked = [0.0], []

    def compare(codes):
        now[0] += 5.0
        asked.append((now[0], list(codes)))
        return set(codes) & {1} if now[0] < 100.0 else set(codes)

    greet(compare, NAMES, lambda: now[0], lambda seconds: None)
    assert all(0 in codes for _, codes in asked)
    times = [moment for moment, codes in asked if 1 in codes]
    assert {later - earlier for earlier, later in pairwise(times[:-1])} == {FRESH_S + 10.0}
