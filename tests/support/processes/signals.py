"""Signals that a test run is started without: `nohup`, or a script's background, has all its processes ignore some."""

import signal

IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)


def hear_signals() -> None:
    """Have this process interrupted as in the foreground, and its children start with no signal ignored.

    Any other signal that was ignored still does nothing here.
    """
    for number in IGNORED:
        if signal.getsignal(number) == signal.SIG_IGN:
            interrupts = number == signal.SIGINT
            signal.signal(number, signal.default_int_handler if interrupts else lambda *_: None)
