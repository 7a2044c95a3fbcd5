"""A study whose coordinator and one site are killed with SIGKILL goes on to the scores of a simulation."""

import os
import re
import time

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

VARIANT = {"method": "fedmlp", "rounds": 25, "local_epochs": 1, "optimiser_state": "keep"}
"""Sites keep the state of their optimisers: a round that is lost, or trained twice, changes the scores."""
STEPS = re.compile(r"INFO (\d+) steps?[,;]")
LIMIT_S = 240


@pytest.fixture(scope="module", params=[False, True], ids=["open", "secure"])
def study(tmp_path_factory, request):
    names = ["ridge-alone", "mlp"]
    made = Study(
        tmp_path_factory.mktemp("killed"),
        variants=VARIANTS | {"mlp": VARIANT},
        experiments={"methods": {"variants": names, "reference": "ridge-alone"}},
        study={"wait": 400.0, "secure_sums": request.param},
    )
    together = made.simulation()
    together.snakemake(*predictions_of(together.folder), "--cores", "2")
    with made.running("coordinator", *SITES) as processes:
        for name, before in (("coordinator", 6), ("north", 12)):
            reach(made, before)
            processes[name].kill()
            processes[name].wait()
            processes[name] = made.start(name)
        made.wait(processes, 2 * LIMIT_S)
    return made


def reach(study, steps):
    """Wait until the coordinator has ended so many steps."""
    end = time.monotonic() + LIMIT_S
    while not any(int(found) >= steps for found in STEPS.findall(study.log("coordinator").read_text())):
        assert time.monotonic() < end, study.log("coordinator").read_text()[-1500:]
        time.sleep(0.2)


@pytest.mark.parametrize("site", SITES)
def test_scores_are_those_of_the_simulation(study, site):
    expected = pd.read_parquet(result(study.root / "together", "mlp")).set_index("subject")
    found = pd.read_parquet(result(study.root / site, "mlp")).set_index("subject")
    # Masked sums are rounded otherwise than a mean in float32, in each of 25 rounds.
    tolerance = 1e-6 if study.study["study"]["secure_sums"] else 0
    np.testing.assert_allclose(found["score"], expected.loc[found.index, "score"], rtol=0, atol=tolerance)


def test_the_coordinator_went_on_from_its_state(study):
    assert "goes on after" in study.log("coordinator").read_text()
