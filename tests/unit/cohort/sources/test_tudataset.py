"""Public graphs as a cohort: their download, their rows, their files, and a sentence for each mistake."""

import pytest

from brainfed.checking._project import check_cohort
from brainfed.cohort import class_words
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.settings import CohortSettings
from brainfed.cohort.sources import fetch_data_sets, list_cohort
from brainfed.configuration import ProjectSettings, validate
from brainfed.configuration.planning import make_plan
from brainfed.runtime import UserError
from support.files.tu_data_set import write_data_set, write_lines


def settings(folder, *names: str, **changes: object) -> CohortSettings:
    values = {
        "source": "tudataset",
        "target": "class",
        "classes": ["inactive", "active"],
        "tudataset": {"folder": str(folder), "names": list(names)},
    }
    return validate(CohortSettings, values | changes, "cohort")


def test_a_graph_is_listed_with_its_data_set_as_site(tmp_path):
    write_data_set(tmp_path, "TOY", 12)
    write_data_set(tmp_path, "OTHER", 10, labels=(0, 1))
    listing = list_cohort("toys", settings(tmp_path, "TOY", "OTHER"))
    assert [one.subject for one in listing.subjects][:2] == ["OTHER-00001", "OTHER-00002"]
    assert [one.subject for one in listing.subjects][-1] == "TOY-00012"
    assert [one.subject for one in listing.subjects] == sorted(one.subject for one in listing.subjects)
    assert {one.site for one in listing.subjects} == {"TOY", "OTHER"}


def test_labels_are_classes_in_ascending_order(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 4)
    write_lines(raw / "TOY_graph_labels.txt", [7, -3, -3, 7])
    held = settings(tmp_path, "TOY")
    people = ingest(list_cohort("toys", held).tables, held, {})
    assert people["diagnosis"].tolist() == [1, 0, 0, 1]
    assert people["age"].isna().all()
    assert people["sex"].isna().all()
    assert people["has_series"].all()


def test_the_raw_folder_may_be_absent(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 6)
    for path in raw.iterdir():
        path.rename(raw.parent / path.name)
    raw.rmdir()
    assert len(list_cohort("toys", settings(tmp_path, "TOY")).subjects) == 6


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([1, 1, 1, 1], "expected graphs of two classes or more, found 1 class"),
        ([1, 2, 3, 1], "expected at most 2 different labels, as many as `classes` has names, found 3 (1, 2, 3)"),
        ([1, 2, "x", 1], "line 3: expected the label of a graph, an integer, found 'x'"),
        ([1, 2, 0.5, 1], "line 3: expected the label of a graph, an integer, found '0.5'"),
        ([1, 2, "nan", 1], "line 3: expected the label of a graph, an integer, found 'nan'"),
        ([], "found no graph"),
    ],
)
def test_bad_labels_get_a_sentence_before_any_job_and_in_the_check(tmp_path, labels, words):
    raw = write_data_set(tmp_path, "TOY", 4)
    write_lines(raw / "TOY_graph_labels.txt", labels)
    held = settings(tmp_path, "TOY")
    with pytest.raises(UserError) as refused:
        list_cohort("toys", held)
    assert words in str(refused.value)
    (finding,) = check_cohort("toys", held).findings
    assert finding.severity == "stops"
    assert words in finding.sentence


def test_a_misspelt_data_set_is_recognised(tmp_path):
    write_data_set(tmp_path, "MUTAG", 4)
    for wrong in ("mutag", "MUTGA"):
        with pytest.raises(UserError, match=rf"data set {wrong}, found none \(did you mean MUTAG\?\)"):
            list_cohort("toys", settings(tmp_path, wrong))


def test_a_class_without_a_graph_is_refused(tmp_path):
    write_data_set(tmp_path, "TOY", 6)
    with pytest.raises(UserError, match="expected a graph of every class in `classes`, found none of 'third'"):
        list_cohort("toys", settings(tmp_path, "TOY", classes=["first", "second", "third"]))


def test_labels_that_are_no_text_get_a_sentence(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 4)
    (raw / "TOY_graph_labels.txt").write_bytes(b"1\n\xff\xfe\n")
    with pytest.raises(UserError, match="expected a text file with a label a line, found one that cannot be read"):
        list_cohort("toys", settings(tmp_path, "TOY"))


def test_a_byte_order_mark_is_no_label(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 4)
    (raw / "TOY_graph_labels.txt").write_bytes(b"\xef\xbb\xbf1\n2\n1\n2\n")
    assert len(list_cohort("toys", settings(tmp_path, "TOY")).subjects) == 4


def test_an_absent_file_names_the_command_that_fetches(tmp_path):
    raw = write_data_set(tmp_path, "TOY", 4)
    (raw / "TOY_A.txt").unlink()
    held = settings(tmp_path, "TOY", "GONE")
    with pytest.raises(
        UserError,
        match=r"TOY_A\.txt of the data set TOY, found none; fix `tudataset`, or run `snakemake fetch_tudatasets",
    ):
        list_cohort("toys", held)
    assert len(check_cohort("toys", held).findings) == 2


def test_the_check_counts_graphs(tmp_path):
    write_data_set(tmp_path, "TOY", 14)
    checked = check_cohort("toys", settings(tmp_path, "TOY"))
    assert not checked.findings
    assert len(checked.people) == 14
    assert checked.sites == ("TOY",)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target": "diagnosis"}, "expected class with source tudataset and with no other source, found diagnosis"),
        ({"classes": []}, "expected names of the classes of the graphs"),
        ({"tudataset": {"names": ["A", "A"]}}, "expected every data set once, found 'A' twice"),
        ({"tudataset": {"names": ["../A"]}}, "expected the name of a data set, found '../A'"),
        ({"rows": {"site": ["TOY"]}}, "rows: expected none with source tudataset"),
        ({"unlabelled": "keep"}, "unlabelled: expected none with source tudataset"),
        ({"exclude": {"mean_fd": 0.5}}, "exclude: expected none with source tudataset"),
        ({"phenotype": "table.csv"}, "phenotype: expected none with source tudataset"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(tmp_path, changes, words):
    with pytest.raises(UserError) as refused:
        settings(tmp_path, "TOY", **changes)
    assert words in str(refused.value)


def test_the_class_of_graphs_is_for_graphs():
    with pytest.raises(UserError, match="found class with source simulate"):
        validate(CohortSettings, {"source": "simulate", "target": "class"}, "cohort")


def test_a_cohort_without_data_sets_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"needs `tudataset\.names`, found none"):
        list_cohort("toys", settings(tmp_path))


def test_words_speak_of_graphs():
    words = class_words("class", ("inactive", "active"))
    assert words.listed == "active graphs and inactive graphs"
    assert words.singular[1] == "active graph"
    assert words.short == {0: "inactive", 1: "active"}


def project(folder, *variants: str, **changes: object) -> ProjectSettings:
    values = {
        "project": "toys",
        "cohorts": {
            "toys": {
                "source": "tudataset",
                "target": "class",
                "classes": ["inactive", "active"],
                "tudataset": {"folder": str(folder), "names": ["TOY"]},
            }
        },
        "experiments": {"methods": {"reference": "selftrain", "variants": list(variants)}},
    }
    return validate(ProjectSettings, values | changes, "config")


def test_a_method_of_features_is_refused_for_graphs(tmp_path):
    with pytest.raises(UserError, match=r"expected variants that classify graphs for cohort 'toys'.*'ridge-central'"):
        make_plan(project(tmp_path, "selftrain", "ridge-central"))


def groups(folder, split: dict[str, object], *variants: str, **changes: object) -> ProjectSettings:
    """A project of two data sets."""
    cohort = project(folder).cohorts["toys"]
    held = {"source": "tudataset", "target": "class", "classes": list(cohort.classes)}
    held["tudataset"] = {"folder": str(folder), "names": ["OTHER", "TOY"]}
    return project(folder, *variants, cohorts={"toys": held}, split=split, **changes)


@pytest.mark.parametrize(
    "split", [{"institutions": "random"}, {"institutions": "sites", "validation": "leave_one_site_out"}]
)
def test_data_sets_with_other_features_are_not_mixed(tmp_path, split):
    with pytest.raises(UserError, match="expected `institutions: sites` and no site left out for cohort 'toys'"):
        make_plan(groups(tmp_path, split, "selftrain"))


def test_data_sets_with_other_features_are_not_pooled(tmp_path):
    with pytest.raises(UserError, match=r"expected no training on pooled data for cohort 'toys'.*'central-gin'"):
        make_plan(groups(tmp_path, {"institutions": "sites"}, "selftrain", "central-gin"))
    plan = make_plan(groups(tmp_path, {"institutions": "sites"}, "majority", "selftrain", "gcfl"))
    assert len(plan.experiments["methods"].variants) == 3


@pytest.mark.parametrize("key", ["connectomes", "features"])
def test_settings_of_connectomes_are_refused_for_graphs(tmp_path, key):
    changed = {"connectomes": {"density": 0.2}, "features": {"fisher_z": True}}[key]
    held = project(tmp_path, "selftrain", "thin", variants={"thin": {"method": "gcfl", key: changed}})
    with pytest.raises(UserError, match=rf"variants\.thin\.{key}: expected none for cohort 'toys'"):
        make_plan(held)


def test_without_a_list_of_variants_graphs_get_those_that_classify_them(tmp_path):
    names = {variant.name for variant in make_plan(project(tmp_path)).experiments["methods"].variants}
    assert {"majority", "selftrain", "fedavg-gin", "fedprox-gin", "gcfl", "gcfl-plus", "central-gin"} == names


def test_a_download_without_a_network_gets_one_sentence(tmp_path, monkeypatch):
    def unreachable(*_):
        raise OSError("no route")

    stub = type("Stub", (), {"url": "https://x", "__init__": unreachable})
    monkeypatch.setattr("torch_geometric.datasets.TUDataset", stub)
    with pytest.raises(UserError, match="TOY: expected the data set from https://x, could not fetch it"):
        fetch_data_sets(["TOY"], tmp_path, lambda *_: None)


def test_a_download_that_stopped_half_way_is_made_again(tmp_path, monkeypatch):
    raw = write_data_set(tmp_path, "TOY", 4)
    (raw / "TOY_graph_labels.txt").unlink()
    asked = []
    monkeypatch.setattr(
        "torch_geometric.datasets.TUDataset.__init__", lambda _, folder, name: asked.append((name, raw.exists()))
    )
    fetch_data_sets(["TOY"], tmp_path, lambda *_: None)
    assert asked == [("TOY", False)], "what was left is removed, else PyTorch Geometric takes it for whole"


def test_a_download_brings_only_what_is_missing(tmp_path, monkeypatch):
    write_data_set(tmp_path, "HERE", 4)
    asked = []
    monkeypatch.setattr("torch_geometric.datasets.TUDataset.__init__", lambda _, folder, name: asked.append(name))
    fetch_data_sets(["HERE", "GONE"], tmp_path, lambda *_: None)
    assert asked == ["GONE"]
