"""The coordinator compares each site with the study, refuses one that differs alone, and waits until all are there."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from logging import getLogger
from typing import Any

from brainfed.deployment.attendance.released import require_accepted
from brainfed.deployment.introduction import START, check_introduction
from brainfed.federation.apart.exchange import INTRODUCE, REFUSED
from brainfed.federation.apart.form import require_introduction
from brainfed.federation.apart.hub import Hub
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.site_error import SiteError
from brainfed.runtime.errors import UserError

GREETING_S = 10.0
"""For a site to introduce itself, or to hear that it is refused."""
SKEW_S = 60.0
"""Difference of clocks that is refused: Flower drops messages that seem to come from the past or the future."""
HERE_S = 60.0
"""After its last word, a site counts as gone."""
FRESH_S = 20.0
"""After its last word, a site is asked again."""
PAUSE_S = 1.0
"""Between two questions to sites that answer at once."""
AGAIN_S = 600.0
"""Between two lines that name the absent sites, if none comes or goes."""

logger = getLogger(__name__)


class Comparison:
    """Compares sites with the study; one that differs is refused alone, and compared again when it comes back.

    Args:
        hub: to the sites.
        names: code -> name.
        expected: the coordinator's `introduction`, with what the study's file states to release.
    """

    def __init__(self, hub: Hub, names: Mapping[int, str], expected: Mapping[str, Any]) -> None:
        self._hub, self._names, self._expected = hub, names, expected
        self._refused: dict[int, str] = {}

    def __call__(self, codes: Iterable[int]) -> set[int]:
        """Those of the sites that answered in time and would compute what the study does."""
        replies, sentences = self._heard(codes)
        sentences |= {code: self._mistake(code, reply) for code, reply in replies.items()}
        refusals = {code: Packet(REFUSED, {"sentence": sentence}) for code, sentence in sentences.items() if sentence}
        for code, refusal in refusals.items():
            # A site hears its refusal within seconds, and may be asked again before it has ended.
            said = replies[code].about if code in replies else {}
            start = str(said.get(START, refusal.about["sentence"]))
            if self._refused.get(code) != start:
                logger.warning("%s", refusal.about["sentence"])
            self._refused[code] = start
            # One that cannot be read does not answer its refusal either.
            with suppress(SiteError):
                self._hub.ask({code: refusal}, GREETING_S)
        return replies.keys() - refusals.keys()

    def _heard(self, codes: Iterable[int]) -> tuple[dict[int, Packet], dict[int, str]]:
        """Introductions of the sites that answered, and sentences on those whose answer cannot be read."""
        asked, broken = set(codes), dict[int, str]()
        while asked:
            try:
                return self._hub.ask({code: Packet(INTRODUCE) for code in sorted(asked)}, GREETING_S), broken
            except SiteError as error:
                broken[error.code] = str(error)
                asked.discard(error.code)
        return {}, broken

    def _mistake(self, code: int, reply: Packet) -> str:
        name = self._names[code]
        if reply.kind == REFUSED:
            return f"site {name!r}: {reply.about['sentence']}"
        try:
            require_introduction(code, reply, name)
            check_introduction(name, reply.about, self._expected)
            require_accepted(f"site {name!r}", self._expected["stated"], reply.about["released"])
        except UserError as error:
            return str(error)
        skew = float(reply.about["clock"]) - time.time()
        if not abs(skew) <= SKEW_S:
            return (
                f"site {name!r}: expected a clock within {SKEW_S:g} s of the coordinator's, found one that is "
                f"{abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}; set both by NTP."
            )
        return ""


def greet(
    compare: Callable[[Iterable[int]], Collection[int]],
    names: Mapping[int, str],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until all sites are there, however long that takes: nothing has begun, so nothing can be lost.

    Sites that are there are asked again meanwhile; one that hears nothing takes its connection for lost.

    Args:
        compare: codes -> those of sites that answered and compute what the study does.
        names: code -> name.
        clock: seconds.
        sleep: waits for seconds.
    """
    heard: dict[int, float] = {}
    here: set[int] = set()
    said = clock()
    while len(here) < len(names):
        asked = [code for code in names if code not in heard or clock() - heard[code] > FRESH_S]
        heard |= dict.fromkeys(compare(asked), clock())
        now = {code for code, moment in heard.items() if clock() - moment < HERE_S}
        absent = ", ".join(name for code, name in names.items() if code not in now)
        waits = f"waits for {absent}" if absent else "all sites are there"
        news = [f"site {names[code]} is there" for code in names if code in now - here]
        news += [f"site {names[code]} is gone" for code in names if code in here - now]
        if news:
            logger.info("%s; %s", ", ".join(news), waits)
        elif clock() - said > AGAIN_S:
            logger.info("%s: ask them to run `brainfed join`", waits)
        if news or clock() - said > AGAIN_S:
            said = clock()
        here = now
        if absent:
            sleep(PAUSE_S)
        else:
            # One of them may have been refused since it was heard.
            heard = dict.fromkeys(compare(list(names)), clock())
            here = set(heard)
