"""Lines for the coordinator's person about sites that the guard refuses: one a key, now and then."""

import time
from collections.abc import Callable, Mapping
from logging import getLogger
from typing import Final

from flwr.supercore.primitives.asymmetric import bytes_to_public_key

from brainfed.deployment.flower.certificates import fingerprint

AGAIN_S: Final = 600.0
"""Between two lines about one key."""
MOST: Final = 20
"""Unknown keys that are named in that time: anybody can make any number."""

logger = getLogger(__name__)


class Refusals:
    """Warns of sites that signed their request and were refused.

    Args:
        sites: public key, PEM -> name, of the study's sites.
        clock: seconds.
    """

    def __init__(self, sites: Mapping[bytes, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._sites, self._clock = sites, clock
        self._said: dict[bytes, float] = {}

    def __call__(self, key: bytes, address: str, ahead: float) -> None:
        """Note a refusal.

        Args:
            key: public key of the site, PEM, which signed the request.
            address: where the request came from.
            ahead: seconds that the site's clock is ahead of the coordinator's.
        """
        now = self._clock()
        self._said = {each: said for each, said in self._said.items() if now - said < AGAIN_S}
        strangers = sum(each not in self._sites for each in self._said)
        if key in self._said or (key not in self._sites and strangers >= MOST):
            return
        self._said[key] = now
        if key in self._sites:
            way = "ahead" if ahead > 0 else "behind"
            logger.warning(
                "site %s is refused: expected the coordinator's time, found a clock that is %.0f s %s; set both by NTP",
                *(self._sites[key], abs(ahead), way),
            )
        else:
            logger.warning(
                "a site at %s is refused: expected a key of the study's sites, found %s; if it is one of them, put its "
                "public key into `federation/keys` and start again",
                *(address, fingerprint(bytes_to_public_key(key))),
            )
