"""The patches of `docs/upstream` fit the locked version of Snakemake, and their own tests pass with them."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import snakemake

from workflow.project import ALONE

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDER = REPOSITORY / "docs" / "upstream"
PATCHES = sorted(FOLDER.glob("*.patch"))
LOCKED = re.search(r"^snakemake==(\S+)$", (REPOSITORY / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)

pytestmark = [
    pytest.mark.workflow,
    pytest.mark.skipif(
        not LOCKED or metadata.version("snakemake") != LOCKED[1], reason="the patches are of the locked Snakemake"
    ),
    pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem),
]


@pytest.fixture
def patched(patch: Path, tmp_path: Path) -> Path:
    """A folder as Snakemake's repository has it, with this change and its test."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(snakemake.__file__).parent, tmp_path / "src" / "snakemake", ignore=ignored)
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
        env=os.environ | ALONE | {"PYTHONPATH": str(patched / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
