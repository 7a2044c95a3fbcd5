"""Importance of views: the AUC of a loop, nothing for a view without a part, all for the only view with one."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brainfed.evaluation import IMPORTANCE_COLUMNS, auc, read_parts, view_importance
from brainfed.evaluation import _patterns as patterns
from brainfed.evaluation._patterns import ViewParts
from brainfed.runtime import Streams, write_arrays, write_table
from brainfed.samples import Outcome, named_patterns


def parts_of(seed, subjects=60, views=2, models=1, ties=False):
    random = np.random.default_rng(seed)
    people = pd.DataFrame(
        {
            "institution": random.choice(["a", "b"], subjects),
            "fold": random.integers(0, 2, subjects),
            "label": random.integers(0, max(models, 2), subjects),
        }
    )
    values = random.standard_normal((subjects, models, views))
    return ViewParts(people, np.round(values) if ties else values, tuple(f"v{place}" for place in range(views)))


def plain(found, seed, repeat=0):
    """AUC as it is and with every view permuted, one fold, institution and draw at a time: (folds, 1 + V)."""
    people, folds = found.subjects, []
    for fold in (0, 1):
        institutions = []
        for institution in ("a", "b"):
            rows = np.flatnonzero((people["fold"] == fold) & (people["institution"] == institution))
            labels = people["label"].to_numpy()[rows]
            own = [auc(labels, found.parts[rows, 0].sum(axis=1))]
            for place, view in enumerate(found.views):
                stream = Streams(seed, repeat).numpy("permuted view", view, fold, institution)
                draws = []
                for _ in range(patterns.PERMUTATIONS):
                    mixed = found.parts[rows, 0].copy()
                    mixed[:, place] = mixed[stream.permutation(len(rows)), place]
                    draws.append(auc(labels, mixed.sum(axis=1)))
                own.append(np.mean(draws))
            institutions.append(own)
        folds.append(np.nanmean(institutions, axis=0))
    return np.array(folds)


@settings(max_examples=10)
@given(st.integers(0, 1000), st.booleans())
def test_it_is_the_loss_of_a_loop(seed, ties):
    found = parts_of(seed, ties=ties)
    table = view_importance("x", [found], 7)
    expected = plain(found, 7)
    assert tuple(table.columns) == IMPORTANCE_COLUMNS
    np.testing.assert_allclose(table["auc"], expected[:, 0].mean())
    loss = expected[:, :1] - expected[:, 1:]
    np.testing.assert_allclose(table["loss"], loss.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(table["sd"], loss.std(axis=0, ddof=1), atol=1e-12)
    assert table["runs"].tolist() == [2, 2]


def test_a_view_without_a_part_loses_nothing_and_the_only_one_all():
    found = parts_of(0, subjects=400)
    parts = np.zeros_like(found.parts)
    parts[:, 0, 1] = found.subjects["label"] + 0.01 * np.arange(400) / 400
    table = view_importance("x", [ViewParts(found.subjects, parts, found.views)], 1)
    assert (table["auc"].tolist(), table["loss"].tolist()[0]) == ([1, 1], 0)
    assert table["loss"].tolist()[1] == pytest.approx(0.5, abs=0.05)


def test_variants_share_their_permutations():
    first, second = (view_importance(name, [parts_of(3)], 1).drop(columns="variant") for name in ("one", "two"))
    pd.testing.assert_frame_equal(first, second)


def test_every_class_counts_against_the_rest():
    found = parts_of(0, subjects=90, models=3)
    parts = np.zeros_like(found.parts)
    parts[np.arange(90), found.subjects["label"], 0] = 1
    table = view_importance("x", [ViewParts(found.subjects, parts, found.views)], 1)
    assert table["auc"].tolist() == [1, 1]
    assert table["loss"].tolist()[0] > 0.3 and table["loss"].tolist()[1] == 0


def test_an_institution_of_one_class_has_no_auc():
    found = parts_of(0)
    people = found.subjects.assign(label=(found.subjects["institution"] == "a").astype(int))
    table = view_importance("x", [ViewParts(people, found.parts, found.views)], 1)
    assert table["auc"].isna().all() and table["runs"].tolist() == [0, 0]


def test_parts_are_joined_by_subject(tmp_path):
    parts = np.arange(6, dtype=np.float32).reshape(3, 1, 2)
    described = [{"name": name, "start": 0, "stop": 1, "regions": [], "settings": {}} for name in ("fmri", "mri")]
    features = tmp_path / "features"
    write_arrays(features, {"features": np.zeros((3, 2), dtype=np.float32)}, {"views": described})
    outcome = Outcome(np.zeros((1, 3, 2)), "margin", patterns=np.ones((1, 1, 2), dtype=np.float32), contributions=parts)
    write_arrays(tmp_path / "patterns", *named_patterns(outcome, [features], subjects=["s1", "s2", "s3"]))
    people = {"subject": ["s3", "s1"], "institution": "a", "fold": 0, "label": [1, 0]}
    write_table(tmp_path / "predictions", pd.DataFrame(people))
    found = read_parts(tmp_path / "patterns", tmp_path / "predictions")
    assert (found.views, found.parts[:, 0].tolist()) == (("fmri", "mri"), [[4, 5], [0, 1]])
