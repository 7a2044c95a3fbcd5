"""40 jobs on 8 fake devices, half of them killed at random: no device held twice, none lost.

More of them: BRAINFED_LEASE_JOBS=400 pytest tests/unit/runtime/devices/test_lease_storm.py
"""

import os
from collections import Counter
from pathlib import Path

import pytest

from support.processes.lease_storm import Storm

DEVICES = 8
JOBS = int(os.environ.get("BRAINFED_LEASE_JOBS", "40"))


@pytest.mark.parametrize("jobs_per_gpu", [(1,), (1, 2)], ids=["one-workflow", "two-workflows"])
@pytest.mark.full("Hundreds of jobs, some of them killed.")
def test_no_device_is_held_twice_and_none_is_lost_when_jobs_are_killed(
    tmp_path: Path, jobs_per_gpu: tuple[int, ...]
) -> None:
    storm = Storm.brew(tmp_path, DEVICES, JOBS, jobs_per_gpu, seed=5)
    storm.run()
    assert storm.collided == []
    assert storm.crowds() == []
    ended = Counter((member.fate, member.process.returncode) for member in storm.members if member.process)
    fates = Counter(member.fate for member in storm.members)
    assert ended["ends", 0] == fates["ends"]
    assert ended["fails", 1] == fates["fails"]
    assert ended["killed holding", -9] == fates["killed holding"]
    assert ended["killed anywhere", -9] == fates["killed anywhere"]
    used = {member.took[0] for member in storm.members if member.took}
    assert used == set(storm.driver.uuids)
    assert storm.lease_all() == list(storm.driver.uuids)
