"""Generated images, confounds and atlases: the check says what the job does, and the job reads what was written.

BRAINFED_CASES sets the number of cases of each reader; each kind of mutation comes once before one comes twice.
"""

import re
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest
from nilearn.signal import clean

from brainfed.checking._project import check_cohort
from brainfed.cohort.settings import CohortSettings
from brainfed.configuration import validate
from support.broken.cases import cases, numbered
from support.broken.generated_images import READERS, SENTENCES, TR, VOLUMES, nifti, sound, write_table
from support.files.run_of_cohort import found_by_severity, of_the_jobs, of_the_run


def expected_series(made, settings):
    """By numpy's means and nilearn's cleaning."""
    voxels = made.voxels.astype(np.float64)
    varying = ~(np.isnan(voxels).all(axis=3) | (np.ptp(voxels, axis=3) == 0))
    means = np.stack([voxels[(made.labels == label) & varying].mean(axis=0) for label in (1, 2, 3)], axis=1)
    extraction = settings.extraction
    return clean(
        means,
        detrend=extraction.detrend,
        standardize="zscore_sample" if extraction.standardise else None,
        confounds=None if settings.confounds is None else made.confounds,
        low_pass=extraction.low_pass,
        high_pass=extraction.high_pass,
        t_r=TR,
    )


def mutations(reader, number):
    """One mutation of the reader in turn, and after all of them with one of another that is read."""
    own, draw = READERS[reader], np.random.default_rng(number)
    first = own[number % len(own)]
    others = [one for name, ones in READERS.items() if name != reader for one in ones if one.verdict == "read"]
    taken = set(settings_of(first))
    further = [one for one in others if not taken & set(settings_of(one))]
    return [first, further[draw.integers(len(further))]] if number >= len(own) else [first]


def settings_of(mutation):
    """Keys of the cohort that a mutation sets, so that two do not undo each other."""
    return [key for key in ("confounds", "extraction", "tr", "labels") if key in str(mutation.name)] or [mutation.name]


@pytest.mark.parametrize(
    ("reader", "number"), [case for reader in READERS for case in numbered(READERS[reader], 4, 20, reader)]
)
def test_check_and_job_give_one_verdict_and_the_job_reads_what_was_written(reader, number, tmp_path):
    made, drawn = sound(tmp_path, number), mutations(reader, number)
    for mutation in drawn:
        mutation.make(made)
    words = " and ".join(mutation.name for mutation in drawn)
    usual = validate(CohortSettings, made.settings, "c")
    dropping = validate(CohortSettings, made.settings | {"on_invalid": "drop"}, "c")
    if all(mutation.verdict == "read" for mutation in drawn):
        settings = (usual, dropping)[number % 2]
        stopped, problems, series = of_the_jobs(tmp_path, settings)
        assert not stopped and not problems["s1"], (words, stopped, problems)
        assert found_by_severity(check_cohort("c", settings)) == ([], {}), words
        if made.compared:
            expected = expected_series(made, settings)
            np.testing.assert_allclose(series.arrays["s1"], expected, atol=2e-3, rtol=2e-4, err_msg=words)
        return
    stopped, _, _ = of_the_jobs(tmp_path, usual)
    stopped_too, problems, series = of_the_jobs(tmp_path, dropping)
    problem = stopped_too or problems["s1"]
    assert stopped and problem, words
    assert all(re.search(mutation.words or "", stopped) for mutation in drawn), (words, stopped)
    left = {subject for subject, problem in problems.items() if problem}
    assert stopped_too or series.arrays.keys() == {"s1", "s2"} - left, words
    stops, drops = found_by_severity(check_cohort("c", dropping))
    assert stops or drops.keys() == left, (words, stopped)
    checked, _ = found_by_severity(check_cohort("c", usual))
    assert checked and not any("its reader fails on" in one for one in checked), (words, checked)
    same = any(one.startswith(stopped) for one in checked)
    assert same or "fetch" in stopped or "absent" in problem, (words, stopped, checked)


def test_a_case_without_confounds_writes_into_its_own_folder_alone(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for mutation in READERS["confounds"]:
        made = sound(tmp_path, 0)
        made.settings["confounds"] = None
        mutation.make(made)
        assert not list(Path().iterdir()), mutation.name


def silenced(made, draw):
    """Regions of s1 that lose their signal in some way, and those that keep it."""
    drift = np.linspace(0, 50, VOLUMES, dtype=np.float32)
    confound = 20 * made.confounds[:, 0].astype(np.float32)
    ways = {
        "constant": lambda region: np.full_like(region, 800),
        "zero": np.zeros_like,
        "drift": lambda region: np.zeros_like(region) + 900 + drift,
        "confound": lambda region: np.zeros_like(region) + 900 + confound,
        "background": lambda region: np.full_like(region, np.nan),
        "half": lambda region: np.where(np.arange(len(region))[:, None] % 2, region, 700).astype(np.float32),
        "quiet": lambda region: 1000 + region / 1000,
        "sound": lambda region: region,
    }
    for label in (1, 2, 3):
        voxels = made.labels == label
        made.voxels[voxels] = ways[draw.choice(sorted(ways), p=[0.1] * 6 + [0.2] * 2)](made.voxels[voxels])
    nib.save(nifti(made.voxels), made.image)


@pytest.mark.parametrize("seed", cases(first=12, usual=20))
def test_regions_without_a_signal_leave_or_stop_in_the_check_as_in_the_run(seed, tmp_path):
    made, draw = sound(tmp_path, seed), np.random.default_rng(seed)
    silenced(made, draw)
    limits = {
        "max_constant_regions": int(draw.integers(3)), "min_tsnr": float(draw.choice([10, 100])),
        "min_coverage": float(draw.choice([0.3, 0.8])), "max_barely_seen_regions": int(draw.integers(3)),
    }  # fmt: skip
    chosen = draw.permutation(sorted(limits))[: draw.integers(3)]
    cohort = made.settings | {
        "constant_regions": str(draw.choice(["impute_zero", "drop_subject", "error"])),
        "on_invalid": str(draw.choice(["drop", "error"])),
        "exclude": {name: limits[name] for name in chosen},
    }
    settings = validate(CohortSettings, cohort, "c")
    checked = check_cohort("c", settings)
    stops, drops = found_by_severity(checked)
    stopped, reasons, _ = of_the_run(tmp_path, settings)
    assert bool(stops) == bool(stopped), (stopped, stops)
    assert not stopped or any(one.startswith(stopped) for one in stops) or "none (most often" in stopped
    if not stopped:
        left = {subject: reason for subject, reason in reasons.items() if reason}
        assert drops.keys() == left.keys()
        assert all(reason.partition(" (")[0] in drops[subject] for subject, reason in left.items())
        assert {person.subject for person in checked.people} == reasons.keys() - left.keys()


def test_of_many_images_some_of_every_site_are_read_and_the_check_says_so(tmp_path, monkeypatch):
    made = sound(tmp_path, 0)
    for subject in ("s3", "s4", "s5"):
        voxels = made.voxels.copy()
        voxels[made.labels == 2] = 0
        nib.save(nifti(voxels * np.float32(int(subject[1]))), tmp_path / f"{subject}.nii.gz")
        write_table(tmp_path / f"{subject}.tsv", made.confounds)
    rows = [f"s{n},{site},2{n},male,{('patient', 'control')[n % 2]}" for n, site in enumerate("aaabb", start=1)]
    (tmp_path / "people.csv").write_text("\n".join(["participant_id,site,age,sex,diagnosis", *rows]))
    cohort = made.settings | {"constant_regions": "error", "exclude": {"min_tsnr": 1}}
    settings = validate(CohortSettings, cohort, "c")
    monkeypatch.setattr("brainfed.checking._images.MOST_VOXELS", 2 * made.voxels.size)
    some, every = check_cohort("c", settings).findings, check_cohort("c", settings, every_scan=True).findings
    stops = [[one.subjects for one in found if one.severity == "stops"] for found in (some, every)]
    assert stops == [[("s4",)], [("s3",), ("s4",), ("s5",)]]
    (unread,) = [one for one in some if "--scans" in one.sentence]
    assert unread.subjects == ("s2", "s3", "s5")
    assert "`constant_regions: error`, `exclude.min_tsnr`" in unread.sentence
    assert not any("--scans" in one.sentence for one in every)


def test_every_reader_has_mutations_of_both_verdicts_and_each_its_own_name():
    assert {one.name for ones in READERS.values() for one in ones} >= set(SENTENCES)
    for ones in READERS.values():
        assert len({one.name for one in ones}) == len(ones)
        assert min(sum(one.verdict == verdict for one in ones) for verdict in ("read", "refused")) >= 10
