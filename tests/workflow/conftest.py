"""One finished tiny project that the tests of this folder copy."""

import pytest

from workflow.project import Project, new_project


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Project:
    """A tiny project after a whole run of its tables."""
    project = new_project(tmp_path_factory.mktemp("finished"))
    project.snakemake("--cores", "2", "tables")
    return project


@pytest.fixture
def project(finished, tmp_path) -> Project:
    """A copy of the finished project to change."""
    return finished.copy(tmp_path / "project")
