"""Generated images, confounds and atlases: the check says what the job does, and the job reads what was written.

BRAINFED_CASES sets the number of cases of each reader; each kind of mutation comes once before one comes twice.
"""

import gc
import os

import numpy as np
import pytest
from nilearn.signal import clean

from brainfed.checking.cohort import check_cohort
from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.sources.listing import list_cohort
from brainfed.configuration.validation import validate
from brainfed.imaging.extraction.extract_shard import extract_shard
from brainfed.imaging.extraction.extraction import ScanFiles
from brainfed.imaging.scans.atlas import load_atlas
from brainfed.imaging.series.shard import ShardFiles
from brainfed.runtime.artefacts import read_arrays, read_table
from brainfed.runtime.errors import UserError
from generated_images import READERS, TR, sound

CASES = int(os.environ.get("BRAINFED_CASES", "20"))


@pytest.fixture(autouse=True, scope="module")
def quick_collection():
    """Skip nilearn's garbage collections, as a shard does."""
    gc.freeze()
    yield
    gc.unfreeze()


def of_the_job(folder, settings):
    """The sentence of s1 or of the whole cohort, and the series of s1."""
    try:
        listing = list_cohort("c", settings)
        absent = listing.absences.get("s1", "")
        atlas = load_atlas(settings.atlas, listing.parcellation, listing.labels)
        out = ShardFiles(*(folder / name for name in ("s.safetensors", "q.parquet", "c.parquet")))
        scans = {
            one.subject: ScanFiles(one.series, one.confounds, settings.tr.get(one.site))
            for one in listing.subjects
            if one.has_series
        }
        extract_shard(scans, atlas, settings, out)
    except UserError as error:
        return str(error), None
    problems = read_table(out.quality).set_index("subject")["problem"]
    return absent or problems["s1"], read_arrays(out.series).arrays.get("s1")


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


def mutations(reader, seed):
    """One mutation of the reader in turn, and now and then one of another that is read."""
    own, draw = READERS[reader], np.random.default_rng(seed)
    first = own[seed % len(own) if len(own) <= CASES else seed * 7 % len(own)]
    others = [one for name, ones in READERS.items() if name != reader for one in ones if one.verdict == "read"]
    taken = set(settings_of(first))
    further = [one for one in others if not taken & set(settings_of(one))]
    return [first, further[draw.integers(len(further))]] if seed >= len(own) else [first]


def settings_of(mutation):
    """Keys of the cohort that a mutation sets, so that two do not undo each other."""
    return [key for key in ("confounds", "extraction", "tr", "labels") if key in str(mutation.name)] or [mutation.name]


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("reader", READERS)
def test_check_and_job_give_one_verdict_and_the_job_reads_what_was_written(reader, seed, tmp_path):
    made, drawn = sound(tmp_path, seed), mutations(reader, seed)
    for mutation in drawn:
        mutation.make(made)
    words = " and ".join(mutation.name for mutation in drawn)
    verdicts = {mutation.verdict for mutation in drawn}
    settings = validate(CohortSettings, made.settings, "c")
    dropping = validate(CohortSettings, made.settings | {"on_invalid": "drop"}, "c")
    stopped, series = of_the_job(tmp_path, settings)
    problem, _ = of_the_job(tmp_path, dropping)
    checked = [one for one in check_cohort("c", settings).findings if one.severity == "stops"]
    check_drops = [one for one in check_cohort("c", dropping).findings if one.severity != "notes"]
    if "refused" in verdicts:
        assert stopped and problem, words
        assert checked and check_drops, (words, stopped)
        assert not any("its reader fails on" in one.sentence for one in checked), (words, checked)
        assert any(one.sentence.startswith(stopped) for one in checked) or "fetch" in stopped or "absent" in problem, (
            words, stopped, [one.sentence for one in checked],
        )  # fmt: skip
    elif "voxels" in verdicts:
        assert stopped and problem == stopped and not checked, words
    else:
        assert not stopped and not problem, (words, stopped)
        assert not checked and not check_drops, (words, checked)
        if made.compared:
            np.testing.assert_allclose(series, expected_series(made, settings), atol=2e-3, rtol=2e-4, err_msg=words)


def test_every_reader_has_mutations_of_both_verdicts_and_each_its_own_name():
    for ones in READERS.values():
        assert len({one.name for one in ones}) == len(ones)
        assert min(sum(one.verdict == verdict for one in ones) for verdict in ("read", "refused")) >= 10
