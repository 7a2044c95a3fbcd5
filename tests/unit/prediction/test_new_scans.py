"""New patients: the regions and the institution of a model, and where their scans lie."""

from statistics import NormalDist

import numpy as np
import pytest

from brainfed.prediction.command import guesses, predictions, read_patients
from brainfed.prediction.model_file import EVERYBODY, FAR, KeptFile, Part, distance_of, lengths_of_new_scans, spread_of
from brainfed.runtime import UserError, write_arrays
from brainfed.samples import FittedModel, training_moments

VALUES = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)

NAMES = ["left", "middle", "right"]


def about(regions=NAMES, indices=(), **series):
    usual = {"atlas": "three", "header": None, "min_timepoints": 5, "constant_regions": "impute_zero", "by_run": False}
    return {"regions": list(regions), "indices": list(indices), "series": usual | series}


def written(folder, header=None, values=VALUES):
    path = folder / "patient.csv"
    np.savetxt(path, values, fmt="%.9g", delimiter=",", header=",".join(header or []), comments="")
    if header is None:
        path.write_text(path.read_text().lstrip("\n"))
    return path


@pytest.mark.parametrize(
    ("header", "model"),
    [
        (NAMES, about()),
        (["4", "7", "9"], about(indices=(4, 7, 9))),
        (NAMES, about(indices=(4, 7, 9))),
        (None, about(indices=(4, 7, 9))),
        (None, about(regions=("1", "2", "3"))),
    ],
)
def test_the_regions_of_the_model_are_accepted_by_name_by_index_or_without_a_header(tmp_path, header, model):
    (patient,) = read_patients([written(tmp_path, header)], model)
    np.testing.assert_array_equal(patient.series, VALUES)
    assert (patient.runs, patient.silent) == ((), 0)


@pytest.mark.parametrize(
    ("header", "model", "found"),
    [
        (["left", "right", "middle"], about(), "'right' as number 2 in place of 'middle'"),
        (["left", "right", "middle"], about(indices=(4, 7, 9)), "'right' as number 2 in place of 'middle'"),
        (None, about(), "'1' as number 1 in place of 'left'"),
        (NAMES, about(regions=("1", "2", "3")), "'left' as number 1 in place of '1'"),
    ],
)
def test_other_regions_are_refused(tmp_path, header, model, found):
    with pytest.raises(
        UserError, match=f"expected the 3 regions of the model's atlas 'three' in their order, found {found}"
    ):
        list(read_patients([written(tmp_path, header)], model))


def test_a_silent_region_is_counted_or_refused_as_in_training(tmp_path):
    path = written(tmp_path, NAMES, VALUES * np.array([1, 0, 1]))
    (patient,) = read_patients([path], about())
    assert patient.silent == 1
    with pytest.raises(
        UserError, match="expected a signal in all 3 regions, as the training subjects had, found 1 without"
    ):
        list(read_patients([path], about(constant_regions="drop_subject")))


def test_a_shard_of_the_same_atlas_is_read_with_its_runs(tmp_path):
    path = tmp_path / "shard-00.safetensors"
    held = {"atlas": "three", "regions": NAMES, "runs": {"b": [4, 5]}}
    write_arrays(path, {"b": VALUES, "a": 2 * VALUES}, held)
    first, second = read_patients([path], about(by_run=True))
    assert (first.name, first.runs, second.runs) == (f"{path}:a", (), (4, 5))
    assert [one.runs for one in read_patients([path], about())] == [(), ()]
    with pytest.raises(UserError, match="expected region series of atlas 'four', found 'three'"):
        list(read_patients([path], about(atlas="four")))


@pytest.mark.parametrize(
    ("metadata", "values", "found"),
    [
        ({}, VALUES, "names of the regions in the file's metadata, found none; let the workflow"),
        ({"regions": NAMES[:2]}, VALUES[:, :2], "3 regions of .* in their order, found 2 regions; extract"),
        ({"regions": [*NAMES, "rear"]}, VALUES, "3 regions of .* in their order, found 4 regions; extract"),
        ({"regions": NAMES}, VALUES[:, :2], "time points x 3 regions, .*, found 9 x 2; extract"),
        ({"regions": NAMES}, VALUES[0], "time points x 3 regions, .*, found 3; extract"),
    ],
)
def test_a_shard_without_the_models_regions_is_refused(tmp_path, metadata, values, found):
    path = tmp_path / "shard-00.safetensors"
    write_arrays(path, {"a": values}, {"atlas": "three"} | metadata)
    with pytest.raises(UserError, match=f"shard-00.safetensors.*: expected .*{found}"):
        list(read_patients([path], about()))


NONE = FittedModel({})

APART = FittedModel({}, {"mean": np.zeros((2, 3))})


def model(own, drawn="sites", institutions=("oslo", "paris")):
    about = {"drawn": drawn, "institutions": list(institutions), "folds": 2}
    return KeptFile(about, {EVERYBODY: Part(APART if own else NONE, NONE)})


def test_a_site_of_a_model_that_scales_sites_apart_is_taken():
    assert predictions(model(own=True), [], institution="oslo").empty
    assert predictions(model(own=False), []).empty


@pytest.mark.parametrize("name", [None, "rome"])
def test_a_site_that_is_missing_or_unknown_is_refused_with_those_that_exist(name):
    with pytest.raises(UserError, match=rf"found {'none' if name is None else repr(name)}; known: oslo, paris\.$"):
        predictions(model(own=True), [], institution=name)


@pytest.mark.parametrize("name", ["oslo", "rome"])
def test_it_is_refused_where_all_institutions_are_scaled_alike(name):
    with pytest.raises(UserError, match=f"--institution: expected none, .* alike, found '{name}'; leave it out"):
        predictions(model(own=False), [], institution=name)


@pytest.mark.parametrize("name", [None, "oslo"])
@pytest.mark.parametrize("drawn", ["random", "consecutive"])
def test_institutions_that_were_drawn_are_said_to_be_those_of_no_patient(drawn, name):
    made_up = model(True, drawn, ("institution-1", "institution-2"))
    with pytest.raises(UserError) as refused:
        predictions(made_up, [], institution=name)
    assert f"`split: {{institutions: {drawn}}}` made them up" in str(refused.value)
    assert "train this one with `split: {institutions: sites}`" in str(refused.value)
    assert predictions(made_up, [], institution="institution-2").empty


@pytest.mark.parametrize(("auc", "said"), [(0.61, True), (0.63, False), (float("nan"), True)])
def test_a_model_that_is_no_better_than_guessing_is_named(auc, said):
    kept = KeptFile({"held_out": {"auc": auc, "guessing": 0.62}}, {})
    assert ("its scores say nothing" in guesses(kept)) == said
    assert guesses(KeptFile({"held_out": None}, {})) == guesses(KeptFile({}, {})) == ""


DIMENSIONS, FOLDS = 3000, 5

MARK = NormalDist().inv_cdf(0.95)
"""Beyond it lie 5 of 100 numbers of a normal distribution."""


def z_scores(rows, training):
    mean, deviation = training_moments(rows, training)
    return np.linalg.norm((rows - mean) / deviation, axis=1)


def by_fold(rows):
    """Lengths of held-out and of training subjects of one institution, by the models of folds scaled on its own."""
    fold = np.arange(len(rows)) % FOLDS
    every = [z_scores(rows, fold != number) for number in range(FOLDS)]
    held_out = np.concatenate([lengths[fold == number] for number, lengths in enumerate(every)])
    training = np.concatenate([lengths[fold != number] for number, lengths in enumerate(every)])
    return held_out, training


def lengths(rows):
    """Lengths that held-out subjects of one institution would have by the model of all."""
    return lengths_of_new_scans(*by_fold(rows), FOLDS, len(rows))


def scans(rng, count):
    """Scans that differ in the size of all features, as those of people do, among independent ones."""
    return rng.standard_normal((count, DIMENSIONS)) * np.exp(0.1 * rng.standard_normal((count, 1)))


@pytest.fixture(scope="module")
def found():
    """Distances of new scans of institutions of 12, 25 and 60 subjects; the same by held-out subjects as they are."""
    distances, plain = [[] for _ in range(3)], [[] for _ in range(3)]
    for draw in range(12):
        rng = np.random.default_rng(draw)
        training = [scans(rng, count) for count in (12, 25, 60)]
        spread = spread_of([lengths(rows) for rows in training])
        for code, rows in enumerate(training):
            new = scans(rng, 40)
            every = z_scores(np.concatenate([rows, new]), np.arange(len(rows) + len(new)) < len(rows))
            distances[code] += [distance_of(length, spread, code) for length in every[len(rows) :]]
            plain[code] += list((every[len(rows) :] - by_fold(rows)[0].mean()) / spread["sd"])
    return [np.array(each) for each in distances], [np.array(each) for each in plain]


def test_new_scans_lie_about_zero_at_small_and_large_institutions(found):
    assert max(abs(own.mean()) for own in found[0]) < 0.2
    assert found[1][0].mean() < -0.4


def test_new_scans_lie_beyond_a_mark_as_often_as_it_says(found):
    every = np.concatenate(found[0])
    assert 0.03 < (every > MARK).mean() < 0.08
    assert (np.abs(every) > FAR).mean() < 0.015


def test_marks_of_the_training_subjects_themselves_would_be_passed_by_nearly_every_new_scan():
    rng = np.random.default_rng(1)
    rows, new = rng.standard_normal((25, DIMENSIONS)), rng.standard_normal((40, DIMENSIONS))
    every = z_scores(np.concatenate([rows, new]), np.arange(65) < 25)
    assert (every[25:] > np.quantile(every[:25], 0.95)).mean() > 0.9
    spread = spread_of([lengths(rows)])
    assert np.mean([distance_of(length, spread, None) > 3 for length in every[25:]]) < 0.1


def test_a_place_without_held_out_subjects_has_the_mean_of_the_others():
    rows = np.random.default_rng(2).standard_normal((20, 50))
    spread = spread_of([lengths(rows), lengths_of_new_scans(np.empty(0), np.empty(0), FOLDS, 0)])
    assert spread["means"][1] == pytest.approx(spread["means"][0])
    assert spread["subjects"] == 20


def test_scans_beyond_are_counted():
    held_out = np.array([*np.tile([9.0, 11.0], 20), 40.0])
    assert spread_of([lengths_of_new_scans(held_out, held_out, 5, 41)])["beyond"] == 1


def test_a_model_that_scales_all_alike_has_one_mean_for_every_institution():
    spread = {"means": [10.0], "sd": 2.0}
    assert distance_of(14.0, spread, None) == distance_of(14.0, spread, 3) == 2.0
    assert distance_of(14.0, {"means": [10.0, 20.0], "sd": 2.0}, 1) == -3.0
