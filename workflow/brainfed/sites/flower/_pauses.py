"""Flower's waits, shortened: the overrides of Flower's code, all of them here but the one of `program`.

Flower 1.41 waits for fixed times that no option changes: its SuperNode looks for a message every 3 s and for a reply
every 0.5 s, and who asks for a part of a message that is still being sent asks again after 1, 2, 4, ... 10 s. A round
then takes about 6 s however small it is. Where a later version waits elsewhere, these have no effect, and rounds are
slower.
"""

import threading
import time
from functools import partial
from types import ModuleType
from typing import Final

from flwr.supercore.inflatable.inflatable_utils import pull_objects
from flwr.superlink.grid import http_grid
from flwr.supernode import start_client_internal

SHORTEST_S: Final = 0.05
LONGEST_S: Final = 2.0
"""Between two looks for a message: right after one, and after a long time without."""
SHARE: Final = 0.1
"""Of the last wait for a message: the first pause of the next wait. A look costs the coordinator 5 to 10 ms of its one
core, and 50 sites that wait for each other look at the same time."""
GROWTH: Final = 1.15
NO_MESSAGE_S: Final = 1.0
"""The SuperNode's sleeps above this are for want of a message, those below for want of a reply."""


class Pauses:
    """The clock of a SuperNode's loop: it looks often after a message, seldom in a long silence.

    Rounds are alike: one that came late makes the next pauses longer, so that a wait has some ten looks, however long.

    Attributes:
        arrived: set when a message has arrived.
        answered: to be set when its reply is there.
    """

    def __init__(self) -> None:
        self.arrived, self.answered = threading.Event(), threading.Event()
        self._idle, self._waited = SHORTEST_S, 0.0
        self._has_message = False

    def sleep(self, seconds: float) -> None:
        """Take the place of `time.sleep`: wait for a reply, or for the next look for a message."""
        if seconds < NO_MESSAGE_S:
            if not self._has_message:
                self._idle = min(max(SHARE * self._waited, SHORTEST_S), LONGEST_S)
            self._has_message, self._waited = True, 0.0
            self.arrived.set()
            self.answered.wait(seconds)
            self.answered.clear()
        else:
            self._has_message = False
            time.sleep(self._idle)
            self._waited += self._idle
            self._idle = min(self._idle * GROWTH, LONGEST_S)


def shorten_node() -> Pauses:
    """Shorten the waits of this process's SuperNode; the clock that it sleeps by."""
    pauses = Pauses()
    vars(start_client_internal)["time"] = pauses
    _ask_sooner(start_client_internal)
    return pauses


def shorten_grid() -> None:
    """Shorten the waits of this process's grid."""
    _ask_sooner(http_grid)


def _ask_sooner(module: ModuleType) -> None:
    vars(module)["pull_objects"] = partial(pull_objects, initial_backoff=0.05, backoff_cap=1.0)
