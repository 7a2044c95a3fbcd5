"""Processes that end with the one that started them, even if that one is killed.

`python -m brainfed.sites.flower.lifetime PARENT SIGNAL COMMAND...` becomes the command, bound to the parent.
"""

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1


def die_with_parent(parent: int, ending: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send this process a signal when its parent ends. Linux alone; elsewhere it does nothing.

    The kernel means the thread that started this process: start from a thread that lives as long as it should. If the
    expected parent has ended already, this process ends now.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(ending), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), ending)


if __name__ == "__main__":
    die_with_parent(int(sys.argv[1]), signal.Signals(int(sys.argv[2])))
    os.execvp(sys.argv[3], sys.argv[3:])
