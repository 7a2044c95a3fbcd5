"""Processes of a study that are late, wrong, broken or killed: each has its sentence, and nothing is lost."""

import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="flwr is not installed: make install-sites")

from federation.three_sites import SITES, VARIANTS, Study, predictions_of, result

pytestmark = [
    pytest.mark.full("Processes of several sites over Flower take minutes."),
    pytest.mark.skipif(
        os.environ.get("BRAINFED_METHODS") != "all", reason="takes ten minutes: set BRAINFED_METHODS=all"
    ),
]

NAMES = ("ridge-alone", "mlp")
SABOTAGE = Path(__file__).parent / "broken"
LIMIT_S = 240
STEPS = re.compile(r"INFO (\d+) steps?[,;]")


def study_of(root, rounds, **changes):
    """Sites keep the state of their optimisers: a round that is lost, or trained twice, changes the scores."""
    variant = {"method": "fedmlp", "rounds": rounds, "local_epochs": 1, "optimiser_state": "keep"}
    methods = {"methods": {"variants": list(NAMES), "reference": "ridge-alone"}}
    return Study(root, variants=VARIANTS | {"mlp": variant}, experiments=methods, study=changes)


def until(study, done, name="coordinator"):
    end = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < end, study.log(name).read_text()[-2000:]
        time.sleep(0.2)


def ended(study, process, name):
    """The exit code of a process that ends by itself."""
    until(study, lambda: process.poll() is not None, name)
    return process.returncode


def steps(study):
    return max((int(found) for found in STEPS.findall(study.log("coordinator").read_text())), default=0)


def broken(study, site, kind, number):
    path = os.pathsep.join((str(study.root / site / "workflow"), str(SABOTAGE)))
    return study.start(site, environment={"PYTHONPATH": path, "BROKEN": f"{kind} {number}"})


class TestWrong:
    """A wrong clock, a second site of one name, NaN in round 5, another shape in round 9."""

    @pytest.fixture(scope="class", params=[False, True], ids=["open", "secure"])
    @classmethod
    def study(cls, tmp_path_factory, request):
        made = study_of(tmp_path_factory.mktemp("wrong"), 12, secure_sums=request.param)
        together = made.simulation()
        together.snakemake(*predictions_of(together.folder), "--cores", "2")
        made.codes = {}
        with made.running("coordinator", "east", "north") as processes:
            processes["south"] = broken(made, "south", "clock", 120)
            made.codes["south"] = ended(made, processes["south"], "south")
            shutil.copytree(made.root / "north", made.root / "second-north")
            until(made, lambda: "site north is there" in made.log("coordinator").read_text())
            with made.beside("north", "second-north"):
                until(made, lambda: "runs elsewhere" in made.log("second-north").read_text(), "second-north")
            begin = time.monotonic()
            processes["north"].terminate()
            processes["north"].wait(LIMIT_S)
            made.seconds = time.monotonic() - begin
            processes["south"] = made.start("south")
            for kind, number in (("NaN", 4), ("shape", 8)):
                processes["north"] = broken(made, "north", kind, number)
                made.codes[kind] = ended(made, processes["north"], "north")
            processes["north"] = made.start("north")
            made.wait(processes, 2 * LIMIT_S)
        return made

    def test_a_clock_that_differs_is_refused_on_both_sides_and_ends_that_site_alone(self, study):
        assert study.codes["south"] == 1
        words = r"site 'south': expected a clock within 60 s of .* found one that is 1\d\d s ahead; set both by NTP\.$"
        coordinator = study.log("coordinator").read_text()
        assert len(re.findall(rf"WARNING {words}", coordinator, re.MULTILINE)) == 1
        assert re.search(rf"^{words}", study.log("south").read_text(), re.MULTILINE)
        assert len(re.findall(r"^study \w+ at port", coordinator, re.MULTILINE)) == 1

    def test_a_second_site_of_a_name_is_not_let_in_and_harms_nobody(self, study):
        assert "the coordinator does not let north in: north runs elsewhere; stop it there" in (
            study.log("second-north").read_text()
        )

    def test_a_site_that_waits_for_the_coordinator_stops_at_once(self, study):
        assert study.seconds < LIMIT_S / 4

    @pytest.mark.parametrize(("kind", "number"), [("NaN", 5), ("shape", 9)])
    def test_a_site_whose_numbers_cannot_be_added_up_ends_alone_with_one_sentence_on_both_sides(
        self, study, kind, number
    ):
        assert study.codes[kind] == 1
        words = "finite numbers" if kind == "NaN" else "shape"
        for name in ("coordinator", "north"):
            sentences = re.findall(
                rf"site 'north'.*round {number}.*expected [^\n]*{words}", study.log(name).read_text()
            )
            assert sentences, study.log(name).read_text()[-2000:]

    @pytest.mark.parametrize("site", SITES)
    def test_nothing_is_lost(self, study, site):
        tolerance = 1e-6 if study.study["study"]["secure_sums"] else 0
        assert_simulated(study, site, tolerance)


class TestLate:
    """A site is stopped, later two are, and they go on."""

    @pytest.fixture(scope="class", params=[False, True], ids=["open", "secure"])
    @classmethod
    def study(cls, tmp_path_factory, request):
        made = study_of(tmp_path_factory.mktemp("late"), 14, secure_sums=request.param, wait=20.0)
        with made.running(*SITES) as processes:
            for name in SITES:
                until(made, lambda name=name: "waits for the coordinator" in made.log(name).read_text(), name)
            processes["coordinator"] = made.start("coordinator")
            until(made, lambda: steps(made) >= 4)
            processes["south"].send_signal(signal.SIGSTOP)
            before = steps(made)
            until(made, lambda: steps(made) >= before + 2)
            made.without = steps(made) - before
            processes["east"].send_signal(signal.SIGSTOP)
            made.code = ended(made, processes["coordinator"], "coordinator")
            for name in ("east", "south"):
                processes[name].send_signal(signal.SIGCONT)
            processes["coordinator"] = made.start("coordinator")
            made.wait(processes, 2 * LIMIT_S)
        return made

    def test_a_round_goes_on_without_a_site_that_never_answers(self, study):
        assert study.without >= 2

    def test_too_few_sites_end_the_study_with_their_names(self, study):
        assert study.code == 1
        found = study.log("coordinator").read_text()
        assert re.search(r"expected [^\n]*at least 2 [^\n]*found [^\n]*(none of 'east', 'south'|'north')", found), (
            found[-2000:]
        )

    @pytest.mark.parametrize("site", SITES)
    def test_every_subject_has_a_score(self, study, site):
        found = pd.read_parquet(result(study.root / site, "mlp"))
        assert np.isfinite(found["score"]).all()


class TestKilled:
    """The coordinator and a site are killed with SIGKILL, and started again."""

    @pytest.fixture(scope="class", params=[False, True], ids=["open", "secure"])
    @classmethod
    def study(cls, tmp_path_factory, request):
        made = study_of(tmp_path_factory.mktemp("killed"), 25, secure_sums=request.param)
        together = made.simulation()
        together.snakemake(*predictions_of(together.folder), "--cores", "2")
        with made.running("coordinator", *SITES) as processes:
            for name, before in (("coordinator", 6), ("north", 12)):
                until(made, lambda before=before: steps(made) >= before)
                processes[name].kill()
                processes[name].wait()
                processes[name] = made.start(name)
            made.wait(processes, 2 * LIMIT_S)
        return made

    @pytest.mark.parametrize("site", SITES)
    def test_scores_are_those_of_the_simulation(self, study, site):
        # Masked sums are rounded otherwise than a mean in float32, in each of 25 rounds.
        assert_simulated(study, site, 1e-6 if study.study["study"]["secure_sums"] else 0)

    def test_the_coordinator_went_on_from_its_state(self, study):
        assert "goes on after" in study.log("coordinator").read_text()


def assert_simulated(study, site, tolerance):
    expected = pd.read_parquet(result(study.root / "together", "mlp")).set_index("subject")
    found = pd.read_parquet(result(study.root / site, "mlp")).set_index("subject")
    np.testing.assert_allclose(found["score"], expected.loc[found.index, "score"], rtol=0, atol=tolerance)
