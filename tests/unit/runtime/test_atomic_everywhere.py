"""Nothing in the workflow writes a file in place: a killed job leaves whole files or none."""

import ast
from pathlib import Path

import brainfed

WORKFLOW = Path(brainfed.__file__).parents[1]
WRITERS = {"write_text", "write_bytes", "savefig", "to_parquet", "to_feather", "to_filename", "to_excel", "tofile"}
SAVERS = {"save", "savez", "savetxt", "save_file", "dump", "imsave"}
LIBRARIES = {"nib", "np", "torch", "json", "pickle", "plt", "nibabel", "numpy"}
# The manual and the schema are written on a developer's command, by no job; a lock's text only informs waiting jobs;
# `parts.write_whole` writes under a name of its own until the file is whole; a client of a forking process gives itself
# a name in /proc; a sentence on a job's end goes below what stands in its log.
NO_RESULTS = {
    Path("brainfed/configuration/manual/__main__.py"),
    Path("brainfed/runtime/devices/locks.py"),
    Path("brainfed/runtime/forking/client.py"),
    Path("brainfed/runtime/devices/slots.py"),
    Path("brainfed/runtime/jobs/limits.py"),
    Path("brainfed/runtime/parts.py"),
}


def writes(call):
    """Whether a call writes a file that it names itself."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id == "save_file" or (function.id == "open" and _mode(call, 1))
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
    """Calls that write outside of a `with atomic(...)` and of a folder that is removed at its end."""
    if isinstance(node, ast.With):
        opened = [item.context_expr.func for item in node.items if isinstance(item.context_expr, ast.Call)]
        protected |= any(ast.unparse(function) in ("atomic", "tempfile.TemporaryDirectory") for function in opened)
    if isinstance(node, ast.Call) and writes(node) and not protected:
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
    assert [bool(list(unprotected(ast.parse(source)))) for source in found + left] == [True] * 7 + [False] * 7


def test_no_job_writes_a_file_in_place():
    sources = [path for folder in ("brainfed", "scripts") for path in (WORKFLOW / folder).rglob("*.py")]
    assert len(sources) > 100
    inside = {path: path.relative_to(WORKFLOW) for path in sources}
    assert [
        f"{name}:{call.lineno}"
        for path, name in inside.items()
        # A study's keys, logs and settings of Flower are no results.
        if name not in NO_RESULTS and name.parts[:2] != ("brainfed", "deployment")
        for call in unprotected(ast.parse(path.read_text()))
    ] == []
