"""One finished tiny project that the tests of this folder copy."""

from pathlib import Path

import pytest

from support.processes.made_once import made_once
from workflow.project import Project, new_project


@pytest.fixture(scope="session")
def finished() -> Project:
    """A tiny project after a whole run of its tables."""
    return Project(made_once("finished", _finish))


def _finish(folder: Path) -> None:
    new_project(folder).snakemake("--cores", "2", "tables")


@pytest.fixture
def project(finished, tmp_path) -> Project:
    """A copy of the finished project to change."""
    return finished.copy(tmp_path / "project")
