"""A site's connection to the coordinator: made, made anew, and why there is none."""

import socket
import ssl
import sys
import time
from pathlib import Path

from brainfed.deployment.desk import Desk
from brainfed.deployment.flower.folder import FlowerFolder
from brainfed.deployment.flower.outward import Outward
from brainfed.deployment.flower.processes import Running, start_supernode, stop
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
        self._said = ""

    def __call__(self) -> None:
        """Connect, if there is no connection; wait for a coordinator that does not answer yet.

        The SuperNode is tried where nobody answers, too: a proxy may lead there.

        Raises:
            UserError: the coordinator has refused this site.
        """
        if self._desk.refused:
            raise UserError(self._desk.refused)
        if self._running and self._outward.silent:
            print("has heard nothing of the coordinator, connects anew", file=sys.stderr)
            stop(self._running)
        while not any(each.process.poll() is None for each in self._running):
            self._running.clear()
            unreached = ""
            try:
                unreached = unreached_for(self._folder.certificate, self._study.address)
                if unreached:
                    self._say(f"waits for the coordinator at {self._study.address}: {unreached}")
                node = start_supernode(self._folder, self._study.site, self._study.address, self._socket)
                self._running.append(node)
                self._outward.connected()
                self._say(f"connected to the coordinator at {self._study.address}")
                self._said = ""
            except UserError as error:
                if not unreached:
                    self._say(f"waits for the coordinator at {self._study.address}: {error}")
                time.sleep(AGAIN_S)

    def look(self) -> None:
        """Say why no coordinator can be reached, if so: the cause can be mended while this site prepares its data."""
        try:
            reason = unreached_for(self._folder.certificate, self._study.address)
        except UserError as error:
            reason = str(error)
        if reason:
            self._say(f"waits for the coordinator at {self._study.address}: {reason}")

    def _say(self, sentence: str) -> None:
        """Print a sentence, once until another one follows."""
        if sentence != self._said:
            print(sentence, file=sys.stderr)
        self._said = sentence


def unreached_for(certificate: Path, address: str) -> str:
    """Why nobody answers at an address; empty: the coordinator does, and shows the certificate that the site has.

    Args:
        certificate: the site's copy.
        address: of the coordinator, host:port.

    Raises:
        UserError: another certificate is shown there.
    """
    host, _, port = address.rpartition(":")
    trust = ssl.create_default_context(cafile=str(certificate))
    try:
        with socket.create_connection((host, int(port)), PROBE_S) as plain:
            trust.wrap_socket(plain, server_hostname=host).close()
    except ssl.SSLCertVerificationError as error:
        raise UserError(
            f"{certificate} does not fit the certificate that is shown there ({error.verify_message}); ask the "
            "coordinator for its `federation/certificate.pem`, and put it in the place of this file"
        ) from error
    except OSError as error:
        return (
            f"expected it to answer, found that it does not ({error.strerror or error}); ask whether `brainfed "
            "coordinate` runs there and a firewall lets you through; this goes on trying"
        )
    return ""
