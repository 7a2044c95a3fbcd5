"""Files between jobs: they are read as they were written, never half-written, and no job writes one in place."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from safetensors.numpy import save

import brainfed
from brainfed.runtime import (
    UserError,
    array_shapes,
    atomic,
    canonical_json,
    read_arrays,
    read_table,
    write_arrays,
    write_table,
    write_text,
    write_tsv,
    writing_blocks,
)
from brainfed.runtime._artefacts import KINDS, METADATA_KEY

shapes = arrays_of.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
dtypes = st.sampled_from([*KINDS]).map(np.dtype)
any_array = dtypes.flatmap(lambda dtype: arrays_of.arrays(dtype, shapes))


@given(st.dictionaries(st.sampled_from("abcd"), any_array, min_size=1))
def test_arrays_come_back_to_the_bit(tmp_path_factory, arrays):
    path = tmp_path_factory.mktemp("arrays") / "features.safetensors"
    write_arrays(path, arrays, {"subjects": ["b", "a"]})
    assert path.read_bytes() == save(arrays, {METADATA_KEY: '{"subjects":["b","a"]}'})
    file = read_arrays(path)
    assert file.subjects == ("b", "a")
    assert file.arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert file.arrays[name].dtype == array.dtype
        assert file.arrays[name].shape == array.shape
        assert file.arrays[name].tobytes() == array.tobytes()


def test_a_scalar_stays_a_scalar(tmp_path):
    write_arrays(tmp_path / "f.safetensors", {"sigma": np.array(0.5)}, {})
    assert read_arrays(tmp_path / "f.safetensors").arrays["sigma"].shape == ()


def test_a_big_endian_array_keeps_its_numbers(tmp_path):
    write_arrays(tmp_path / "f.safetensors", {"x": np.arange(3, dtype=">f4")}, {})
    np.testing.assert_array_equal(read_arrays(tmp_path / "f.safetensors").arrays["x"], [0, 1, 2])


def test_a_transposed_array_keeps_its_elements(tmp_path):
    array = np.arange(6.0).reshape(2, 3).T
    write_arrays(tmp_path / "f.safetensors", {"x": array}, {})
    np.testing.assert_array_equal(read_arrays(tmp_path / "f.safetensors").arrays["x"], array)


def test_same_content_same_bytes_whatever_the_order(tmp_path):
    x, y = np.ones(3), np.zeros((2, 2), np.float32)
    write_arrays(tmp_path / "one", {"x": x, "y": y}, {"k": 5, "atlas": "cc200", "sigma": 0.5})
    write_arrays(tmp_path / "other", {"y": y, "x": x}, {"sigma": 0.5, "atlas": "cc200", "k": 5})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_only_the_wanted_arrays_are_read(tmp_path):
    write_arrays(tmp_path / "f", {"row": np.ones(2), "column": np.ones(2)}, {})
    assert list(read_arrays(tmp_path / "f", ["row"]).arrays) == ["row"]


def test_a_missing_array_is_named(tmp_path):
    write_arrays(tmp_path / "f", {"row": np.ones(2)}, {})
    with pytest.raises(UserError, match=r"\['weight'\] are missing"):
        read_arrays(tmp_path / "f", ["row", "weight"])


@pytest.mark.parametrize("read", [read_arrays, read_table])
def test_a_missing_or_cut_file_is_a_user_error(tmp_path, read):
    with pytest.raises(UserError, match="absent"):
        read(tmp_path / "absent")
    write_arrays(tmp_path / "cut-arrays", {"x": np.ones(100)}, {})
    write_table(tmp_path / "cut-table", pd.DataFrame({"x": np.arange(100)}))
    for name in ("cut-arrays", "cut-table"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(UserError, match=name):
            read(tmp_path / name)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    write_text(tmp_path / "scores.tsv", "old")
    with pytest.raises(ZeroDivisionError), atomic(tmp_path / "scores.tsv") as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["scores.tsv"]
    assert (tmp_path / "scores.tsv").read_text() == "old"


def test_folders_are_made(tmp_path):
    write_text(tmp_path / "a" / "b" / "note.txt", "ü\n")
    assert (tmp_path / "a" / "b" / "note.txt").read_bytes() == b"\xc3\xbc\n"


def test_canonical_json_has_one_form_and_no_nan():
    assert canonical_json({"b": [1, 2.5], "a": "é"}) == '{"a":"é","b":[1,2.5]}'
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"sigma": float("nan")})


def test_a_table_keeps_ids_that_look_like_numbers_and_missing_values(tmp_path):
    frame = pd.DataFrame(
        {
            "subject": ["0051456", "51457"],
            "age": [11.5, np.nan],
            "diagnosis": pd.array([1, None], dtype="Int8"),
            "sex": ["male", None],
        }
    )
    write_table(tmp_path / "participants.parquet", frame)
    pd.testing.assert_frame_equal(read_table(tmp_path / "participants.parquet"), frame)


def test_a_missing_column_is_named(tmp_path):
    write_table(tmp_path / "t.parquet", pd.DataFrame({"subject": ["a"]}))
    with pytest.raises(UserError, match=r"\['fold'\] are missing"):
        read_table(tmp_path / "t.parquet", ["subject", "fold"])


def test_a_tsv_is_plain(tmp_path):
    write_tsv(tmp_path / "issues.tsv", pd.DataFrame({"subject": ["01"], "mean": [np.nan], "n": [3]}))
    assert (tmp_path / "issues.tsv").read_bytes() == b"subject\tmean\tn\n01\t\t3\n"


def test_the_bytes_are_on_the_disk_before_the_name_exists(tmp_path, monkeypatch):
    synchronised = []
    fsync = os.fsync

    def watch(file):
        assert not (tmp_path / "f.txt").exists()
        synchronised.append(os.fstat(file).st_size)
        fsync(file)

    monkeypatch.setattr(os, "fsync", watch)
    write_text(tmp_path / "f.txt", "whole")
    assert synchronised == [5]


def test_shapes_of_arrays_are_read_from_the_header(tmp_path):
    path = tmp_path / "arrays.safetensors"
    write_arrays(path, {"b": np.zeros((3, 2), dtype=np.float32), "a": np.zeros(0, dtype=np.int64)}, {"subjects": []})
    assert array_shapes(path) == {"a": (0,), "b": (3, 2)}
    write_arrays(path, {}, {"atlas": "x"})
    assert array_shapes(path) == {}
    path.write_bytes(b"no header")
    with pytest.raises(UserError, match="not a whole safetensors file"):
        array_shapes(path)


NO_ROOM = """
import os
import resource
import sys
from pathlib import Path
from brainfed.runtime import read_table
from brainfed.runtime.jobs._memory import is_out_of_memory, out_of_memory

pages = int(Path("/proc/self/statm").read_text().split()[0])
for kilobytes in (500, 5000):
    if os.fork() == 0:
        limit = pages * resource.getpagesize() + (kilobytes << 10)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        try:
            print(len(read_table(sys.argv[1])), flush=True)
        except Exception as error:
            assert is_out_of_memory(error), error
            print(out_of_memory(error, "a rule", "fewer data", 1.0), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits its address space by what /proc shows")
def test_a_table_is_read_or_refused_where_no_thread_can_be_started(tmp_path):
    write_table(tmp_path / "t.parquet", pd.DataFrame({"subject": ["0", "1"], "age": [1.0, 2.0]}))
    command = [sys.executable, "-c", NO_ROOM, str(tmp_path / "t.parquet")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout.splitlines()
    assert len(said) == 2
    for line in said:
        assert line == "2" or "a thread could not be started" in line or "memory has run out" in line


def test_a_table_of_every_type_comes_back_as_pandas_reads_it(tmp_path):
    frame = pd.DataFrame(
        {
            "text": ["a", None, "c"],
            "whole": [1, 2, 3],
            "maybe": pd.array([1, None, 3], dtype="Int64"),
            "number": [1.5, np.nan, -0.0],
            "yes": [True, False, True],
            "kind": pd.Categorical(["x", "y", "x"]),
        }
    )
    for name, written in (("all", frame), ("none", frame.iloc[:0])):
        write_table(tmp_path / name, written)
        pd.testing.assert_frame_equal(read_table(tmp_path / name), pd.read_parquet(tmp_path / name))


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


WORKFLOW = Path(brainfed.__file__).parents[1]
WRITERS = {"write_text", "write_bytes", "savefig", "to_parquet", "to_feather", "to_filename", "to_excel", "tofile"}
SAVERS = {"save", "savez", "savetxt", "dump", "imsave"}
LIBRARIES = {"nib", "np", "torch", "json", "pickle", "plt", "nibabel", "numpy"}
# The manual and the schema are written on a developer's command, by no job; a lock's text only informs waiting jobs;
# `write_whole` writes under a name of its own until the file is whole; a client of a forking process gives itself
# a name in /proc; a sentence on a job's end goes below what stands in its log.
NO_RESULTS = {
    Path("brainfed/configuration/manual.py"),
    Path("brainfed/runtime/devices/_lease.py"),
    Path("brainfed/forking/client.py"),
    Path("brainfed/runtime/jobs/_memory.py"),
    Path("brainfed/runtime/_disk.py"),
}


def writes(call):
    """Whether a call writes a file that it names itself."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "open" and _mode(call, 1)
    if not isinstance(function, ast.Attribute):
        return False
    library = isinstance(function.value, ast.Name) and function.value.id in LIBRARIES
    return (
        function.attr in WRITERS
        or (library and function.attr in SAVERS)
        or (function.attr == "open" and _mode(call, 0))
        or (function.attr in {"to_csv", "to_json"} and bool(call.args))
    )


def _mode(call, place):
    modes = [*call.args[place : place + 1], *(word.value for word in call.keywords if word.arg == "mode")]
    return any(isinstance(mode, ast.Constant) and set(str(mode.value)) & set("wax+") for mode in modes)


def unprotected(node, protected=False):
    """Calls that write outside of a `with atomic(...)` and of a folder that is removed at its end.

    `save_file` of safetensors is one anywhere: it writes to a temporary file of its own first, which a kill leaves.
    """
    if isinstance(node, ast.With):
        opened = [item.context_expr.func for item in node.items if isinstance(item.context_expr, ast.Call)]
        protected |= any(ast.unparse(function) in ("atomic", "tempfile.TemporaryDirectory") for function in opened)
    if isinstance(node, ast.Call) and ((writes(node) and not protected) or "save_file" in ast.unparse(node.func)):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from unprotected(child, protected)


def test_a_file_written_in_place_is_found():
    found = [
        "path.write_text('x')",
        "open(path, 'w')",
        "path.open(mode='wb')",
        "frame.to_csv(path)",
        "nib.save(image, path)",
        "figure.savefig(path)",
        "with other(path) as temporary:\n    temporary.write_bytes(b'')",
        "with atomic(path) as temporary:\n    save_file({}, temporary)",
    ]
    left = [
        "with tempfile.TemporaryDirectory() as folder:\n    path.write_text('x')",
        "with atomic(path) as temporary:\n    temporary.write_text('x')",
        "path.open()",
        "open(path, 'rb')",
        "frame.to_csv(sep='\\t')",
        "checkpoint.save(3, arrays, {})",
        "write_text(path, 'x')",
    ]
    assert [bool(list(unprotected(ast.parse(source)))) for source in found + left] == [True] * len(found) + [
        False
    ] * len(left)


def test_no_job_writes_a_file_in_place():
    sources = [path for folder in ("brainfed", "scripts") for path in (WORKFLOW / folder).rglob("*.py")]
    assert len(sources) > 100
    inside = {path: path.relative_to(WORKFLOW) for path in sources}
    assert [
        f"{name}:{call.lineno}"
        for path, name in inside.items()
        # A study's keys, logs and settings of Flower are no results.
        if name not in NO_RESULTS and name.parts[:2] != ("brainfed", "sites")
        for call in unprotected(ast.parse(path.read_text()))
    ] == []
