"""Provenance of a result: versions, machine type, contents of files. No host, user or folder names.

And what is asked of a library's version that its public interface does not promise.
"""

import hashlib
import inspect
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any, Final

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


NAMES: Final = {"snakemake": "Snakemake", "flwr": "Flower", "opacus": "Opacus"}


def borrowed(place: str, parameters: Sequence[str] | None, without: str) -> Any:
    """What has a function with these parameters; None if nothing has, after a sentence on stderr.

    Args:
        place: `module:Class.function`, whose class is returned, or `module:function`, whose module is.
        parameters: names of the function's parameters; None: any, as what takes its place passes them on.
        without: what a run lacks then, as the end of a sentence.
    """
    module, _, name = place.partition(":")
    owner_name, _, function_name = name.rpartition(".")
    try:
        owner = import_module(module)
        owner = getattr(owner, owner_name) if owner_name else owner
        there = tuple(inspect.signature(getattr(owner, function_name)).parameters)
    except (ImportError, AttributeError, TypeError, ValueError):
        there = None
    if there is not None and (parameters is None or there == tuple(parameters)):
        return owner
    asked = name if parameters is None else f"{name}({', '.join(parameters)})"
    library = module.partition(".")[0]
    lock = "requirements-sites.lock" if library == "flwr" else "requirements.lock"
    print(
        f"{NAMES.get(library, library)} {version(library)}: expected {asked} in {module}, found "
        f"{'none' if there is None else ', '.join(there)}; {without}. {lock} names a version that has it.",
        file=sys.stderr,
    )
    return None


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
