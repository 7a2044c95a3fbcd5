"""A site's connection to the coordinator: made, made anew, and why there is none."""

import socket
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brainfed.configuration import StudySettings
from brainfed.runtime import UserError
from brainfed.sites import ABSENT, INTRODUCE, REFUSED, SEALED, SLOWEST, Packet, SiteClient
from brainfed.sites.flower._processes import FlowerFolder, NotReadyError, Running, start_supernode, stop
from brainfed.sites.flower._secure_site import STEPS, Summand, Unmasked

# What the coordinator reaches at a site: parts of secure sums, and the client; and since when it is silent.
#
# The client notes what jobs send. All else that says something of the site is noted here: introductions, refusals, the
# keys and shares of secure sums, and numbers that are masked once more.

NOTED = frozenset({INTRODUCE, *STEPS})
"""Kinds of replies that the client does not note."""
SILENCE_S, QUIET_S = 60.0, 40.0
"""Without a question of the coordinator, which has one every half minute at the latest: the connection is lost, and the
person at the site should know."""


class Outward:
    """Answers the coordinator.

    Args:
        client: of the site.
        fewest: sites whose sum this site helps to unmask.
        leaving: called with what leaves besides the requests of jobs, before it can leave.
        clock: seconds.
        unmasked: file of the sums that this site has helped to unmask; None: they are kept in memory.

    Raises:
        UserError: the file cannot be read.
    """

    def __init__(
        self,
        client: SiteClient,
        fewest: int,
        leaving: Callable[[Packet], None],
        clock: Callable[[], float] = time.monotonic,
        unmasked: Path | None = None,
    ) -> None:
        self._client, self._leaving, self._clock = client, leaving, clock
        self._answer = Summand(self._addends, self._of_coordinator, fewest, Unmasked(unmasked))
        self._sealed: Packet | None = None
        self._tried = ""
        self._introduced: dict[str, Any] = {}
        self.connected()

    def __call__(self, request: Packet) -> Packet:
        """The answer to a request.

        Raises:
            UserError: the request is refused.
        """
        self.connected()
        try:
            reply = self._answer(request)
        except UserError as error:
            self._note(Packet(REFUSED, {"sentence": str(error)}))
            raise
        if reply.kind in NOTED and not self._is_known(reply):
            self._note(reply)
        self._heard = self._clock() + reply.size / SLOWEST
        return reply

    def connected(self) -> None:
        """The coordinator is there now."""
        self._heard = self._clock()

    @property
    def quiet(self) -> bool:
        """Whether a question is late."""
        return self._clock() > self._heard + QUIET_S

    @property
    def silent(self) -> bool:
        """Whether nothing was heard for so long that the connection must be lost: a large reply takes its time."""
        return self._clock() > self._heard + SILENCE_S

    def _of_coordinator(self, question: Packet) -> Packet:
        reply = self._client.of_coordinator(question)
        if SEALED in reply.about:
            self._sealed = reply
        return reply

    def _addends(self, asked: Packet) -> Packet:
        """The numbers of a request that the coordinator was given sealed, with the words that it was given."""
        sealed, named = self._sealed, asked.about.get("request")
        if sealed is None or sealed.about["request"] != named:
            return Packet(ABSENT, {"sentence": "the coordinator was given another request"})
        reply = self._client.addends(asked)
        if reply.kind == ABSENT:
            return reply
        if named == self._tried:
            said = {name: word for name, word in sealed.about.items() if name not in (SEALED, "request")}
            self._leaving(Packet(reply.kind, said, reply.tensors))
        self._tried = str(named)
        return Packet(reply.kind, sealed.about, reply.tensors)

    def _is_known(self, reply: Packet) -> bool:
        """Whether an introduction differs from the last one in the clock alone: it is asked for all the time."""
        if reply.kind != INTRODUCE:
            return False
        said = {name: word for name, word in reply.about.items() if name != "clock"}
        known, self._introduced = said == self._introduced, said
        return known

    def _note(self, reply: Packet) -> None:
        """Note the words of a reply; masked numbers are noted as those of a request."""
        step = {} if self._sealed is None or reply.kind not in STEPS else self._sealed.about
        job = {name: step[name] for name in ("key", "round") if name in step}
        self._leaving(Packet(reply.kind, {**reply.about, **job}))


# The connection itself.

AGAIN_S = 5.0
"""Between two tries to reach a coordinator that does not answer yet."""
PROBE_S = 5.0
"""For a coordinator to show its certificate."""


class Connection:
    """The site's SuperNode, which is started anew when it ends, or when the coordinator has been silent.

    A SuperNode whose coordinator was started again tries for minutes to deliver its reply to the earlier run.

    Args:
        running: processes that are stopped at the end.
        folder: of Flower's files.
        study: its site and its address.
        socket: at which the client answers.
        outward: hears the coordinator.
        client: knows whether the coordinator has refused the site.
    """

    def __init__(
        self,
        running: list[Running],
        folder: FlowerFolder,
        study: StudySettings,
        socket: Path,
        outward: Outward,
        client: SiteClient,
    ) -> None:
        self._running, self._folder, self._study, self._socket = running, folder, study, socket
        self._outward, self._client = outward, client
        self._said: set[str] = set()
        self._quiet = False

    def __call__(self) -> None:
        """Connect, if there is no connection; wait for a coordinator that does not answer yet.

        The SuperNode is tried where nobody answers, too: a proxy may lead there.

        Raises:
            UserError: the coordinator has refused this site.
        """
        if self._client.refused:
            raise UserError(self._client.refused)
        self._say_quiet()
        if self._running and self._outward.silent:
            print("has heard nothing of the coordinator for a minute, connects anew", file=sys.stderr)
            stop(self._running)
            self._quiet = False
        while not any(each.process.poll() is None for each in self._running):
            self._running.clear()
            unreached = ""
            try:
                unreached = why_unreached(self._folder.certificate, self._study.address)
                if unreached:
                    self._wait_for(unreached)
                node = start_supernode(self._folder, self._study.site, self._study.address, self._socket)
                self._running.append(node)
                self._outward.connected()
                print(f"connected to the coordinator at {self._study.address}", file=sys.stderr)
                self._said.clear()
            except UserError as error:
                if not unreached or not isinstance(error, NotReadyError):
                    self._wait_for(str(error))
                time.sleep(AGAIN_S)

    def _say_quiet(self) -> None:
        """Say once that the coordinator asks nothing, and that it is back."""
        quiet = bool(self._running) and self._outward.quiet
        if quiet and not self._quiet:
            print("has heard nothing of the coordinator for a while; goes on when it is heard again", file=sys.stderr)
        elif self._quiet and self._running and not quiet:
            print("hears the coordinator again", file=sys.stderr)
        self._quiet = quiet

    def look(self) -> None:
        """Say why no coordinator can be reached, if so: the cause can be mended while this site prepares its data."""
        try:
            reason = why_unreached(self._folder.certificate, self._study.address)
        except UserError as error:
            reason = str(error)
        if reason:
            print(
                f"the coordinator at {self._study.address} is not reached yet: {reason}; this site prepares its data "
                "meanwhile",
                file=sys.stderr,
            )

    def _wait_for(self, reason: str) -> None:
        """Say why this site waits, each reason once until it is connected."""
        if reason not in self._said:
            print(f"waits for the coordinator at {self._study.address}: {reason}", file=sys.stderr)
        self._said.add(reason)


def why_unreached(certificate: Path, address: str) -> str:
    """Why nobody answers at an address (host:port); empty: one does who shows the certificate that the site has.

    Raises:
        UserError: another certificate is shown there, or the site's copy cannot be read.
    """
    host, _, port = address.rpartition(":")
    try:
        trust = ssl.create_default_context(cafile=str(certificate))
    except OSError as error:
        raise UserError(
            f"{certificate}: expected the coordinator's certificate, found none that can be read; ask the coordinator "
            "for its `federation/certificate.pem`, and put it here"
        ) from error
    try:
        with socket.create_connection((host, int(port)), PROBE_S) as plain:
            trust.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        raise UserError(
            f"{certificate} does not fit the certificate that is shown there ({error.verify_message}); ask the "
            "coordinator for its `federation/certificate.pem`, and put it in the place of this file"
        ) from error
    except OSError as error:
        silent = not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError)
        if silent:
            return (
                f"expected it to answer, found that it does not ({error.strerror or error}); ask whether `brainfed "
                "coordinate` runs there and a firewall lets you through"
            )
        return (
            "expected `brainfed coordinate` there, found a program that does not speak TLS; compare `study.address` "
            "with the address that the coordinator uses"
        )
    return ""
