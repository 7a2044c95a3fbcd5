"""A job that trains with other sites, and one that does not: its link, its samples, its noise and its digest."""

from types import SimpleNamespace

import pytest

from brainfed.federation import TOGETHER
from brainfed.runtime import UserError
from brainfed.scripting import joint_job, site_code
from brainfed.sites._ipc import SECRET, SITE_SOCKET
from support.samples.method_inputs import method_inputs
from support.sites.apart_sites import only_nodes

INPUTS = method_inputs()
STUDY = {
    "sites": list(INPUTS.institutions),
    "site": INPUTS.institutions[1],
    "noise": "secret",
    "secure_sums": True,
    "entry": "brainfed.sites.home:site_job",
    "code": "0123",
}


def of(**changes):
    return SimpleNamespace(study=STUDY | changes)


@pytest.fixture
def joined(monkeypatch, tmp_path):
    """The environment of a job that `brainfed join` has started."""
    (tmp_path / "secret").write_text("own\n")
    monkeypatch.setenv(SITE_SOCKET, str(tmp_path / "socket"))
    monkeypatch.setenv(SECRET, str(tmp_path / "secret"))


@pytest.mark.parametrize("params", [SimpleNamespace(), SimpleNamespace(study={})], ids=["no study", "not joint"])
def test_a_job_in_one_place_keeps_its_samples_and_its_digest(params):
    job = joint_job(params, "results/demo/methods/a/predictions.parquet")
    assert job.link is TOGETHER
    assert job.placed(INPUTS, "digest") is INPUTS
    assert (job.sites, site_code(params)) == ((), {})


def test_a_job_at_a_site_has_its_place_among_all_and_a_key_of_noise_of_its_own(joined):
    job = joint_job(of(), "results/demo/methods/a/predictions.parquet")
    own = job.placed(only_nodes(INPUTS, 1), "digest")
    assert (own.institutions, set(own.institution)) == (INPUTS.institutions, {1})
    assert own.link is job.link
    assert own.streams.secret == "own/digest"
    assert joint_job(of(noise="study"), "results/a").placed(only_nodes(INPUTS, 1), "digest").streams.secret == ""


def test_other_code_that_reaches_the_sites_is_another_training():
    assert site_code(of()) != site_code(of(code="4567"))


def test_a_job_that_join_did_not_start_is_refused(monkeypatch):
    monkeypatch.delenv(SITE_SOCKET, raising=False)
    with pytest.raises(UserError, match="site 'site-1': expected this job to be started by `brainfed join`"):
        joint_job(of(), "results/demo/methods/a/predictions.parquet")
