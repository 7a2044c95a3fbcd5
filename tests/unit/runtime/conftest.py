"""What tests of the runtime share."""

from pathlib import Path

import pytest

from support.processes.job_scripts import Scripts


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    """Scripts of jobs, in the folder of a test."""
    return Scripts(tmp_path)
