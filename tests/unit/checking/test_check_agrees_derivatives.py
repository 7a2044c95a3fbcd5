"""Generated fMRIPrep trees: the check says what the job does, and series are those of nilearn on the usual tree.

BRAINFED_CASES sets the number of cases; each kind of mutation comes once before one comes twice.
"""

import re
import shutil
from functools import cache

import numpy as np
import pytest
from nilearn.interfaces.fmriprep import load_confounds_strategy
from nilearn.maskers import NiftiLabelsMasker

from brainfed.checking._project import check_cohort
from brainfed.cohort.settings import CohortSettings
from brainfed.configuration import validate
from support.broken.cases import numbered
from support.broken.generated_derivatives import FOLDERS, MUTATIONS, SENTENCES, sound
from support.files.bids_dataset import TR, write_atlas
from support.files.run_of_cohort import found_by_severity, of_the_jobs


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """The usual tree."""
    folder = tmp_path_factory.mktemp("usual") / "fmriprep"
    sound(folder)
    return folder


@pytest.fixture(scope="module")
def by_nilearn(usual):
    """A function: the series of each run of the usual tree, by nilearn alone."""
    func, atlas = usual / "sub-01" / "func", write_atlas(usual.parent / "atlas")

    @cache
    def series(strategy, low_pass):
        held = []
        for run in (1, 2):
            image = str(func / f"sub-01_task-rest_run-{run}_space-T1w_desc-preproc_bold.nii.gz")
            table = kept = None
            if strategy:
                name, *options = strategy
                table, kept = load_confounds_strategy(image, name, **dict(options))
            masker = NiftiLabelsMasker(
                atlas["parcellation"], standardize="zscore_sample", detrend=True, low_pass=low_pass, t_r=TR
            )
            held.append(masker.fit_transform(image, confounds=table, sample_mask=kept))
        return held

    return series


@pytest.mark.parametrize("number", numbered(MUTATIONS, 4, 24))
def test_check_and_job_give_one_verdict_and_series_are_nilearns(number, tmp_path, usual, by_nilearn):
    mutation = MUTATIONS[number % len(MUTATIONS)]
    folder = tmp_path / FOLDERS[number % len(FOLDERS)]
    shutil.copytree(usual, folder)
    mutation.make(folder / "sub-01" / "func")
    bids = {"derivatives": str(folder), "confounds": {"strategy": "simple", "motion": "basic"}} | dict(
        mutation.settings
    )
    low_pass = 0.1 if bids.pop("band", number % 3 == 0) else None
    cohort = {"source": "bids", "bids": bids, "extraction": {"high_pass": None, "low_pass": low_pass}}
    cohort |= write_atlas(tmp_path / "atlas")
    stopping = validate(CohortSettings, cohort, "c")
    dropping = validate(CohortSettings, cohort | {"on_invalid": "drop"}, "c")
    if mutation.verdict == "refused":
        stopped, _, _ = of_the_jobs(tmp_path, stopping)
        stopped_too, problems, _ = of_the_jobs(tmp_path, dropping)
        problem = stopped_too or problems["01"]
        checked, _ = found_by_severity(check_cohort("c", stopping))
        assert any(found_by_severity(check_cohort("c", dropping))), mutation.name
        assert stopped and problem and checked, (mutation.name, stopped, problem, checked)
        assert re.search(mutation.words or "", stopped), (mutation.name, stopped)
        assert not any("its reader fails on" in one for one in checked), (mutation.name, checked)
        named = re.compile(rf": {re.escape(problem)}(, \S.* in \S.*)? \(")
        assert stopped in checked or any(map(named.search, checked)), (mutation.name, stopped, checked)
        return
    settings = (stopping, dropping)[number % 2]
    stopped, problems, series = of_the_jobs(tmp_path, settings)
    assert not stopped and not problems["01"], (mutation.name, stopped, problems)
    assert found_by_severity(check_cohort("c", settings)) == ([], {}), mutation.name
    confounds = bids["confounds"]
    options = [(name, value) for name, value in confounds.items() if name != "strategy"]
    strategy = None if confounds["strategy"] == "none" else (confounds["strategy"], *options)
    expected = by_nilearn(strategy, low_pass)[: 1 if mutation.verdict == "one run" else 2]
    np.testing.assert_allclose(series.arrays["01"], np.concatenate(expected), atol=2e-3, err_msg=mutation.name)


def test_every_verdict_is_drawn_and_each_mutation_has_its_own_name():
    assert len({one.name for one in MUTATIONS}) == len(MUTATIONS) > 90
    assert {one.name for one in MUTATIONS} > set(SENTENCES)
    verdicts = [one.verdict for one in MUTATIONS]
    assert min(verdicts.count("read"), verdicts.count("refused")) > 30
