"""No institution's data reach another's results unseen: change one institution, and look at what moves elsewhere.

Where something of the others moves, the ledger has a row that the changed institution sent; where the ledger has no
row, nothing moves by a bit. Each case stands for a feature kind, a scope of the graph, a generator or a method.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort.quality import crossings_of_inclusion, crossings_of_likeness
from brainfed.engines import in_order, sizes_of
from brainfed.federation import OF_SUBJECTS, Ledger, of_institutions
from brainfed.federation._sharing import ENTRY_BYTES, UndeclaredCrossing
from brainfed.graphs import GraphSettings, build_graph
from brainfed.imaging import (
    FeatureSettings,
    connectivity,
    covariances,
    crossings_of_all,
    tangent_at_identity,
    tangent_ledger,
    tangent_of_all,
    tangent_of_fold,
    typicality,
)
from brainfed.imaging.fitted import harmonised, select_features
from brainfed.inpainting import SIZE_TENSORS, CentroidSettings, FedSageSettings, InpaintingSettings, centroids
from brainfed.inpainting.fedni import training as fedni
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.methods import METHODS
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Run
from support.files.quality_tables import crossings_of_checksums
from support.samples.inpainting_inputs import inpainting_inputs
from support.samples.method_inputs import diagnosis_of, method_inputs, relabelled
from support.samples.quick_methods import METHOD_OF, in_tiers, in_tiers_by_split, outcome_of, topology_of

DOCUMENTED = (Path(__file__).parents[3] / "docs" / "reference" / "what-crosses.md").read_text().splitlines()
CHANGED = 1
"""The institution whose data are changed."""
POOLING = [
    name for name, method in METHOD_OF.items() if "labels" in method.crossing.tensors and topology_of(name) != "local"
]


@pytest.fixture(autouse=True)
def _every_axis_has_a_declared_size(monkeypatch):
    """Else an institution that happens to have as many people as an axis has entries stops the job."""
    record = Ledger.record

    def strict(ledger, name, shape, itemsize, **sent):
        unknown = set(ledger.declared.get(name, ())) - OF_SUBJECTS - set(ledger.axes)
        assert not unknown, f"{name}: no size is declared for {unknown}"
        record(ledger, name, shape, itemsize, **sent)

    monkeypatch.setattr(Ledger, "record", strict)


def sent(rows, *names):
    """Whether the changed institution sent anything, or anything of these names."""
    uploads = [row for row in rows if row["direction"] == "upload" and str(CHANGED) in str(row["institutions"]).split()]
    return any(not names or row["name"] in names for row in uploads)


def unchanged(split):
    """A cohort whose graphs stay inside institutions."""
    return method_inputs(39, 10, folds=2, split=split)


def changed(before, split, content):
    """The same cohort after a change of one content of one institution."""
    own = before.institution == CHANGED
    if content == "labels":
        return relabelled(before, np.where(own, 1 - diagnosis_of(before), diagnosis_of(before)))
    if content == "features":
        features = np.where(own[:, None], 3 - 2 * before.features[0], before.features[0])
        return relabelled(method_inputs(39, 10, folds=2, split=split, features=features), diagnosis_of(before))
    known = before.phenotypes
    sex, age = np.where(own, 1 - known.sex, known.sex), np.where(own, 50 - known.age, known.age)
    other = replace(known, sex=sex, age=age, mean_fd=np.where(own, 3 * known.mean_fd, known.mean_fd))
    return replace(before, phenotypes=other)


@pytest.mark.parametrize(("variant", "split"), in_tiers_by_split(METHOD_OF))
def test_data_of_another_institution_in_a_method_are_in_its_ledger(variant, split):
    """In the first fold, which the ledger counts; where a site is left out, it is the first, and the others help it."""
    moved = {}
    before = unchanged(split)
    first = outcome_of(variant, before)
    others = before.tested(0) & (before.institution != CHANGED)
    assert others.any()
    for content in ("features", "labels", "phenotypes"):
        second = outcome_of(variant, changed(before, split, content))
        moved[content] = first.scores[..., 1][0, others].tobytes() != second.scores[..., 1][0, others].tobytes()
    assert any(moved.values()) == sent(first.crossings)
    columns = ("site", "sex", "age", "mean_fd")
    series = ("features", "nodes", "series", "public-series")
    pooled = {"features": series, "labels": ("labels", "public-labels"), "phenotypes": columns}
    if any(row["to"] == "centre" for row in first.crossings):
        assert all(sent(first.crossings, *pooled[content]) for content, moves in moved.items() if moves)


@pytest.mark.parametrize(
    "method", [method for method in METHODS.values() if {*method.needs} & {"connectomes", "series"}]
)
def test_what_a_method_on_graphs_or_series_may_send_is_in_the_documentation(method):
    own = " ".join(row for row in DOCUMENTED if f"`{method.name}`" in row or "`training-subjects`" in row)
    for name in method.crossing.tensors:
        assert f"`{name}`" in own or f"`{name.partition('.')[0]}.*`" in own, name


@pytest.mark.parametrize("scope", ["local", "global", "global_cut"])
@pytest.mark.parametrize("embedding", ["pca", "rfe"])
@pytest.mark.parametrize("phenotypes", [("sex", "age"), ("site", "age"), ()])
def test_whatever_an_edge_depends_on_is_in_the_ledger_of_the_graph(scope, embedding, phenotypes):
    inputs = unchanged("random")
    known, own = inputs.phenotypes, inputs.institution == CHANGED
    settings = GraphSettings(k=4, embedding=embedding, embedding_dimensions=3, scope=scope, phenotypes=phenotypes)
    given = {"features": inputs.features[0], "site": known.site, "sex": known.sex, "age": known.age}
    given["labels"] = np.where(inputs.fold == 0, -1, diagnosis_of(inputs))

    def built(**changes):
        columns = given | changes
        features = columns.pop("features")
        return build_graph(features, inputs.institution, **columns, settings=settings, streams=Streams(0))

    plain = built()
    others = ~own
    for name, values in given.items():
        kept = own if values.ndim == 1 else own[:, None]
        other = {"site": 0 * values, "age": 48 - values, "features": 3 - 2 * values}.get(name, 1 - values)
        found = built(**{name: np.where(kept, np.where(values == -1, -1, other), values).astype(values.dtype)})
        same = plain.embedding[others].tobytes() == found.embedding[others].tobytes() and all(
            getattr(plain, part)[others[plain.row]].tobytes() == getattr(found, part)[others[found.row]].tobytes()
            for part in ("row", "column", "weight")
        )
        assert same or sent(plain.crossings, name), name
        if name == "features":
            assert same == (scope == "local")
    assert (plain.crossings == ()) == (scope == "local")
    expected = {"features", *phenotypes} | ({"labels"} if embedding == "rfe" else set())
    assert {row["name"] for row in plain.crossings} == (set() if scope == "local" else expected)


def series(seed):
    random = np.random.default_rng(seed)
    return {f"s{number:02d}": random.standard_normal((40, 11)).astype(np.float32) for number in range(30)}


INSTITUTION = np.arange(30) % 3
FOLD = np.arange(30) // 3 % 5
TANGENT = {
    "tangent, own reference": ("institution", False),
    "tangent, own reference, an institution unseen": ("institution", True),
    "tangent, one reference": ("training", False),
    "tangent, one reference, an institution unseen": ("training", True),
    "tangent, reference of everybody": ("all", False),
    "tangent, identity": ("identity", False),
}
KINDS = ["pearson", "partial", *TANGENT, "combat", "rfe"]
QUIET = {"pearson", "partial", "tangent, own reference", "tangent, identity", "combat"}


def features_of(kind, data):
    """The features of one fold, and the rows of the ledger."""
    ledger = tangent_ledger(11)
    where, training = [f"institution-{code}" for code in INSTITUTION], FOLD != 0
    if kind in TANGENT:
        found = covariances(data, [str(region) for region in range(11)], 0.5, {})
        reference, unseen = TANGENT[kind]
        if reference == "identity":
            return tangent_at_identity(found), ledger.rows()
        if reference == "all":
            return tangent_of_all(found), of_institutions(crossings_of_all(11), sizes_of(INSTITUTION))
        training = training & (INSTITUTION != 0) if unseen else training
        return tangent_of_fold(found, where, training, reference, ledger), ledger.rows()
    whole = connectivity(data, FeatureSettings(kind if kind == "partial" else "pearson"))
    if kind == "combat":
        site = [f"site-{number // 15}" for number in range(30)]
        return harmonised(whole, site, where, training, {}, bayes=False).features, ledger.rows()
    if kind == "rfe":
        chosen = select_features(whole, np.where(training, np.arange(30) // 3 % 2, -1), INSTITUTION, 5)
        return whole[:, chosen.columns], chosen.crossings
    return whole, ledger.rows()


@pytest.mark.parametrize("kind", KINDS)
def test_data_of_another_institution_in_features_are_in_their_ledger(kind):
    plain, other = series(0), series(1)
    own = INSTITUTION == CHANGED
    mixed = {name: (other if own[place] else plain)[name] for place, name in enumerate(sorted(plain))}
    before, rows = features_of(kind, plain)
    after, _ = features_of(kind, mixed)
    moved = before[~own].tobytes() != after[~own].tobytes()
    assert moved == sent(rows) == (kind not in QUIET)
    assert {row["stage"] for row in rows} <= {"features"}


GENERATORS = {
    "fedni, generator": (fedni, InpaintingSettings(rounds=2, local_epochs=2)),
    "fedni, both": (fedni, InpaintingSettings(rounds=2, local_epochs=2, federated="both")),
    "fedni, none": (fedni, InpaintingSettings(rounds=2, local_epochs=2, federated="none")),
    "fedsage": (fedsage, FedSageSettings(rounds=2, local_epochs=1, hidden_fraction=0.2)),
    "fedsage, raw": (fedsage, FedSageSettings(rounds=2, local_epochs=1, hidden_fraction=0.2, exchange="raw")),
    "centroids": (centroids, CentroidSettings(min_group=4)),
    "centroids, of nobody": (centroids, CentroidSettings(min_group=20)),
    "fedsage, alone": (fedsage, FedSageSettings(rounds=0, local_epochs=1, hidden_fraction=0.2)),
}


@pytest.mark.parametrize("case", list(GENERATORS))
def test_data_of_another_institution_in_a_generator_are_in_its_ledger(case):
    module, settings = GENERATORS[case]
    inputs = inpainting_inputs(45, 8)
    features = np.where((inputs.institution == CHANGED)[:, None], -inputs.features, inputs.features)
    first = module.train(inputs, settings, Run())
    second = module.train(replace(inputs, features=features), settings, Run())

    def elsewhere(arrays):
        """What the first institution's new nodes are made by, or of."""
        if module is centroids:
            foreign = arrays["institution"] != 0
            return {name: array[foreign].tobytes() for name, array in arrays.items()}
        if module is fedsage:
            return {name: array.tobytes() for name, array in arrays.items() if name.startswith("0/")}
        return {name: array[0].tobytes() for name, array in arrays.items()}

    data = [row for row in first.crossings if row["name"] not in SIZE_TENSORS]
    assert (elsewhere(first.arrays) != elsewhere(second.arrays)) == sent(data)
    assert {row["stage"] for row in first.crossings} <= {"inpainting"}


def test_the_search_for_odd_scans_and_duplicates_compares_institutions_and_is_in_the_ledger():
    plain, other = series(0), series(1)
    names = sorted(plain)
    people = pd.DataFrame({"subject": names, "site": [f"site-{code}" for code in INSTITUTION]})
    own = INSTITUTION == CHANGED
    mixed = {name: (other if own[place] else plain)[name] for place, name in enumerate(names)}
    before, after = (typicality(data, 0.999)["typicality"].to_numpy()[~own] for data in (plain, mixed))
    (likeness,), (checksums,) = crossings_of_likeness(people, names, 11), crossings_of_checksums(people, names)
    assert (before != after).all()
    assert sent([likeness])
    assert sent([checksums])
    assert (likeness["stage"], likeness["axes"]) == ("cohort", "subjects x connections")
    assert (likeness["bytes"], checksums["bytes"]) == (30 * 55 * 4, 30 * 32)


def test_people_of_an_unknown_site_or_of_one_site_are_compared_too():
    people = pd.DataFrame({"subject": ["a", "b", "c"], "site": [None, "X", None]})
    (row,) = crossings_of_checksums(people, ["a", "b"])
    assert (row["institutions"], row["bytes"]) == ("0 1", 2 * 32)
    (row,) = crossings_of_checksums(people, ["b"])
    assert (row["institutions"], row["bytes"]) == ("0", 32)


def test_inclusion_compares_scans_but_no_public_graphs():
    people = pd.DataFrame({"subject": ["a", "b", "c"], "site": "X", "checksum": ["1", None, "2"]})
    (row,) = crossings_of_inclusion(people, "timeseries")
    assert (row["name"], row["bytes"]) == ("checksum", 2 * 32)
    assert crossings_of_inclusion(people, "tudataset") == ()


@pytest.mark.parametrize("variant", in_tiers(POOLING))
def test_the_same_labels_count_the_same_bytes_in_every_method(variant):
    """Three institutions of 40."""
    rows = {row["name"]: row for row in outcome_of(variant, method_inputs(120, 10)).crossings}
    assert (rows["labels"]["bytes"], rows["labels"]["tensors"]) == (120, 3)
    for column in rows.keys() & ENTRY_BYTES.keys():
        assert rows[column]["bytes"] == 120 * ENTRY_BYTES[column]


def test_a_column_of_another_size_than_everywhere_is_refused():
    ledger = Ledger({"labels": ("subjects",)})
    with pytest.raises(UndeclaredCrossing, match="labels: an entry has 1 bytes everywhere, found 8"):
        ledger.record("labels", (40,), 8, direction="upload", round_index=0, institution=0, subjects=40)


@pytest.mark.parametrize(
    ("name", "dimensions"), [("fedgcn", 15), ("localmlp", 15), ("centralmlp", 15), ("ridge-local", 14)]
)
def test_an_institution_of_as_many_people_as_there_are_features_or_weights_stops_nothing(name, dimensions):
    """Three institutions of 15, one of them unseen."""
    inputs = method_inputs(45, dimensions, split="leave-one-site-out")
    assert outcome_of(name, inputs).crossings


def test_graphs_selections_and_the_search_for_duplicates_go_with_institutions_of_any_size():
    inputs = method_inputs(45, 15)
    known, labels = inputs.phenotypes, diagnosis_of(inputs)
    settings = GraphSettings(k=4, embedding_dimensions=3, scope="global")
    graph = build_graph(
        inputs.features[0], inputs.institution, site=known.site, sex=known.sex, age=known.age, settings=settings,
        streams=Streams(0),
    )  # fmt: skip
    assert graph.crossings
    assert select_features(inputs.features[0], labels, inputs.institution, 15).crossings
    people = pd.DataFrame({"subject": [f"s{number}" for number in range(30)], "site": ["X"] * 15 + ["Y"] * 15})
    assert crossings_of_likeness(people, list(people["subject"]), 6)


def test_central_gcn_sends_phenotypes_for_its_graph_and_features_once():
    inputs = method_inputs(120, 10)
    known = inputs.phenotypes
    graph = build_graph(
        inputs.features[0], inputs.institution, site=known.site, sex=known.sex, age=known.age,
        settings=GraphSettings(k=4, embedding_dimensions=3, scope="global"), streams=Streams(0),
    )  # fmt: skip
    outcome = outcome_of("centralgcn", inputs)
    rows = in_order(outcome.crossings, graph.crossings)
    found = {(row["stage"], row["name"]): (row["bytes"], row["to"]) for row in rows}
    assert found == {
        ("graph", "features"): (120 * 10 * 4, "centre"),
        ("graph", "sex"): (120, "centre"),
        ("graph", "age"): (120 * 8, "centre"),
        ("classifier", "labels"): (120, "centre"),
    }
    assert [row["stage"] for row in rows] == ["graph"] * 3 + ["classifier"]
