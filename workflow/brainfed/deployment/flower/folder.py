"""The files of Flower in a coordinator's or a site's folder; nothing is written in the user's home."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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
serverapp = "brainfed.deployment.flower.server_app:app"
clientapp = "brainfed.deployment.flower.server_app:app"

[tool.flwr.app.config]
"""


@dataclass(frozen=True)
class FlowerFolder:
    """Paths under one folder of a study.

    Attributes:
        root: an absolute path.
    """

    root: Path

    @property
    def certificate(self) -> Path:
        """The coordinator's certificate, the same at coordinator and sites."""
        return self.root / "certificate.pem"

    @property
    def certificate_key(self) -> Path:
        """Its private key; at the coordinator alone."""
        return self.root / "certificate-key.pem"

    def make(self) -> None:
        """Make the folder for its owner alone: it has keys, and what sites sent."""
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.root.chmod(0o700)
        (self.root / "keys").mkdir(exist_ok=True)

    @property
    def control_secret(self) -> Path:
        """What the coordinator's own processes show to its SuperLink; at the coordinator alone, anew at every start."""
        return self.root / "control-secret"

    @property
    def home(self) -> Path:
        """FLWR_HOME."""
        return self.root / "home"

    @property
    def app(self) -> Path:
        """The app that `flwr run` is given."""
        return self.root / "app"

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

        Args:
            entry: `package.module:function`, called as `server_app` says.
            sites: names, in the order of their codes.
            options: further configuration of the run, for the entry.
        """
        self.app.mkdir(parents=True, exist_ok=True)
        config = {**options, "folder": str(self.root), "entry": entry, "sites": ",".join(sites)}
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in config.items())
        (self.app / "pyproject.toml").write_text(_APP + lines, encoding="utf-8")
