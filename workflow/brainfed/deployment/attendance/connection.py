"""A site's connection to the coordinator: made, made anew, and why there is none."""

import socket
import ssl
import sys
import time
from pathlib import Path

from brainfed.deployment.desk import Desk
from brainfed.deployment.flower.folder import FlowerFolder
from brainfed.deployment.flower.outward import Outward
from brainfed.deployment.flower.processes import NotReadyError, Running, start_supernode, stop
from brainfed.federation.apart.study_settings import StudySettings
from brainfed.runtime.errors import UserError

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
        study: names and address.
        socket: of the desk.
        outward: hears the coordinator.
        desk: knows whether the coordinator has refused the site.
    """

    def __init__(
        self,
        running: list[Running],
        folder: FlowerFolder,
        study: StudySettings,
        socket: Path,
        outward: Outward,
        desk: Desk,
    ) -> None:
        self._running, self._folder, self._study, self._socket = running, folder, study, socket
        self._outward, self._desk = outward, desk
        self._said: set[str] = set()
        self._quiet = False

    def __call__(self) -> None:
        """Connect, if there is no connection; wait for a coordinator that does not answer yet.

        The SuperNode is tried where nobody answers, too: a proxy may lead there.

        Raises:
            UserError: the coordinator has refused this site.
        """
        if self._desk.refused:
            raise UserError(self._desk.refused)
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
    """Why nobody answers at an address; empty: the coordinator does, and shows the certificate that the site has.

    Args:
        certificate: the site's copy.
        address: of the coordinator, host:port.

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
