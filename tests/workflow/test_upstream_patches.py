"""The patches of `docs/upstream` fit the locked versions, and their own tests pass with them."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import pytest

from workflow.project import ALONE

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "docs" / "upstream"
PATCHES = sorted(FOLDER.glob("*.patch"))
LOCKS = "".join(
    (REPOSITORY / name).read_text(encoding="utf-8") for name in ("requirements.lock", "requirements-dev.lock")
)
PACKAGES = {"snakemake": "src", "snakemake_executor_plugin_slurm": "."}
"""Package -> where its repository has it."""

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem),
]


@pytest.fixture
def patched(patch: Path, tmp_path: Path) -> Path:
    """A folder as the repository has it, with this change and its test."""
    (package,) = re.findall(r"^\+\+\+ b/(?:src/)?(snakemake\w*)/", patch.read_text(encoding="utf-8"), re.MULTILINE)
    name = package.replace("_", "-")
    locked, spec = re.search(rf"^{name}==(\S+)$", LOCKS, re.MULTILINE), find_spec(package)
    if not (locked and spec and spec.origin) or metadata.version(name) != locked[1]:
        pytest.skip(f"the patch is of the locked {name}")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(spec.origin).parent, tmp_path / PACKAGES[package] / package, ignore=ignored)
    done = subprocess.run(["git", "apply", patch], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_patch_has_three_sentences_a_change_and_its_test(patch: Path, patched: Path) -> None:
    title, _, rest = patch.read_text(encoding="utf-8").partition("\n\n")
    assert re.fullmatch(r"fix: .*[^.]", title)
    assert len(re.findall(r"\.$|\. (?=[A-Z])", rest.partition("\ndiff --git")[0].strip().replace("\n", " "))) == 3
    assert len([*(patched / "tests").glob("test_*.py")]) == 1
    assert f"({patch.name})" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.full("It starts Snakemake several times, which imports it anew.")
def test_the_test_of_a_patch_passes_with_it(patch: Path, patched: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", patched, "tests"],
        cwd=patched,
        env=os.environ | ALONE | {"PYTHONPATH": f"{patched / 'src'}{os.pathsep}{patched}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
