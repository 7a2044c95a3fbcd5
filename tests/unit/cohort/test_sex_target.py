"""Under the target sex no input of a method holds the target."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from brainfed.cohort._classes import CLASS_WORDS
from brainfed.cohort.phenotype import ingest
from brainfed.cohort.settings import CodeSettings, CohortSettings, ColumnSettings, SplitSettings
from brainfed.cohort.sources import list_cohort
from brainfed.cohort.splits import split
from brainfed.graphs import GraphSettings, build_graph, known_phenotypes
from brainfed.inpainting import InpaintingSettings
from brainfed.inpainting.fedni._adversarial_step import new_generator
from brainfed.methods.baselines.declaration import PhenotypeSettings
from brainfed.methods.baselines.train import phenotype
from brainfed.reporting._pictures import read_captions
from brainfed.runtime import Streams, UserError, write_arrays, write_table
from brainfed.runtime.jobs import Run
from brainfed.samples import assemble, inpainting_inputs, phenotypes_of, read_people

COUNT = 240
SITES = tuple(enumerate("aabbcc"))
AS_SEX = CohortSettings(source="timeseries", target="sex")
AS_DIAGNOSIS = CohortSettings(
    source="timeseries",
    columns=ColumnSettings(diagnosis="sex"),
    codes=CodeSettings(diagnosis={"male": "patient", "female": "control"}),
)
"""The same labels with sex as a phenotype."""


def artefacts(folder, settings):
    """Participants and split of a cohort with age, site and diagnosis independent of sex."""
    rng = np.random.default_rng(5)
    table = pd.DataFrame(
        {
            "participant_id": [f"s{number:03d}" for number in range(COUNT)],
            "site": rng.choice(["a", "b", "c"], COUNT),
            "age": rng.uniform(8, 40, COUNT).round(1),
            "sex": rng.choice(["male", "female"], COUNT),
            "diagnosis": rng.choice(["patient", "control"], COUNT),
        }
    )
    table.to_csv(folder / "table.csv", index=False)
    people = ingest(folder / "table.csv", settings, {})
    included = pd.DataFrame({"subject": people["subject"], "included": True, "twin_group": people["subject"]})
    write_table(folder / "participants", people)
    write_table(folder / "split", split(included, people, SplitSettings(count=2, folds=4), Streams(1), settings.target))
    return {"split": folder / "split", "participants": folder / "participants"}


def baseline_auc(folder, settings):
    paths = artefacts(folder, settings)
    inputs, truth = assemble(**paths, features=[], graphs=[], labels="true", streams=Streams(1))
    scores = phenotype(inputs, PhenotypeSettings(), Run()).scores[..., 1]
    return np.mean([roc_auc_score(truth[inputs.tested(f)], scores[f, inputs.tested(f)]) for f in range(4)])


def test_the_phenotype_baseline_predicts_by_chance_under_the_target_sex(tmp_path):
    assert abs(baseline_auc(tmp_path, AS_SEX) - 0.5) < 0.12
    assert baseline_auc(tmp_path, AS_DIAGNOSIS) == 1.0


def test_labels_are_male_against_female(tmp_path):
    paths = artefacts(tmp_path, AS_SEX)
    people = read_people(**paths).set_index("subject")
    known = pd.read_csv(tmp_path / "table.csv").set_index("participant_id").loc[people.index]
    assert people["diagnosis"].eq(1).tolist() == known["sex"].eq("male").tolist()


def test_sex_is_compared_by_no_graph_and_predicted_by_no_generator(tmp_path):
    paths = artefacts(tmp_path, AS_SEX)
    people = read_people(**paths)
    phenotypes = phenotypes_of(people)
    assert set(phenotypes.sex) == {-1}
    columns = {"site": phenotypes.site, "sex": phenotypes.sex, "age": phenotypes.age}
    settings = known_phenotypes(GraphSettings(k=4), **columns)
    assert settings.phenotypes == ("age",)
    features = np.random.default_rng(2).standard_normal((COUNT, 6)).astype(np.float32)
    institution = people["institution"].factorize(sort=True)[0]
    graphs = [
        build_graph(features, institution, **columns, settings=compared, streams=Streams(1))
        for compared in (settings, GraphSettings(k=4, phenotypes=("age",)))
    ]
    assert graphs[0].weight.tobytes() == graphs[1].weight.tobytes()
    subjects = {"subjects": list(people["subject"])}
    arrays = {"row": graphs[0].row, "column": graphs[0].column, "weight": graphs[0].weight}
    write_arrays(tmp_path / "graph", arrays, subjects)
    write_arrays(tmp_path / "features", {"features": features}, subjects)
    inputs = inpainting_inputs(
        **paths, features=tmp_path / "features", graph=tmp_path / "graph", graph_settings=GraphSettings(k=4),
        protocol="transductive", part="all", streams=Streams(1),
    )  # fmt: skip
    assert not new_generator(inputs, InpaintingSettings()).sex


def test_a_graph_of_the_phenotype_sex_compares_images_alone():
    unknown = np.full(5, -1)
    settings = GraphSettings(phenotypes=("sex",))
    assert known_phenotypes(settings, site=unknown, sex=unknown, age=np.full(5, np.nan)).phenotypes == ()
    some = np.array([-1, -1, 0, 1, 1])
    assert known_phenotypes(settings, site=unknown, sex=some, age=np.full(5, np.nan)) == settings


def test_messages_and_captions_are_in_the_words_of_the_target(tmp_path):
    ids = [f"s{number}" for number in range(12)]
    included = pd.DataFrame({"subject": ids, "included": True, "twin_group": ids})
    people = pd.DataFrame({"subject": ids, "site": "a", "diagnosis": pd.array([1] * 11 + [0], dtype="Int8")})
    with pytest.raises(UserError, match="needs at least 2 different females for 2 folds, it has 1"):
        split(included, people, SplitSettings(count=1, folds=2), Streams(1), "sex")
    caption = tmp_path / "effects.rst"
    caption.write_text('{{ diagnosis or "diagnosis" }}: {{ patients or "patients" }} against a\nshuffled control\n')
    read = {target: read_captions([caption], words)["effects"] for target, words in CLASS_WORDS.items()}
    assert read["sex"] == "sex: males against a shuffled control"
    assert read["diagnosis"] == "diagnosis: patients against a shuffled control"


def test_a_site_of_excluded_subjects_is_no_fold_of_leave_one_site_out(tmp_path):
    table = tmp_path / "table.csv"
    rows = [f"s{n},{site},20,{('male', 'female')[n % 2]},{'x' if site == 'a' else 'control'}" for n, site in SITES]
    table.write_text("\n".join(["participant_id,site,age,sex,diagnosis", *rows]))
    settings = CohortSettings(
        source="timeseries",
        target="sex",
        phenotype=str(table),
        series=str(tmp_path / "{subject}.1D"),
        regions=2,
        codes=CodeSettings(diagnosis={"x": "excluded", "control": "control"}),
    )
    for n, _ in SITES:
        (tmp_path / f"s{n}.1D").touch()
    listing = list_cohort("c", settings)
    people = ingest(table, settings, listing.absences)
    assert people["diagnosis"].isna().tolist() == [site == "a" for _, site in SITES]
    included = people[["subject"]].assign(included=people["has_series"], twin_group=people["subject"], reason="")
    drawn = split(included, people, SplitSettings(validation="leave_one_site_out"), Streams(1), settings.target)
    assert listing.labelled_sites == ("b", "c")
    assert set(drawn["fold"]) == set(range(len(listing.labelled_sites)))
