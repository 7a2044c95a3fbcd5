"""A generator's training that is stopped, or killed outright, goes on from its last round, to the same bytes."""

import signal

import pytest

from workflow.interrupted import end_in_round
from workflow.project import new_project

pytestmark = [
    pytest.mark.full("Every generator is trained twice; that of a unit test is stopped in every round."),
    pytest.mark.workflow,
]

KILLED_IN = 17
GENERATOR = ("tables", "--until", "train_generator")
SETTINGS = {
    "inpainting": {"rounds": 30, "local_epochs": 3},
    "variants": {"whole": {"method": "fedni", "rounds": 1, "local_epochs": 1}},
    "experiments": {"methods": {"variants": ["ridge-central", "whole"], "reference": "ridge-central"}},
}


def made_by_inpainting(project):
    results = project.folder / "results" / "tiny"
    files = (path for path in results.glob("inpainting/**/*") if path.is_file())
    made = (path for path in files if not path.name.endswith(("timing.json", ".made")))
    return {path.relative_to(results): path.read_bytes() for path in made}


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """Path -> bytes of an undisturbed training."""
    whole = new_project(tmp_path_factory.mktemp("whole"), **SETTINGS)
    whole.snakemake("--cores", "1", *GENERATOR)
    return made_by_inpainting(whole)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_in_round_17_it_resumes_to_the_same_bytes(expected, number, tmp_path):
    ended = new_project(tmp_path, **SETTINGS)
    end_in_round(ended, KILLED_IN, number, *GENERATOR)
    assert not list(ended.folder.glob("results/tiny/inpainting/*/repeat-0/all/generator.safetensors"))
    (log,) = ended.folder.glob("logs/tiny/inpainting/*/repeat-0/all.log")
    assert ("stopped by SIGTERM" in log.read_text()) == (number == signal.SIGTERM)

    kept = KILLED_IN if number == signal.SIGTERM else KILLED_IN - 1
    if number == signal.SIGKILL:
        ended.snakemake("--unlock")
    ended.snakemake("--cores", "1", *GENERATOR)
    assert f"goes on after round {kept} of 30, which" in log.read_text()
    found = made_by_inpainting(ended)
    assert found.keys() == expected.keys() and len(expected) == 3
    assert [path for path in expected if found[path] != expected[path]] == []
    assert not list((ended.folder / "results").rglob("*.checkpoint"))
