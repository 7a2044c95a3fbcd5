"""Generated files of region series in seven formats: `brainfed check` and the jobs of the run give one verdict.

A cohort of four has one generated file, sound or changed in one way (`series_formats`). The check looks at the cohort;
the run's own functions list, ingest, read, measure and include it, in one process. `BRAINFED_CASES` is their number.
"""

import random
import re
import struct
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io

from brainfed.checking._project import check_cohort
from brainfed.cohort.settings import CohortSettings
from brainfed.imaging.series import read_roi_series
from brainfed.imaging.series._arrays import NUMBER_CLASSES, array_format, read_array
from brainfed.runtime import UserError
from support.broken import series_formats
from support.broken.cases import cases
from support.broken.series_formats import FORMATS, made, plain, write
from support.files.run_of_cohort import found_by_severity, of_the_run

LEAST = 10
SUBJECTS = ("s1", "s2", "s3", "s4")


def cohort(folder, case, **changes):
    """A cohort of four subjects; the file of s2 is the case's, the others are sound and have the same names."""
    ending = case.file.removeprefix("s2")
    volumes = case.truth.shape[0]
    for number, subject in enumerate(SUBJECTS):
        other = np.random.default_rng(number).standard_normal((volumes + 1, case.settings["regions"])).cumsum(axis=0)
        turned = other.T if case.settings.get("transposed") else other
        form = "csv" if case.names or case.settings.get("variable") else case.form
        (folder / f"{subject}{ending}").write_bytes(plain(turned.astype(np.float32), form, case.names))
    write(case, folder)
    rows = "\n".join(
        f"{name},{'ab'[n % 2]},2{n},male,{('patient', 'control')[n // 2]}" for n, name in enumerate(SUBJECTS)
    )
    (folder / "people.csv").write_text(f"participant_id,site,age,sex,diagnosis\n{rows}\n")
    usual = {
        "source": "timeseries", "phenotype": str(folder / "people.csv"), "series": f"{folder}/{{subject}}{ending}",
        "shards": 1, "min_timepoints": LEAST, "on_invalid": "drop", **case.settings,
    }  # fmt: skip
    return CohortSettings(**usual | changes)


@pytest.mark.parametrize("seed", cases(first=40, usual=60))
def test_check_and_run_give_one_verdict_and_the_numbers_that_were_written(tmp_path, seed):
    case = made(seed)
    settings = cohort(tmp_path, case, constant_regions=("impute_zero", "drop_subject", "error")[seed % 3])
    stopped, reasons, written = of_the_run(tmp_path, settings)
    checked = check_cohort("c", settings)
    stops, drops = found_by_severity(checked)
    assert bool(stops) == bool(stopped), (case.kind, stops, stopped)
    if stopped:
        assert stopped in stops, (case.kind, stops, stopped)
        assert "expected a signal in every region" in stopped
        return
    assert {person.subject for person in checked.people} == {name for name, reason in reasons.items() if not reason}
    assert drops.keys() == {name for name, reason in reasons.items() if reason}, case.kind
    problem = reasons["s2"]
    assert problem in drops.get("s2", ""), case.kind
    silent = "without signal" in problem
    if case.refused is None or silent:
        assert "Traceback" not in problem and "\n" not in problem
    elif case.refused:
        assert re.search(case.refused, problem), (case.kind, problem)
    else:
        assert not problem, (case.form, case.kind, problem)
    if not case.refused and case.refused is not None and not problem:
        np.testing.assert_array_equal(written.arrays["s2"], case.truth)
        assert written.arrays["s2"].dtype == np.float32
        unseen = ~np.isfinite(case.truth).all(axis=0) | (np.ptp(case.truth, axis=0) == 0)
        noted = any("regions without a signal" in one.sentence and "s2" in one.subjects for one in checked.findings)
        assert noted == unseen.any()


def test_names_that_a_file_holds_are_those_of_its_regions(tmp_path):
    named = 0
    for seed in range(len(series_formats.FORMATS) * 40):
        case = made(seed)
        if case.names and not case.refused:
            path, settings = write(case, tmp_path), case.settings
            assert read_roi_series("s2", path, settings["regions"]).regions == case.names, case.kind
            named += 1
    assert named >= 20


@pytest.mark.parametrize("form", FORMATS)
def test_values_are_those_of_the_libraries(tmp_path, form):
    """NumPy, pandas, SciPy and h5py read the same files to the same numbers."""
    values = np.random.default_rng(1).standard_normal((30, 5)).astype(np.float32)
    path = tmp_path / f"s{series_formats.ENDINGS.get(form, '.' + form)}"
    path.write_bytes(plain(values, form))
    if form == "mat73":
        with h5py.File(path) as file:
            expected = file["ROISignals"][()].T
    elif form in ("npy", "npz"):
        loaded = np.load(path)
        expected = loaded if form == "npy" else loaded["series"]
    else:
        expected = {
            "csv": lambda: pd.read_csv(path, header=None).to_numpy(),
            "tsv": lambda: pd.read_csv(path, sep="\t", header=None).to_numpy(),
            "txt": lambda: np.loadtxt(path),
            "mat5": lambda: scipy.io.loadmat(path)["ROISignals"],
        }[form]()
    found = read_roi_series("s", path, 5).series
    np.testing.assert_array_equal(found, expected.astype(np.float32))
    np.testing.assert_array_equal(found, values)


def test_a_conn_file_gives_the_regions_that_a_table_names_in_its_order(tmp_path):
    values = np.random.default_rng(0).standard_normal((20, 3))
    names = ["Grey Matter", "atlas.a", "networks.b", "atlas.c"]
    data = [np.ones((20, 1)), *(values[:, [place]] for place in range(3))]
    path = tmp_path / "ROI_Subject001_Condition001.mat"
    path.write_bytes(series_formats.mat73_of(data=data, names=names))
    with pytest.raises(UserError, match=r"expected 2 regions, found 3 in CONN's file \(2 of atlas, 1 of networks\)"):
        read_roi_series("s", path, 2)
    found = read_roi_series("s", path, 2, known=("atlas.c", "atlas.a"))
    assert found.regions == ("atlas.c", "atlas.a")
    np.testing.assert_array_equal(found.series, values[:, [2, 0]].astype(np.float32))


@pytest.mark.parametrize("places", [2**28, 3])
def test_a_damaged_cell_array_is_a_sentence_and_not_the_end_of_the_process(tmp_path, places):
    """SciPy's reader takes memory for as many cells as a file states, and may crash."""
    regions = series_formats.Case("mat5", series_formats.drawn(random.Random(0), 20, 4), {"regions": 4})
    content = series_formats.mat5_of(
        data=series_formats.cell_of([regions.truth[:, [place]] for place in range(4)]),
        names=series_formats.cell_of(["a", "b", "c", "d"]),
    )
    path = tmp_path / "s.mat"
    path.write_bytes(content)
    assert read_roi_series("s", path, 4).regions == ("a", "b", "c", "d")
    path.write_bytes(content.replace(struct.pack("<ii", 1, 4), struct.pack("<ii", 1, places)))
    with pytest.raises(UserError, match=r"found a damaged file \(ValueError: "):
        read_roi_series("s", path, 4)


def test_matrices_that_matlab_wrote_are_read_as_scipy_reads_them():
    """The files of SciPy's own tests: versions 4 to 7.1, little and big endian, compressed or not."""
    folder = Path(scipy.io.__file__).parent / "matlab" / "tests" / "data"
    if not folder.is_dir():
        pytest.skip("this SciPy was installed without the files of its tests")
    read = 0
    for file in (one for one in sorted(folder.glob("test*_*.mat")) if array_format(one) == "mat"):
        for name, shape, kind in scipy.io.whosmat(file):
            content = scipy.io.loadmat(file, variable_names=[name])[name]
            if kind in NUMBER_CLASSES and len(shape) == 2 and np.isrealobj(content) and content.size:
                found, names = read_array("s", file, name, (), None)
                np.testing.assert_array_equal(found, content)
                assert names == ()
                read += 1
    assert read >= 20


@pytest.mark.parametrize("on_invalid", ["drop", "error"])
def test_links_without_content_leave_as_files_that_are_absent_do(tmp_path, on_invalid):
    case = series_formats.Case("npy", series_formats.drawn(random.Random(0), 20, 4), {"regions": 4})
    settings = cohort(tmp_path, replace(case, content=plain(case.truth, "npy")), on_invalid=on_invalid)
    for subject in ("s2", "s3"):
        (tmp_path / f"{subject}.npy").unlink()
        (tmp_path / f"{subject}.npy").symlink_to(tmp_path / ".git" / "annex" / subject)
    stopped, reasons, written = of_the_run(tmp_path, settings)
    checked = check_cohort("c", settings)
    stops, drops = found_by_severity(checked)
    assert bool(stops) == bool(stopped) == (on_invalid == "error")
    if on_invalid == "drop":
        assert written.arrays.keys() == {"s1", "s4"} == {person.subject for person in checked.people}
        assert drops.keys() == {"s2", "s3"}
        assert reasons["s2"] == reasons["s3"] == "series file absent"


def test_the_kinds_of_changes_are_all_drawn():
    kinds = {(made(seed).form, made(seed).kind.split(" ")[0]) for seed in range(300)}
    assert {form for form, _ in kinds} == set(FORMATS)
    assert len(kinds) >= 60
