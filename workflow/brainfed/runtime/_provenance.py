"""Provenance of a result: versions, machine type, contents of files. No host, user or folder names."""

import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PACKAGES = {
    "brainfed": "brainfed", "snakemake": "snakemake", "numpy": "numpy", "scipy": "scipy", "pandas": "pandas",
    "pyarrow": "pyarrow", "nibabel": "nibabel", "nilearn": "nilearn", "scikit-learn": "sklearn",
    "statsmodels": "statsmodels", "torch": "torch", "torch-geometric": "torch_geometric", "safetensors": "safetensors",
    "pydantic": "pydantic", "matplotlib": "matplotlib", "opacus": "opacus", "neuroHarmonize": "neuroHarmonize",
    "neuroCombat": "neuroCombat", "networkx": "networkx", "altair": "altair", "vl-convert-python": "vl_convert",
    "pillow": "PIL",
}  # fmt: skip
"""Package -> the module that it installs."""
NOT_COMPUTING = frozenset({"brainfed", "snakemake", "pydantic"})
"""Packages without influence on numbers: brainfed has digests of its own, the others plan jobs."""


def versions() -> dict[str, str]:
    """Versions of Python and of the installed packages that results depend on; nothing is imported."""
    return {"python": platform.python_version(), **_versions_of(PACKAGES)}


def imported_versions() -> dict[str, str]:
    """Versions of Python and of the computing packages that this process has imported."""
    imported = (name for name, module in PACKAGES.items() if name not in NOT_COMPUTING and module in sys.modules)
    return {"python": platform.python_version(), **_versions_of(imported)}


def _versions_of(packages: Iterable[str]) -> dict[str, str]:
    """Versions of the installed ones among these packages.

    `importlib.metadata.version` would parse a package's whole description.
    """
    versions = {}
    for name in packages:
        try:
            known = distribution(name)
        except PackageNotFoundError:
            continue
        stated = re.search(r"^Version: *(\S+)", known.read_text("METADATA") or "", re.MULTILINE)
        versions[name] = stated[1] if stated else known.version
    return versions


def machine() -> dict[str, str | int]:
    """Operating system and processor: `platform`, `cpu` (its model) and `cores` that this process may use."""
    return {
        "platform": " ".join(part for part in (platform.system(), platform.machine(), *platform.libc_ver()) if part),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
    }


def file_digest(path: Path | str) -> str:
    """SHA-256 of a file's content, as 64 hexadecimal characters."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cpu_model() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    elif platform.system() == "Darwin":
        answer = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        )
        if answer.returncode == 0:
            return answer.stdout.strip()
    return platform.processor() or platform.machine()
