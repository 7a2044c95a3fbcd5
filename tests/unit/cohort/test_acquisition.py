"""Sites and covariates for harmonisation are joined by id, coded, and hold no diagnosis; a job uses them."""

from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.splits import read_acquisition
from brainfed.imaging import FeatureSettings
from brainfed.imaging.fitted import harmonised, select_features
from brainfed.runtime import UserError, read_arrays, read_table, write_arrays, write_table
from support.processes.script_runner import SCRIPTS, run_scripts

COUNT = 48
SUBJECTS = [f"00{index:02d}" for index in range(COUNT)]
FOLD = np.arange(COUNT) // 8 % 3


class Cohort:
    """A small cohort on disk: two institutions of two sites each."""

    def __init__(self, folder):
        self.folder, random = folder, np.random.default_rng(4)
        self.site = [f"site-{index % 2}" for index in range(COUNT)]
        self.institution = [f"institution-{index // 2 % 2}" for index in range(COUNT)]
        self.features = random.normal(size=(COUNT, 10)).astype(np.float32)
        self.features[1::2] += 2
        self.age = random.uniform(10, 40, COUNT)
        self.sex = ["male" if value else "female" for value in random.integers(0, 2, COUNT)]
        people = {"subject": SUBJECTS, "site": self.site, "age": self.age, "sex": self.sex, "mean_fd": 0.1}
        self.people = pd.DataFrame({**people, "diagnosis": pd.array(np.arange(COUNT) // 4 % 2, dtype="Int8")})
        self.write(self.people)
        drawn = pd.DataFrame({"subject": SUBJECTS, "institution": self.institution, "fold": FOLD})
        write_table(folder / "split.parquet", drawn)
        metadata = {"subjects": SUBJECTS[::-1], "regions": [f"r{index}" for index in range(5)], "crossings": []}
        write_arrays(folder / "all.safetensors", {"features": self.features[::-1]}, metadata)

    def write(self, people):
        write_table(self.folder / "participants.parquet", people.sample(frac=1, random_state=1))

    def job(self, output, fold=0, **settings):
        """Job of the script as Snakemake runs it."""
        given = {name: str(self.folder / f"{name}.parquet") for name in ("split", "participants")}
        features = FeatureSettings(harmonise="combat", **settings)
        return {
            "path": str(SCRIPTS / "fit_connectivity.py"),
            "input": {**given, "whole": str(self.folder / "all.safetensors"), "covariances": []},
            "output": {"features": str(self.folder / output), "timing": str(self.folder / f"{output}-timing.json")},
            "params": {"settings": asdict(features), "fold": fold},
        }

    def expected(self, fold, **covariates):
        return harmonised(self.features, self.site, self.institution, fold != FOLD, covariates).features


@pytest.fixture
def cohort(tmp_path):
    return Cohort(tmp_path)


class TestReading:
    def test_rows_are_joined_by_id_and_coded(self, cohort):
        found = read_acquisition(cohort.folder / "participants.parquet", SUBJECTS, ["age", "sex"])
        assert found.site.tolist() == cohort.site
        assert found.covariates["age"].tolist() == cohort.age.tolist()
        assert found.covariates["sex"].tolist() == [float(sex == "male") for sex in cohort.sex]

    def test_unknown_values_are_nan(self, cohort):
        people = cohort.people.copy()
        people.loc[3, ["age", "sex"]] = np.nan, None
        cohort.write(people)
        found = read_acquisition(cohort.folder / "participants.parquet", SUBJECTS, ["age", "sex"])
        for values in found.covariates.values():
            assert np.flatnonzero(np.isnan(values)).tolist() == [3]

    def test_a_covariate_unknown_for_all_subjects_is_nan_throughout(self, cohort):
        """Sex is such a covariate under the target sex."""
        cohort.write(cohort.people.assign(sex=pd.array([None] * COUNT, dtype="string")))
        found = read_acquisition(cohort.folder / "participants.parquet", SUBJECTS, ["sex"])
        assert np.isnan(found.covariates["sex"]).all()

    def test_a_subject_without_a_site_is_named(self, cohort):
        cohort.write(cohort.people.assign(site=[None, *cohort.site[1:]]))
        with pytest.raises(UserError, match=r"needs the site of every subject, 0000 \(and 0 more\)"):
            read_acquisition(cohort.folder / "participants.parquet", SUBJECTS, [])

    def test_a_subject_without_a_row_is_named(self, cohort):
        cohort.write(cohort.people.iloc[1:])
        with pytest.raises(UserError, match="subject '0000' is missing"):
            read_acquisition(cohort.folder / "participants.parquet", SUBJECTS, [])


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The true cohort, its diagnoses turned, without them, and with a subject of no fold, after their jobs."""
    true, turned, without, unfolded = (Cohort(tmp_path_factory.mktemp("cohort")) for _ in range(4))
    turned.write(true.people.assign(diagnosis=1 - true.people["diagnosis"]))
    without.write(true.people.drop(columns="diagnosis"))
    split = read_table(unfolded.folder / "split.parquet")
    split.loc[5, "fold"] = -1
    write_table(unfolded.folder / "split.parquet", split)
    selected = true.job("selected", 2, harmonise_covariates=(), selection="rfe", selected=4)
    further = [true.job("age", 1, harmonise_covariates=("age",)), selected]
    last = unfolded.job("first", harmonise_covariates=())
    run_scripts([*(one.job("plain") for one in (true, turned, without)), *further, last])
    return true, turned, without, unfolded


class TestJob:
    def test_harmonised_first_then_selected(self, ran):
        cohort = ran[0]
        plain, age, selected = (read_arrays(cohort.folder / name) for name in ("plain", "age", "selected"))
        sex = np.array([float(one == "male") for one in cohort.sex])
        assert np.array_equal(plain.arrays["features"], cohort.expected(0, age=cohort.age, sex=sex))
        assert np.array_equal(age.arrays["features"], cohort.expected(1, age=cohort.age))
        assert plain.subjects == tuple(SUBJECTS)
        assert plain.metadata["harmonised"] == {f"institution-{one}": ["site-0", "site-1"] for one in range(2)}
        labels = np.where(FOLD == 2, -1, cohort.people["diagnosis"].to_numpy(np.int64))
        even, institution = cohort.expected(2), np.arange(COUNT) // 2 % 2
        columns = select_features(even, labels, institution, 4).columns
        assert selected.metadata["columns"] == columns.tolist()
        assert np.array_equal(selected.arrays["features"], even[:, columns])

    def test_no_diagnosis_reaches_a_byte(self, ran):
        before, *after = ((one.folder / "plain").read_bytes() for one in ran[:3])
        assert after == [before] * 2

    def test_a_subject_of_no_fold_is_fitted_on_in_all(self, ran):
        cohort = ran[3]
        training = (FOLD != 0) | (np.arange(COUNT) == 5)
        expected = harmonised(cohort.features, cohort.site, cohort.institution, training, {}).features
        assert np.array_equal(read_arrays(cohort.folder / "first").arrays["features"], expected)
