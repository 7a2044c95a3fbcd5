"""What a change of a BIDS derivative runs again: the shard that it lies in, nobody else's scans."""

import pytest

from support.files.bids_dataset import Derivative, write_atlas
from workflow.project import new_project

pytestmark = pytest.mark.workflow

TREE, ATLAS = "data/derivatives/fmriprep", "data/atlas"
SUBJECTS = [f"{number:02d}" for number in range(1, 13)]


def write_rows(tree, subjects):
    tree.write_participants(
        *(
            f"{name}\t{'ab'[int(name) % 2]}\t{20 + int(name)}\tmale\t{('patient', 'control')[int(name) // 2 % 2]}"
            for name in subjects
        )
    )


@pytest.fixture(scope="module")
def extracted(tmp_path_factory):
    """Twelve made-up subjects in three shards, their series extracted."""
    folder = tmp_path_factory.mktemp("lab")
    tree = Derivative(folder / TREE)
    for name in SUBJECTS:
        tree.write_run(name, seed=int(name))
    write_rows(tree, SUBJECTS)
    write_atlas(folder / ATLAS)
    cohort = {
        "source": "bids",
        "atlas": "three",
        "parcellation": f"{ATLAS}/atlas.nii.gz",
        "labels": f"{ATLAS}/atlas.tsv",
        "phenotype": f"{TREE}/participants.tsv",
        "shards": 3,
        "bids": {"derivatives": TREE, "space": "T1w"},
    }
    project = new_project(folder, subjects=0, cohorts={"lab": cohort})
    project.snakemake("--cores", "2", "tables", "--until", "extract_runs", "ingest_phenotypes")
    assert project.planned()["extract_runs"] == 0
    return project


def test_a_new_subject_runs_one_shard_again(extracted, tmp_path):
    project = extracted.copy(tmp_path / "lab")
    tree = Derivative(project.folder / TREE)
    tree.write_run("90", seed=90)
    write_rows(tree, [*SUBJECTS, "90"])
    planned = project.planned()
    assert (planned["extract_runs"], planned["ingest_phenotypes"]) == (1, 1)


def test_another_run_of_one_subject_runs_its_shard_again(extracted, tmp_path):
    project = extracted.copy(tmp_path / "lab")
    Derivative(project.folder / TREE).write_run("05", seed=500)
    assert project.planned()["extract_runs"] == 1


def test_a_new_phenotype_leaves_the_scans_alone(extracted, tmp_path):
    project = extracted.copy(tmp_path / "lab")
    table = project.folder / TREE / "participants.tsv"
    table.write_text(table.read_text().replace("\t25\t", "\t26\t"))
    planned = project.planned()
    assert (planned["extract_runs"], planned["ingest_phenotypes"]) == (0, 1)
