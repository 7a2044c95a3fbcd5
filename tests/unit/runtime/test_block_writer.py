"""Arrays that are written block after block make the file that is written as a whole."""

import numpy as np
import pytest

from brainfed.runtime.artefacts import read_arrays, write_arrays
from brainfed.runtime.block_writer import writing_blocks

METADATA = {"subjects": ["s1", "Zoë"], "regions": [], "quote": 'a "b" \\ c\n'}


def arrays():
    rng = np.random.default_rng(0)
    return {
        "values": rng.standard_normal((7, 3)).astype(np.float32),
        "start": np.arange(5),
        "double": rng.standard_normal((2, 2, 2)),
        "nothing": np.zeros((0, 4), dtype=np.float32),
        "a": np.arange(3, dtype=np.float32),
    }


def write_by_blocks(path, held, step):
    with writing_blocks(path, {name: (array.dtype, array.shape) for name, array in held.items()}, METADATA) as append:
        for start in range(0, max(map(len, held.values())), step):
            for name, array in held.items():
                append(name, array[start : start + step])


@pytest.mark.parametrize("step", [1, 2, 100])
def test_the_bytes_are_those_of_a_file_written_as_a_whole(tmp_path, step):
    write_arrays(tmp_path / "whole.safetensors", arrays(), METADATA)
    write_by_blocks(tmp_path / "blocks.safetensors", arrays(), step)
    assert (tmp_path / "blocks.safetensors").read_bytes() == (tmp_path / "whole.safetensors").read_bytes()
    assert read_arrays(tmp_path / "blocks.safetensors").metadata == METADATA


def test_a_block_may_be_a_view_with_strides(tmp_path):
    square = np.arange(12, dtype=np.float32).reshape(3, 4)
    with writing_blocks(tmp_path / "f.safetensors", {"a": (np.float32, (4, 3))}, {}) as append:
        append("a", square.T)
    np.testing.assert_array_equal(read_arrays(tmp_path / "f.safetensors").arrays["a"], square.T)


@pytest.mark.parametrize(
    "block", [np.zeros((1, 3)), np.zeros((1, 2), dtype=np.float32), np.zeros((5, 3), dtype=np.float32)]
)
def test_a_block_of_another_type_or_shape_is_refused_and_leaves_no_file(tmp_path, block):
    with (
        pytest.raises(ValueError, match="expected a block of float32"),
        writing_blocks(tmp_path / "f.safetensors", {"a": (np.float32, (4, 3))}, {}) as append,
    ):
        append("a", block)
    assert list(tmp_path.iterdir()) == []


def test_an_array_that_is_not_complete_leaves_no_file(tmp_path):
    with (
        pytest.raises(ValueError, match=r"the arrays \['a'\] are not complete"),
        writing_blocks(tmp_path / "f.safetensors", {"a": (np.float32, (4, 3)), "b": (np.int64, (0,))}, {}) as append,
    ):
        append("a", np.zeros((3, 3), dtype=np.float32))
    assert list(tmp_path.iterdir()) == []
