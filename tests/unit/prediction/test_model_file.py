"""The file of a kept model: what is written is read, and other files are refused."""

import numpy as np
import pytest

from brainfed.prediction.model_file import EVERYBODY, KeptFile, Part, part_name, read_model, write_model
from brainfed.runtime import UserError, write_arrays
from brainfed.samples import FittedModel

KEPT = KeptFile(
    {"method": "fedmlp", "regions": ["a", "b"]},
    {
        part: Part(
            FittedModel({"weights": np.eye(2) * number}, {"mean": np.full((3, 2), number)}),
            FittedModel({"whitening": np.eye(2)}) if number else FittedModel({}),
        )
        for number, part in enumerate((EVERYBODY, part_name(0)))
    },
)


def test_a_model_comes_back_as_it_was(tmp_path):
    write_model(tmp_path / "model.safetensors", KEPT)
    found = read_model(tmp_path / "model.safetensors")
    assert {key: found.about[key] for key in KEPT.about} == KEPT.about
    assert found.parts.keys() == KEPT.parts.keys()
    for part, held in KEPT.parts.items():
        for role in ("model", "reference"):
            for whose in ("shared", "own"):
                wanted, own = (getattr(getattr(one, role), whose) for one in (held, found.parts[part]))
                assert wanted.keys() == own.keys()
                assert all(np.array_equal(wanted[name], own[name]) for name in wanted)
    assert found.parts[EVERYBODY].needs_institution


def test_equal_models_are_equal_bytes(tmp_path):
    for name in ("one", "two"):
        write_model(tmp_path / name, KEPT)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_another_file_is_refused(tmp_path):
    write_arrays(tmp_path / "features.safetensors", {"features": np.eye(2)}, {"subjects": ["a", "b"]})
    with pytest.raises(UserError, match="expected a kept model of format 2, found another file"):
        read_model(tmp_path / "features.safetensors")


@pytest.mark.parametrize("name", ["features", "everybody/model/shared/layer/weights", "everybody/graph/shared/weights"])
def test_an_array_of_another_kind_of_file_is_refused(tmp_path, name):
    write_arrays(tmp_path / "model.safetensors", {name: np.eye(2)}, {"format": 2})
    with pytest.raises(
        UserError, match=rf"expected arrays called part/model\|reference/shared\|own/name, found '{name}'"
    ):
        read_model(tmp_path / "model.safetensors")
