"""Subjects without a label are nodes of the graph, tested in no fold; the others are where they would be alone."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.settings import CohortSettings, SplitSettings
from brainfed.cohort.splits import split, training_labels
from brainfed.graphs import GraphSettings
from brainfed.methods import METHODS, inpainter_of
from brainfed.runtime import Streams, read_table, resolve, write_arrays, write_table
from brainfed.runtime.jobs import Run
from brainfed.samples import assemble, check, inpainting_inputs, predictions_table
from support.files.quality_tables import people_table, quality_table
from support.files.run_of_cohort import decide
from support.samples.fused_inputs import with_fused
from support.samples.method_inputs import method_inputs

KEEP = CohortSettings(source="timeseries", unlabelled="keep")
SETTINGS = {
    "random": SplitSettings(count=2, folds=3),
    "share": SplitSettings(count=2, folds=3, share=0.4),
    "sites": SplitSettings(institutions="sites", folds=3),
    "unseen": SplitSettings(validation="leave_one_site_out"),
    "holdout": SplitSettings(count=2, validation="holdout", held_back=0.2),
    "consecutive": SplitSettings(institutions="consecutive", count=3, block=15, folds=3),
}
every_split = pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)


def cohort(labelled=60, unlabelled=12):
    """Three sites of labelled subjects; unlabelled ones at these and at a fourth."""
    count = labelled + unlabelled
    ids = [f"s{number:03d}" for number in np.random.default_rng(0).permutation(count)]
    site = [f"site-{number % (3 if number < labelled else 4)}" for number in range(count)]
    diagnosis = pd.array([number // 3 % 2 for number in range(labelled)] + [None] * unlabelled, dtype="Int8")
    people = pd.DataFrame({"subject": ids, "site": site, "diagnosis": diagnosis})
    included = pd.DataFrame({"subject": ids, "included": True, "twin_group": ids})
    return included, people.assign(age=20.0, sex=pd.array(["male", "female"] * (count // 2), "string"), mean_fd=0.1)


@every_split
def test_unlabelled_subjects_do_not_move_labelled_ones(settings):
    included, people = cohort()
    known = people["diagnosis"].notna()
    alone = split(included[known], people[known], settings, Streams(3))
    with_others = split(included, people, settings, Streams(3))
    unlabelled = with_others["subject"].isin(people.loc[~known, "subject"])
    pd.testing.assert_frame_equal(with_others[~unlabelled].reset_index(drop=True), alone)
    assert unlabelled.any() and set(with_others.loc[unlabelled, "fold"]) == {-1}


def test_the_unlabelled_are_spread_evenly_over_random_institutions_and_stay_at_their_site():
    included, people = cohort()
    spread = split(included, people, SETTINGS["random"], Streams(3))
    assert spread[spread["fold"] < 0]["institution"].value_counts().tolist() == [6, 6]
    for name in ("sites", "unseen"):
        placed = split(included, people, SETTINGS[name], Streams(3)).merge(people, on="subject")
        assert (placed["institution"] == placed["site"]).all()


def test_a_site_without_labelled_subjects_is_no_fold():
    included, people = cohort()
    table = split(included, people, SETTINGS["unseen"], Streams(3))
    assert sorted(set(table["fold"])) == [-1, 0, 1, 2]
    assert set(table.loc[table["institution"] == "site-3", "fold"]) == {-1}


def decided(settings, checksums=("u", "v", "w", "x")):
    people = people_table("abcd", [0, 1, None, None], sex=None)
    empty = pd.DataFrame({"subject": [], "region": [], "coverage": []})
    included, issues = decide(people, quality_table("abcd", checksum=list(checksums)), empty, settings)
    return dict(zip(included["subject"], included["reason"], strict=True)), issues


def test_the_unlabelled_leave_or_stay_with_an_issue_as_the_config_says():
    reasons, _ = decided(CohortSettings(source="timeseries"))
    assert reasons == {"a": "", "b": "", "c": "diagnosis missing", "d": "diagnosis missing"}
    reasons, issues = decided(KEEP)
    assert set(reasons.values()) == {""}
    listed = issues[issues["kind"] == "unlabelled"]
    assert listed["subject"].tolist() == ["c", "d"]
    assert set(listed["action"]) == {"kept without a label, never scored"}


def test_an_unlabelled_copy_of_a_labelled_scan_is_left_out():
    reasons, _ = decided(KEEP, ("u", "v", "v", "x"))
    assert reasons == {"a": "", "b": "", "c": "unlabelled copy of a labelled subject", "d": ""}


def test_under_the_target_sex_a_missing_sex_is_no_issue():
    reasons, issues = decided(replace(KEEP, target="sex", unlabelled="drop"))
    assert reasons["c"] == "sex missing"
    assert "sex missing" not in set(issues.loc[issues["action"] != "left out", "kind"])


class Artefacts:
    """Split, participants, features and graph of `cohort`."""

    def __init__(self, folder, settings):
        included, people = cohort()
        drawn = split(included, people, settings, Streams(3))
        self.paths = {name: folder / name for name in ("split", "participants")}
        write_table(self.paths["split"], drawn)
        write_table(self.paths["participants"], people)
        subjects = list(drawn["subject"])
        features = np.random.default_rng(1).standard_normal((len(subjects), 8)).astype(np.float32)
        arrays = folder / "features.safetensors"
        write_arrays(arrays, {"features": features}, {"subjects": subjects})
        node = np.arange(len(subjects))
        ring = {"row": np.append(node, node), "column": np.append(node, np.roll(node, 1))}
        weight = np.ones(2 * len(node), dtype=np.float32)
        write_arrays(folder / "graph.safetensors", ring | {"weight": weight}, {"subjects": subjects})
        self.features, self.graph = [arrays], [folder / "graph.safetensors"]

    def inputs(self, labels="true", graph=True):
        return assemble(
            **self.paths, features=self.features, graphs=self.graph if graph else [], labels=labels, streams=Streams(2)
        )


@every_split
@pytest.mark.parametrize("labels", ["true", "permuted"])
def test_a_fit_sees_the_labels_of_all_but_the_tested_and_the_unlabelled(tmp_path, settings, labels):
    artefacts = Artefacts(tmp_path, settings)
    inputs, truth = artefacts.inputs(labels)
    paths = artefacts.paths
    people = read_table(paths["participants"]).set_index("subject").loc[list(inputs.subjects)]
    unlabelled = people["diagnosis"].isna().to_numpy()
    assert unlabelled.any() and (inputs.fold[unlabelled] == -1).all()
    assert (inputs.labels[:, unlabelled] == -1).all() and (truth[unlabelled] == -1).all()
    for fold in range(inputs.folds):
        seen = training_labels(paths["split"], paths["participants"], inputs.subjects, fold)
        known = ~unlabelled & (inputs.fold != fold)
        assert ((seen >= 0) == known).all() and (inputs.training(fold) == known).all()
        np.testing.assert_array_equal(seen[known], people["diagnosis"][known])


def test_a_method_without_a_graph_is_given_the_labelled_alone(tmp_path):
    artefacts = Artefacts(tmp_path, SETTINGS["sites"])
    with_graph, _ = artefacts.inputs()
    without, truth = artefacts.inputs(graph=False)
    assert (without.fold >= 0).all() and (truth >= 0).all()
    assert len(with_graph.subjects) - len(without.subjects) == 12
    assert with_graph.institutions == ("site-0", "site-1", "site-2", "site-3")
    assert without.institutions == ("site-0", "site-1", "site-2")


@pytest.mark.parametrize(("protocol", "part"), [("transductive", "all"), ("inductive", "fold-0")])
def test_a_generator_is_trained_on_the_unlabelled_too(tmp_path, protocol, part):
    artefacts = Artefacts(tmp_path, SplitSettings(count=2, folds=3))
    inputs = inpainting_inputs(
        **artefacts.paths, features=artefacts.features[0], graph=artefacts.graph[0], graph_settings=GraphSettings(),
        protocol=protocol, part=part, streams=Streams(2),
    )  # fmt: skip
    fold = read_table(artefacts.paths["split"])["fold"].to_numpy()
    assert (fold < 0).sum() == 12
    assert inputs.fitted.tolist() == [part == "all" or tested_in != 0 for tested_in in fold]


def unlabelled(inputs, count=9):
    """Inputs without the labels of the last subjects."""
    hidden = np.arange(len(inputs.subjects)) >= len(inputs.subjects) - count
    return replace(inputs, fold=np.where(hidden, -1, inputs.fold), labels=np.where(hidden, -1, inputs.labels))


GRAPH_METHODS = {
    "localgcn": {"epochs": 4, "curve_every": 2},
    "centralgcn": {"epochs": 4, "curve_every": 2},
    "fedgcn": {"rounds": 2, "local_epochs": 2},
    "fedni": {"rounds": 2, "local_epochs": 2},
    "fedni-centroids": {"rounds": 2, "local_epochs": 2},
    "fedsage-plus": {"rounds": 2, "local_epochs": 2},
}


@pytest.mark.parametrize("name", GRAPH_METHODS)
@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.parametrize("way", ["random", "leave-one-site-out"])
def test_the_unlabelled_are_neighbours_and_are_not_scored(name, protocol, way):
    method = METHODS[name]
    whole = method_inputs(60, split=way, protocol=protocol)
    whole = whole if inpainter_of(method) is None else with_fused(whole)

    def outcome(inputs):
        return resolve(method.entry)(inputs, method.settings(**GRAPH_METHODS[name]), Run())

    inputs = unlabelled(whole)
    found = outcome(inputs)
    check(inputs, found)
    table = predictions_table(inputs, found, np.where(inputs.fold < 0, -1, 0))
    assert table["subject"].tolist() == list(inputs.subjects[:51])
    moved = inputs.features[0].copy()
    moved[-9:] += 5
    after = outcome(replace(inputs, features=(moved,)))
    assert (after.scores[..., 1] != found.scores[..., 1]).any(where=np.isfinite(found.scores[..., 1]))


def test_an_institution_of_unlabelled_subjects_alone_is_not_scored():
    inputs = method_inputs(60)
    hidden = inputs.institution == 2
    inputs = replace(inputs, fold=np.where(hidden, -1, inputs.fold), labels=np.where(hidden, -1, inputs.labels))
    for name in ("localgcn", "fedgcn"):
        method = METHODS[name]
        found = resolve(method.entry)(inputs, method.settings(**GRAPH_METHODS[name]), Run())
        check(inputs, found)
        table = predictions_table(inputs, found, np.where(hidden, -1, 0))
        assert set(table["subject"]) == set(np.array(inputs.subjects)[~hidden])
        assert np.isfinite(table["score"]).all()
