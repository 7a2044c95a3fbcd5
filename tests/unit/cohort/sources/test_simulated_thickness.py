"""The simulated table of thickness: read like FreeSurfer's, keyed by subject, with a known effect, off by default."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.freesurfer import FreeSurferSettings
from brainfed.cohort.settings.simulation import SimulateSettings
from brainfed.cohort.sources.listing import list_cohort
from brainfed.cohort.sources.simulated.phenotype import simulate_subjects
from brainfed.cohort.sources.simulated.simulate import write_participants
from brainfed.cohort.sources.simulated.thickness import DEVIATION, FIRST, STEP, simulate_thickness, write_thickness
from brainfed.configuration.layout.cohort_inputs import CohortInputs
from brainfed.imaging.morphometry.measures import read_measures
from brainfed.runtime.streams import Streams

THICK = SimulateSettings(subjects=40, regions=20, effect_connections=9, age_connections=9, sex_connections=9,
                         thickness_regions=11, thickness_missing=0.2)  # fmt: skip


def table_of(**changes):
    return simulate_thickness(CohortSettings("simulate", simulate=replace(THICK, **changes)), Streams(7))


def inputs_of(settings):
    return CohortInputs("c", settings, list_cohort("c", settings))


def test_the_table_is_read_as_freesurfers_and_some_subjects_lack_it(tmp_path):
    settings = CohortSettings("simulate", simulate=THICK)
    write_thickness(tmp_path / "thickness.tsv", settings)
    own = replace(
        settings, simulate=SimulateSettings(), freesurfer=FreeSurferSettings((str(tmp_path / "thickness.tsv"),))
    )
    identities = dict(inputs_of(settings).measured_subjects())
    assert len(identities) == THICK.subjects
    found = read_measures(identities, own)
    assert found.values.shape[1] == THICK.thickness_regions
    assert 0 < len(found.problems) < THICK.subjects / 2
    assert list(found.values.columns)[:2] == ["lh_region001_thickness", "rh_region001_thickness"]
    np.testing.assert_array_equal(found.values.to_numpy(), table_of().drop(columns=FIRST).to_numpy())


def test_one_more_subject_changes_no_other_row():
    fewer, more = table_of(subjects=39), table_of(subjects=40)
    assert more.iloc[: len(fewer)].equals(fewer)


def test_patients_differ_by_the_effect_in_every_fifth_region_and_nowhere_else():
    changes = {"subjects": 4000, "thickness_effect": 1.0, "thickness_missing": 0.0, "thickness_site_spread": 0.0}
    table = table_of(**changes).set_index(FIRST)
    people = simulate_subjects(CohortSettings("simulate", simulate=replace(THICK, **changes)), Streams(7))
    patient = np.array([people[subject].diagnosis == "patient" for subject in table.index])
    difference = (table[patient].mean() - table[~patient].mean()).to_numpy() / DEVIATION
    expected = np.zeros(THICK.thickness_regions)
    expected[::STEP] = [-1, 1, -1]
    np.testing.assert_allclose(difference, expected, atol=4 * np.sqrt(4 / 4000))


def test_without_thickness_the_jobs_of_a_simulation_get_what_they_always_got(tmp_path):
    plain = CohortSettings("simulate", simulate=replace(THICK, thickness_regions=0, thickness_missing=0.05))
    assert plain.kinds == {"connectivity"}
    assert not any("thickness" in key for key in inputs_of(plain).simulation()["simulate"])
    write_participants(tmp_path, plain)
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert not any("thickness" in key for key in truth["settings"])


def test_thickness_is_in_no_scan_and_its_table_is_that_of_the_measures():
    thick = CohortSettings("simulate", simulate=THICK)
    inputs = inputs_of(thick)
    assert thick.kinds == {"connectivity", "morphometry"}
    assert not any("thickness" in key for key in inputs.simulation("shard-00")["simulate"])
    assert inputs.simulation()["simulate"] == asdict(THICK)
    assert inputs.stats_files() == ["results/c/simulated/thickness.tsv"]
    assert inputs.measure_settings()["freesurfer"]["tables"] == ("results/c/simulated/thickness.tsv",)


def test_thickness_of_no_region_and_two_tables_are_refused():
    with pytest.raises(ValueError, match=r"simulate\.thickness_effect: expected thickness_regions beside it"):
        SimulateSettings(thickness_effect=0.2)
    with pytest.raises(ValueError, match=r"expected no tables beside simulate\.thickness_regions"):
        CohortSettings("simulate", simulate=THICK, freesurfer=FreeSurferSettings(tables=("lh.tsv",)))
