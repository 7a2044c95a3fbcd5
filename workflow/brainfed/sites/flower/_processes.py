"""Flower's processes: started with their logs in files, awaited until ready, and stopped together."""

import json
import os
import secrets
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from logging import getLogger
from pathlib import Path
from types import FrameType
from typing import Final

from brainfed.runtime import UserError
from brainfed.sites.flower._certificates import fingerprint, site_key, write_private

# The files of Flower in a coordinator's or a site's folder; nothing is written in the user's home.

CONNECTION: Final = "study"
"""Name of the only SuperLink in Flower's configuration."""

LINE: Final = "%(asctime)s %(levelname)s %(message)s"
"""Of the coordinator's log, which its terminal shows."""

SECRET_HEADER: Final = "brainfed-secret"
"""Header by which a process of the coordinator shows the secret."""

# Flower wants a name for `clientapp` too; a site (`node`) reads none.
_APP: Final = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "brainfed-study"
version = "1.0.0"
description = "A federated study of brainfed"
license = "MIT"
dependencies = []

[tool.hatch.build.targets.wheel]
packages = ["."]

[tool.flwr.app]
publisher = "brainfed"

[tool.flwr.app.components]
serverapp = "brainfed.sites.flower.server_app:app"
clientapp = "brainfed.sites.flower.server_app:app"

[tool.flwr.app.config]
"""


class FlowerFolder:
    """Paths under one folder of a study.

    Args:
        root: an absolute path.

    Attributes:
        certificate: the coordinator's, the same at coordinator and sites.
        certificate_key: its private key; at the coordinator alone.
        control_secret: what the coordinator's own processes show to its SuperLink; at the coordinator alone, anew at
            every start.
        home: FLWR_HOME.
        app: the app that `flwr run` is given.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.home, self.app = root, root / "home", root / "app"
        self.certificate, self.certificate_key = root / "certificate.pem", root / "certificate-key.pem"
        self.control_secret = root / "control-secret"

    def make(self) -> None:
        """Make the folder for its owner alone: it has keys, and what sites sent."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        (self.root / "keys").mkdir(exist_ok=True)

    def log(self, name: str) -> Path:
        """Of a process."""
        return self.root / "logs" / f"{name}.log"

    def private_key(self, site: str) -> Path:
        """Of a site; there alone."""
        return self.root / "keys" / site

    def public_key(self, site: str) -> Path:
        """Of a site; the site makes it and the coordinator registers it."""
        return self.root / "keys" / f"{site}.pub"

    def environment(self) -> dict[str, str]:
        """Environment of every Flower process: no telemetry, no search for updates, no proxy to this machine."""
        exempt = ",".join(
            filter(None, (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), "127.0.0.1,localhost"))
        )
        return {
            **os.environ,
            "FLWR_HOME": str(self.home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "NO_PROXY": exempt,
            "no_proxy": exempt,
            "PYTHONUNBUFFERED": "1",
        }

    def write_connection(self, address: str) -> None:
        """Write Flower's configuration: the SuperLink at `address`, host:port."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines = (
            "[superlink]",
            f"default = {json.dumps(CONNECTION)}",
            f"[superlink.{CONNECTION}]",
            f"address = {json.dumps(address)}",
            f"root-certificates = {json.dumps(str(self.certificate))}",
        )
        (self.home / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def write_app(self, entry: str, sites: Sequence[str], options: Mapping[str, str | int | float | bool]) -> None:
        """Write the app: names of installed modules, and the run's configuration.

        The entry, `package.module:function`, is called as `server_app` says, and `options` are further configuration
        for it. The names of the sites are in the order of their codes.
        """
        self.app.mkdir(parents=True, exist_ok=True)
        config = {**options, "folder": str(self.root), "entry": entry, "sites": ",".join(sites)}
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items())
        (self.app / "pyproject.toml").write_text(_APP + lines, encoding="utf-8")


# The processes.

GRACE_S: Final = 8.0
"""Between asking a process to end and killing it; a SuperNode takes leave of the SuperLink in that time."""
_LOOK_S: Final = 0.05
_HELD_S: Final = 65.0
_logger = getLogger(__name__)


class NotReadyError(UserError):
    """A process is not ready in time; it may be waiting for another."""


@dataclass(frozen=True)
class Running:
    """A process of Flower in a session of its own, so that Ctrl-C reaches it through us alone; `log` has its output."""

    name: str
    process: "subprocess.Popen[bytes]"
    log: Path

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait until `ready()`.

        Raises:
            UserError: the process ended, with the last lines of its log.
            NotReadyError: it is not ready after that time; the same.
        """
        deadline = time.monotonic() + seconds
        while not ready():
            if self.process.poll() is not None:
                raise UserError(f"{self.name} ended with code {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise NotReadyError(f"{self.name} is not ready after {seconds:.0f} s:\n{self.tail()}")
            time.sleep(_LOOK_S)

    def tail(self, lines: int = 12) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def start(
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    ending: signal.Signals = signal.SIGTERM,
) -> Running:
    """Start a command that ends with us, also by the signal `ending` when we are killed; see `lifetime`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    bound = [sys.executable, "-m", "brainfed.sites.flower.lifetime", str(os.getpid()), str(int(ending)), *command]
    with log.open("ab") as output:
        process = subprocess.Popen(
            bound,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            start_new_session=True,
        )
    return Running(name, process, log)


def stop(running: Sequence[Running]) -> None:
    """Ask all processes to end, the last first, and kill those that do not within `GRACE_S`."""
    for each in reversed(running):
        if each.process.poll() is None:
            each.process.terminate()
    deadline = time.monotonic() + GRACE_S
    for each in reversed(running):
        try:
            each.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(each.process.pid, signal.SIGKILL)
            each.process.wait()


@contextmanager
def together() -> Iterator[list[Running]]:
    """A list for processes that are stopped at the end, also at an exception, Ctrl-C, SIGTERM or a lost terminal.

    In the main thread alone.
    """
    running: list[Running] = []

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    # Under nohup a lost terminal changes nothing.
    ending = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, end) for each in ending}
    try:
        yield running
    finally:
        try:
            stop(running)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)


def start_superlink(
    folder: FlowerFolder, sites: Sequence[str], host: str, port: int, database: Path | None = None
) -> Running:
    """Start the coordinator's SuperLink: TLS, the study's sites, and our own processes.

    On return it is ready, and knows the sites' keys.

    Args:
        folder: with the certificate, its key, and the public keys of the named sites. The secret of our processes is
            made there.
        host: the address to listen on.
        port: the only one that sites reach.
        database: file that keeps registered sites and runs, at up to three times the processor time; None: in memory.

    Raises:
        UserError: it did not start.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UserError(
                f"port {port}: expected it to be free for the sites, found that it is not ({error.strerror}); stop the "
                "other program, such as an earlier coordinator, or change `study.address`."
            ) from error
    write_private(folder.control_secret, secrets.token_hex(32).encode())
    command = [
        *(sys.executable, "-m", "brainfed.sites.flower.superlink", "--folder", str(folder.root)),
        *("--host", host, "--port", str(port), "--sites", *sites),
        *(("--database", str(database)) if database else ()),
    ]
    # Asked to end while a run is followed, a SuperLink waits for the follower; nobody would be left to kill it.
    superlink = start("SuperLink", command, folder.environment(), folder.log("superlink"), signal.SIGKILL)
    try:
        superlink.wait_until(lambda: _speaks_tls(folder.certificate, port), 60)
    except BaseException:
        stop([superlink])
        raise
    return superlink


def start_supernode(folder: FlowerFolder, site: str, superlink: str, socket_path: Path) -> Running:
    """Start a site's SuperNode. It has connected on return.

    A SuperNode that was killed, or whose machine lost power, is held for connected for up to 60 s, in which Flower lets
    no other in with its key; it is tried again for so long.

    Args:
        folder: with the coordinator's certificate and the site's private key.
        site: name.
        superlink: host:port of the coordinator.
        socket_path: of the training process; see `serve`.

    Raises:
        NotReadyError: nobody answered it in a minute.
        UserError: it did not connect.
    """
    command = [
        *(sys.executable, "-m", "brainfed.sites.flower.node", "--folder", str(folder.root), "--site", site),
        *("--superlink", superlink, "--socket", str(socket_path)),
    ]
    log = folder.log(f"supernode-{site}")
    deadline = time.monotonic() + _HELD_S
    while True:
        seen = log.stat().st_size if log.exists() else 0
        supernode = start(f"SuperNode of {site}", command, folder.environment(), log)
        try:
            supernode.wait_until(partial(_says, log, seen, b"SuperNode ID:"), 60)
            return supernode
        except BaseException as error:
            stop([supernode])
            if isinstance(error, UserError) and _says(log, seen, b"404 Not Found"):
                own = fingerprint(site_key(folder.private_key(site)).public_key())
                raise UserError(
                    f"the coordinator refuses {site}: its key, {own}, is none of the study's, or the clocks of site "
                    f"and coordinator differ by five minutes; send {folder.public_key(site)} to the coordinator again, "
                    "or set both clocks by NTP"
                ) from error
            if not isinstance(error, UserError) or not _says(log, seen, b"Failed to activate SuperNode"):
                raise
            if time.monotonic() > deadline:
                raise UserError(
                    f"the coordinator does not let {site} in: {site} runs elsewhere; stop it there"
                ) from error
            _logger.warning(
                "the coordinator does not let %s in yet: it runs in another folder, or was killed less than a minute "
                "ago; this goes on trying",
                site,
            )
            time.sleep(3)


def start_run(folder: FlowerFolder) -> Running:
    """Start the study's run and follow it; the process ends with the run."""
    command = [
        *(sys.executable, "-m", "brainfed.sites.flower.program", str(folder.control_secret)),
        *("flwr", "run", str(folder.app), CONNECTION, "--stream"),
    ]
    return start("the study's run", command, folder.environment(), folder.log("run"))


def _says(log: Path, start: int, words: bytes) -> bool:
    with log.open("rb") as file:
        file.seek(start)
        return words in file.read()


def _speaks_tls(certificate: Path, port: int) -> bool:
    trust = ssl.create_default_context(cafile=str(certificate))
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as plain:
            trust.wrap_socket(plain, server_hostname="localhost").close()
    except OSError:
        return False
    return True
