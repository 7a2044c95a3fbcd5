"""Groups of similar subjects of a minimum size."""

import numpy as np
import pytest

from brainfed.inpainting.centroids.microaggregation import groups_of


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
