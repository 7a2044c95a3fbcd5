"""Region series of new patients: the regions must be the model's."""

import numpy as np
import pytest

from brainfed.prediction.patients import read_patients
from brainfed.runtime.artefacts import write_arrays
from brainfed.runtime.errors import UserError

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
