"""The simulated cohort has real files, known effects, none if the effect is 0, and a table of thickness if asked."""

import json
from dataclasses import asdict, replace
from itertools import pairwise

import nibabel as nib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import settings as checks
from hypothesis import strategies as st
from scipy import ndimage, stats

from brainfed.cohort.settings import CohortSettings, FreeSurferSettings, SimulateSettings
from brainfed.cohort.settings._sources import SimulatedSite
from brainfed.cohort.sources import (
    list_cohort,
    simulate_subjects,
    write_atlas,
    write_participants,
    write_scans,
    write_thickness,
)
from brainfed.cohort.sources._listing import apportion
from brainfed.cohort.sources._simulated_scans import (
    region_signals,
    simulate_atlas,
    simulate_connectome,
    simulate_scan,
    subject_correlation,
)
from brainfed.cohort.sources._simulated_subjects import (
    DEVIATION,
    FIRST,
    STEP,
    SimulatedSubject,
    simulate_phenotypes,
    simulate_thickness,
)
from brainfed.configuration.layout import CohortInputs
from brainfed.imaging.morphometry import read_measures
from brainfed.runtime import Streams, UserError

STREAMS = Streams(7)
SMALL = SimulateSettings(
    subjects=8,
    regions=20,
    grid=(8, 9, 8),
    voxel_size=18.0,
    effect_connections=20,
    age_connections=20,
    sex_connections=20,
    sites={"a": SimulatedSite(volumes=40, tr=2.0, noise=0.5), "b": SimulatedSite(volumes=60, tr=1.5, noise=1.0)},
)


def person(**changes: object) -> SimulatedSubject:
    return replace(SimulatedSubject("sub-0001", "a", 25.0, "male", "patient", 0.1), **changes)


def test_every_region_of_the_default_parcellation_is_one_connected_piece_of_the_brain():
    settings = SimulateSettings()
    atlas = simulate_atlas(settings, STREAMS)
    assert set(np.unique(atlas.labels)) == set(range(settings.regions + 1))
    touching = np.ones((3, 3, 3))
    assert all(ndimage.label(atlas.labels == region, touching)[1] == 1 for region in range(1, settings.regions + 1))
    assert len(set(atlas.names)) == settings.regions


def test_a_grid_too_small_for_its_regions_is_refused():
    with pytest.raises(UserError, match="enlarge `grid`"):
        simulate_atlas(replace(SMALL, regions=122), STREAMS)


def test_a_patient_differs_from_the_same_control_by_the_effect_on_the_known_connections():
    # The effects are so few and small here that no eigenvalue has to be lifted: the shift is exact.
    settings = replace(SMALL, effect=0.02, effect_connections=10)
    connectome = simulate_connectome(settings, simulate_atlas(settings, STREAMS), STREAMS)
    patient = subject_correlation(settings, connectome, person(), STREAMS)
    control = subject_correlation(settings, connectome, person(diagnosis="control"), STREAMS)
    assert np.allclose(patient - control, 0.02 * connectome.effects["diagnosis"], atol=1e-12)
    assert np.count_nonzero(np.triu(connectome.effects["diagnosis"])) == 10
    assert connectome.effects["diagnosis"].sum() == 0


def test_diagnosis_age_and_sex_move_different_connections():
    connectome = simulate_connectome(SMALL, simulate_atlas(SMALL, STREAMS), STREAMS)
    moved = sum(np.abs(effect) for effect in connectome.effects.values())
    assert moved.max() == 1
    assert np.count_nonzero(np.triu(moved)) == 60


@checks(deadline=None)
@given(st.floats(0, 1), st.floats(6, 80), st.integers(0, 50))
def test_every_subject_has_a_correlation_matrix(effect, age, seed):
    settings, streams = replace(SMALL, effect=effect, effect_age=0.3), Streams(seed)
    connectome = simulate_connectome(settings, simulate_atlas(SMALL, STREAMS), streams)
    correlation = subject_correlation(settings, connectome, person(age=age), streams)
    assert np.allclose(np.diagonal(correlation), 1)
    assert np.allclose(correlation, correlation.T)
    assert np.linalg.eigvalsh(correlation).min() > 0


def test_without_effect_a_scan_is_independent_of_its_diagnosis():
    settings = replace(SMALL, effect=0.0)
    atlas = simulate_atlas(settings, STREAMS)
    connectome = simulate_connectome(settings, atlas, STREAMS)
    patient, control = (
        simulate_scan(settings, atlas, connectome, person(diagnosis=diagnosis), STREAMS)
        for diagnosis in ("patient", "control")
    )
    assert patient.to_bytes() == control.to_bytes()


def group_differences(effect: float) -> np.ndarray:
    """p-values of a t-test on each connection, patients against controls."""
    settings = CohortSettings(
        source="simulate", simulate=replace(SMALL, effect=effect, subjects=120, sites={"a": SMALL.sites["a"]})
    )
    connectome = simulate_connectome(settings.simulate, simulate_atlas(SMALL, STREAMS), STREAMS)
    subjects = simulate_subjects(settings, STREAMS).values()
    upper = np.triu_indices(SMALL.regions, 1)
    connections = np.stack(
        [np.corrcoef(region_signals(settings.simulate, connectome, subject, STREAMS).T)[upper] for subject in subjects]
    )
    patient = np.array([subject.diagnosis == "patient" for subject in subjects])
    return stats.ttest_ind(connections[patient], connections[~patient]).pvalue


def test_without_effect_the_groups_differ_no_more_than_chance():
    p_values = group_differences(0.0)
    assert (p_values < 0.05).mean() < 0.12
    assert p_values.min() > 0.01 / len(p_values)


def test_with_a_large_effect_the_groups_differ():
    assert group_differences(0.5).min() < 1e-6


def test_diagnosis_is_independent_of_site_age_sex_and_motion():
    settings = CohortSettings(source="simulate", simulate=SimulateSettings(subjects=2000))
    table = simulate_phenotypes(settings, STREAMS)
    patient = table["diagnosis"] == "patient"
    assert patient.mean() == pytest.approx(0.5, abs=0.002)
    assert stats.chi2_contingency(pd.crosstab(patient, table["site"])).pvalue > 0.01
    assert stats.chi2_contingency(pd.crosstab(patient, table["sex"])).pvalue > 0.01
    assert stats.ttest_ind(table.loc[patient, "age"], table.loc[~patient, "age"]).pvalue > 0.01
    assert stats.ttest_ind(table.loc[patient, "mean_fd"], table.loc[~patient, "mean_fd"]).pvalue > 0.01


def test_one_more_subject_leaves_the_others_as_they_are():
    few, more = (
        simulate_phenotypes(CohortSettings(source="simulate", simulate=replace(SMALL, subjects=n)), STREAMS)
        for n in (15, 16)
    )
    pd.testing.assert_frame_equal(few, more.head(15))


@checks(deadline=None)
@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=5), st.integers(0, 200))
def test_parts_hold_their_shares(shares, count):
    names = {f"part-{i}": share for i, share in enumerate(shares)}
    parts = apportion(names, count)
    assert len(parts) == count
    for name, share in names.items():
        assert abs(parts.count(name) - count * share / sum(shares)) < len(shares)


def test_files_have_the_layout_of_a_lab(tmp_path):
    settings = CohortSettings(source="simulate", simulate=SMALL)
    listing = list_cohort("demo", settings, str(tmp_path))
    write_atlas(tmp_path / "demo" / "simulated", settings.simulate)
    write_participants(tmp_path / "demo" / "simulated", settings)
    write_scans({listed.subject: listed.series for listed in listing.subjects}, settings)

    table = pd.read_csv(listing.tables[0], sep="\t")
    assert list(table.columns) == ["participant_id", "site", "age", "sex", "diagnosis", "mean_fd"]
    assert list(table["participant_id"]) == [listed.subject for listed in listing.subjects]
    for listed, site in zip(listing.subjects, table["site"], strict=True):
        image = nib.load(listed.series)
        assert image.shape == (*SMALL.grid, SMALL.sites[site].volumes)
        assert image.header.get_zooms()[3] == pytest.approx(SMALL.sites[site].tr)
        assert image.header.get_xyzt_units() == ("mm", "sec")
    assert nib.load(listing.parcellation).shape == SMALL.grid
    assert list(pd.read_csv(listing.labels, sep="\t")["index"]) == list(range(1, 21))
    truth = json.loads((tmp_path / "demo" / "simulated" / "truth.json").read_text())
    assert len(truth["connections"]["diagnosis"]) == SMALL.effect_connections
    assert truth["settings"]["effect"] == SMALL.effect


def test_a_scan_has_the_same_bytes_in_any_job(tmp_path):
    settings = CohortSettings(source="simulate", simulate=SMALL)
    write_scans({"sub-0002": tmp_path / "alone.nii.gz"}, settings)
    write_scans({f"sub-000{i}": tmp_path / f"{i}.nii.gz" for i in (3, 2, 1)}, settings)
    assert (tmp_path / "alone.nii.gz").read_bytes() == (tmp_path / "2.nii.gz").read_bytes()
    contents = [(tmp_path / f"{i}.nii.gz").read_bytes() for i in (1, 2, 3)]
    assert all(one != other for one, other in pairwise(contents))


def test_the_signal_follows_its_correlation_matrix():
    settings = replace(SMALL, sites={"a": SimulatedSite(volumes=20000, tr=2.0)})
    connectome = simulate_connectome(settings, simulate_atlas(settings, STREAMS), STREAMS)
    signal = region_signals(settings, connectome, person(), STREAMS)
    correlation = subject_correlation(settings, connectome, person(), STREAMS)
    assert np.abs(np.corrcoef(signal.T) - correlation).max() < 0.06
    lagged = np.mean([np.corrcoef(column[:-1], column[1:])[0, 1] for column in signal.T])
    assert lagged == pytest.approx(np.exp(-2.0 / settings.memory), abs=0.01)


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
