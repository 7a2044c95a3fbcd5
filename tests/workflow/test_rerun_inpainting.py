"""Generators and fused graphs are shared, and exactly what a change touches runs again."""

from collections import Counter

import pytest

from workflow.project import Project, new_project

pytestmark = [pytest.mark.full("Two whole runs of three generators."), pytest.mark.workflow]

SHORT = {"rounds": 1, "local_epochs": 1}
VARIANTS = {
    "plain": {"method": "fedgcn", **SHORT},
    "whole": {"method": "fedni", **SHORT},
    "faster": {"method": "fedni", **SHORT, "learning_rate": 0.01},
    "binary": {"method": "fedni", **SHORT, "fusing": {"edges": "binary"}},
}


def settings(**whole):
    """The config's keys, with settings of the variant `whole` that differ."""
    variants = VARIANTS | {"whole": VARIANTS["whole"] | whole}
    return {
        "inpainting": SHORT,
        "variants": variants,
        "experiments": {"methods": {"variants": ["ridge-central", *variants], "reference": "ridge-central"}},
    }


@pytest.fixture(scope="module")
def inpainted(tmp_path_factory) -> Project:
    """A tiny project after a whole run of its tables."""
    project = new_project(tmp_path_factory.mktemp("inpainted"), **settings())
    project.snakemake("--cores", "2", "tables")
    return project


@pytest.fixture
def project(inpainted, tmp_path) -> Project:
    """A copy of the finished project to change."""
    return inpainted.copy(tmp_path / "project")


def test_three_variants_share_one_generator_and_two_of_them_its_fused_graph(inpainted):
    results = inpainted.folder / "results" / "tiny"
    assert len(list(results.glob("inpainting/*/repeat-0/all/generator.safetensors"))) == 1
    assert len(list(results.glob("fused/*/repeat-0/all.safetensors"))) == 2
    assert len(list(results.glob("graphs/*/repeat-0/all.safetensors"))) == 1
    assert {path.suffix for path in results.glob("inpainting/**/[!.]*") if path.is_file()} == {
        ".safetensors",
        ".parquet",
        ".json",
    }


def test_a_finished_project_has_nothing_to_do(project):
    assert project.planned() == Counter()


def test_a_setting_of_the_classifier_trains_no_generator(project):
    project.configure(**settings(learning_rate=0.1))
    assert project.planned() == Counter(train_method=1, score_experiment=1)


def test_a_weight_of_the_loss_trains_a_generator_and_builds_no_graph(project):
    project.configure(**settings(inpainting={"alpha": 0.5}))
    assert project.planned() == Counter(train_generator=1, fuse_graph=1, train_method=1, score_experiment=1)


def test_a_setting_of_fusing_trains_no_generator(project):
    project.configure(**settings(fusing={"nodes": "random"}))
    assert project.planned() == Counter(fuse_graph=1, train_method=1, score_experiment=1)


def test_another_k_computes_no_features(project):
    project.configure(**settings(graph={"k": 3}))
    assert project.planned() == Counter(
        build_graph=1, train_generator=1, fuse_graph=1, train_method=1, score_experiment=1
    )


def test_permuted_labels_train_no_generator(project):
    experiment = settings()["experiments"]["methods"] | {"labels": "permuted"}
    project.configure(**settings() | {"experiments": {"methods": experiment}})
    assert project.planned() == Counter(train_method=5, score_experiment=1)


def test_the_inductive_protocol_trains_a_generator_a_fold(project):
    project.configure(**settings(), protocol="inductive")
    assert project.planned() == Counter(
        build_graph=2, train_generator=2, fuse_graph=4, train_method=5, score_experiment=1
    )


def test_an_edit_of_fusing_reruns_fused_graphs_and_their_readers(project):
    project.edit_function("brainfed/inpainting/_fusing.py", "fuse")
    assert project.planned() == Counter(fuse_graph=2, train_method=3, score_experiment=1)


def test_an_edit_of_the_masks_reruns_the_generator_and_the_steps_after_it(project):
    project.edit_function("brainfed/inpainting/fedni/_masking.py", "draw_mask")
    assert project.planned() == Counter(train_generator=1, fuse_graph=2, train_method=3, score_experiment=1)


def test_an_edit_of_the_classifier_on_fused_graphs_reruns_it_alone(project):
    project.edit_function("brainfed/samples/_inputs.py", "with_generated")
    assert project.planned() == Counter(train_method=3, score_experiment=1)


def test_an_unseen_site_trains_no_generator_but_may_be_scored_under_the_inductive_protocol(tmp_path):
    short = {"inpainting": SHORT, **SHORT}
    variants = {"whole": {"method": "fedni", **SHORT}, "sage": {"method": "fedsage-plus", **short}}
    experiment = {"variants": ["ridge-central", *variants], "protocol": "transductive"}
    sites = {"split": {"validation": "leave_one_site_out", "repeats": 1}, "inpainting": SHORT, "variants": variants}
    project = new_project(tmp_path, **sites, experiments={"methods": experiment})
    refused = project.snakemake("-n", "tables", check=False)
    assert refused.returncode != 0
    assert (
        "variants.whole: the generator of method 'fedni' would be trained on the site"
        in refused.stdout + refused.stderr
    )
    project.configure(**sites, experiments={"methods": experiment | {"protocol": "inductive"}})
    planned = project.planned()
    assert (planned["train_generator"], planned["fuse_graph"]) == (4, 4)


def test_every_source_of_new_nodes_runs_where_sites_are_institutions(tmp_path):
    methods = ("fedni", "fedsage-plus", "fedni-centroids")
    own = {"fedni": {"inpainting": SHORT}, "fedsage-plus": {"inpainting": SHORT}, "fedni-centroids": {}}
    variants = {f"my-{name}": {"method": name, **SHORT, **own[name]} for name in methods}
    experiment = {"variants": ["fedgcn", *variants], "reference": "fedgcn"}
    project = new_project(
        tmp_path, split={"institutions": "sites", "repeats": 1}, variants=variants, experiments={"methods": experiment}
    )
    said = project.snakemake("--cores", "2", "tables")
    assert (said.stdout + said.stderr).count("the numbers tend to be too high") == 2
