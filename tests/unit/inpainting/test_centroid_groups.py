"""Centroids of groups of similar subjects of a minimum size, in place of a generator."""

from dataclasses import replace

import numpy as np
import pytest

from brainfed.inpainting import CentroidSettings, FusingSettings, fuse
from brainfed.inpainting.centroids import coordinates, groups_of, load, train
from brainfed.runtime import ArrayFile
from brainfed.runtime.jobs import Run
from support.samples.inpainting_inputs import inpainting_inputs


@pytest.mark.parametrize("subjects", [0, 1, 9, 10, 19, 20, 29, 30, 31, 57, 207])
def test_all_subjects_are_in_one_group_of_the_right_size_or_none_is(subjects):
    points = np.random.default_rng(subjects).standard_normal((subjects, 3))
    groups = groups_of(points, 10)
    assert sorted(np.concatenate(groups).tolist() if groups else []) == list(range(subjects if subjects >= 10 else 0))
    assert all(10 <= len(group) < 20 for group in groups)


def test_separate_clusters_become_the_groups():
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 90.0], [70.0, 70.0]])
    cloud = np.arange(40) % 4
    points = centres[cloud] + np.random.default_rng(0).standard_normal((40, 2))
    groups = groups_of(points, 10)
    assert sorted(group.tolist() for group in groups) == sorted(
        np.flatnonzero(cloud == which).tolist() for which in range(4)
    )


def test_equal_subjects_are_grouped_too():
    assert sorted(len(group) for group in groups_of(np.zeros((25, 2)), 10)) == [10, 15]


def test_groups_are_tighter_than_groups_at_random():
    random = np.random.default_rng(1)
    points = random.standard_normal((200, 4))

    def spread(groups):
        return np.mean([points[group].var(axis=0).sum() for group in groups])

    assert spread(groups_of(points, 10)) < 0.7 * spread(np.split(random.permutation(200), 20))


SETTINGS = CentroidSettings(min_group=5)

FUSING = FusingSettings(cap=None, edges="k")


@pytest.fixture
def inputs():
    return inpainting_inputs(scope="global_cut")


def fused_of(inputs, settings=SETTINGS, fusing=FUSING):
    trained = train(inputs, settings, Run())
    return trained, fuse(inputs, load(inputs, settings, ArrayFile(trained.arrays, {}), Run()), fusing, None)


def test_a_centroid_is_the_mean_of_at_least_min_group_subjects_of_one_institution(inputs):
    arrays = train(inputs, SETTINGS, Run()).arrays
    assert np.bincount(arrays["institution"]).tolist() == [4, 4, 4]
    place = 0
    for code in range(3):
        for group in groups_of(coordinates(inputs, code), 5):
            members = inputs.members(code)[group]
            assert len(members) >= 5
            expected = np.mean([inputs.features[member].astype(float) for member in members], axis=0)
            np.testing.assert_allclose(arrays["features"][place], expected, rtol=1e-6)
            known = [int(inputs.sex[member]) for member in members if inputs.sex[member] >= 0]
            assert arrays["sex"][place] in (-1, known.count(1) > known.count(0))
            ages = [float(inputs.age[member]) for member in members if not np.isnan(inputs.age[member])]
            assert (len(known) >= 5) == (arrays["sex"][place] >= 0)
            assert arrays["age"][place] == pytest.approx(np.mean(ages) if len(ages) >= 5 else np.nan, nan_ok=True)
            place += 1


def test_every_institution_receives_all_foreign_centroids_once_and_no_own_one(inputs):
    trained, fused = fused_of(inputs)
    held = trained.arrays
    for code in range(3):
        mine = fused.institution == code
        foreign = held["features"][held["institution"] != code]
        assert mine.sum() == len(foreign) == 8
        assert sorted(row.tobytes() for row in fused.features[mine]) == sorted(row.tobytes() for row in foreign)
    assert fused.count.sum() == len(fused.parent) == 24


def test_the_parent_is_the_most_similar_subject_and_edges_stay_in_the_institution(inputs):
    _, fused = fused_of(inputs)
    n = len(inputs.subjects)
    for node, parent in enumerate(fused.parent):
        from_real = (fused.row == n + node) & (fused.column < n)
        assert fused.weight[from_real].max() == fused.weight[from_real & (fused.column == parent)]
        assert (inputs.institution[fused.column[from_real]] == fused.institution[node]).all()
        assert from_real.sum() <= inputs.graph_settings.k


def test_an_institution_smaller_than_min_group_receives_and_sends_nothing(inputs, caplog):
    few = np.flatnonzero(inputs.institution == 0)[4:]
    smaller = replace(inputs, fitted=~np.isin(np.arange(60), few))
    trained, fused = fused_of(smaller)
    assert 0 not in trained.arrays["institution"]
    assert "site-0 sends no centroid: it has 4 subjects to learn from, and a group needs 5" in caplog.text
    assert (fused.institution == 0).sum() == 8
    uploads = {row["name"]: row for row in trained.crossings if row["direction"] == "upload"}
    assert uploads["centroid"]["institutions"] == "1 2"
    assert uploads["centroid"]["to"] == "institutions"
    assert uploads["centroid"]["bytes"] == (4 + 4) * 2 * 40 * 4


def test_a_group_does_not_depend_on_other_institutions(inputs):
    changed = np.where((inputs.institution == 1)[:, None], -inputs.features, inputs.features)
    first, second = coordinates(inputs, 0), coordinates(replace(inputs, features=changed), 0)
    assert first.tobytes() == second.tobytes()


def test_centroids_do_not_depend_on_test_subjects(inputs):
    tested = np.isin(np.arange(60), inputs.members(0)[::4])
    inductive = inpainting_inputs(scope="global_cut", fitted=~tested)
    trained, fused = fused_of(inductive)
    features = np.where(tested[:, None], -inputs.features, inputs.features)
    sex, age = np.where(tested, 1 - inputs.sex, inputs.sex), np.where(tested, 50 - inputs.age, inputs.age)
    other = train(replace(inductive, features=features, sex=sex, age=age), SETTINGS, Run())
    assert all(trained.arrays[name].tobytes() == other.arrays[name].tobytes() for name in trained.arrays)
    assert not np.isin(fused.parent, np.flatnonzero(tested)).any()


@pytest.mark.parametrize("known", [4, 5])
def test_a_sex_or_age_with_fewer_known_values_than_min_group_does_not_cross(inputs, known):
    plain = replace(inputs, graph_settings=replace(inputs.graph_settings, phenotypes=()))
    seen = np.zeros(60, dtype=bool)
    for group in groups_of(coordinates(plain, 0), 5):
        seen[inputs.members(0)[group[:known]]] = True
    partly_known = replace(plain, sex=np.where(seen, 1, -1), age=np.where(seen, 30.0, np.nan))
    arrays = train(partly_known, SETTINGS, Run()).arrays
    own = arrays["institution"] == 0
    assert (arrays["sex"][own] == (1 if known == 5 else -1)).all()
    assert (np.isfinite(arrays["age"][own]) == (known == 5)).all()
    assert (arrays["sex"][~own] == -1).all() and np.isnan(arrays["age"][~own]).all()


def test_a_centroid_has_no_site(inputs):
    by_site = inpainting_inputs(scope="global_cut", phenotypes=("site",))
    trained = train(by_site, SETTINGS, Run())
    generator = load(by_site, SETTINGS, ArrayFile(trained.arrays, {}), Run())
    assert generator.counts().sum() == 0
    assert (generator.draw(np.zeros(0, dtype=np.int64)).site == -1).all()


def test_a_limit_keeps_the_most_similar_centroid_of_a_subject(inputs):
    _, whole = fused_of(inputs)
    _, fewer = fused_of(inputs, fusing=replace(FUSING, cap=0.2))
    assert len(fewer.parent) == 12 < len(whole.parent)
    for parent in np.unique(fewer.parent):
        first = whole.features[whole.parent == parent][: (fewer.parent == parent).sum()]
        assert fewer.features[fewer.parent == parent].tobytes() == first.tobytes()


def test_sex_and_age_may_be_unknown_for_all_subjects(inputs):
    unknown = replace(inputs, sex=np.full(60, -1), age=np.full(60, np.nan))
    arrays = train(unknown, SETTINGS, Run()).arrays
    assert (arrays["sex"] == -1).all() and np.isnan(arrays["age"]).all()
    assert np.isfinite(arrays["features"]).all()
