"""Code digests: they change with the meaning of the definitions that a rule reaches, and with nothing else."""

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import lazy_loader
import pytest

import brainfed
from brainfed.digests import SourceTree, code_digest
from brainfed.digests._definitions import source_of
from brainfed.digests._links import Links
from brainfed.methods import METHODS, inpainter_of
from brainfed.runtime import UserError
from brainfed.runtime.records import NEUTRAL_MODULES, is_neutral
from support.imports import import_closure

SOURCES = {
    "scripts/train.py": "from brainfed.training import federated\nfederated.train()\n",
    "scripts/report.py": "import brainfed.reporting.page\n",
    "brainfed/__init__.py": "",
    "brainfed/training/__init__.py": "",
    "brainfed/training/federated.py": (
        '"""Rounds."""\n'
        "from brainfed.runtime._logs import Progress\n"
        "\n"
        "\n"
        "def train():\n"
        '    """Train."""\n'
        "    from ..models.gcn import forward  # late\n"
        "    return forward(2)\n"
    ),
    "brainfed/models/__init__.py": "",
    "brainfed/models/gcn.py": "import numpy\nfrom . import layers\n\n\ndef forward(x):\n    return layers.SLOPE * x\n",
    "brainfed/models/layers.py": "import brainfed.models.gcn\nSLOPE = 3\n",
    "brainfed/runtime/__init__.py": "",
    "brainfed/runtime/_logs.py": "class Progress:\n    pass\n",
    "brainfed/reporting/__init__.py": "",
    "brainfed/reporting/page.py": "NAME = 'brainfed.models.gcn'\n",
}


@pytest.fixture
def base(tmp_path):
    for place, source in SOURCES.items():
        path = tmp_path / "workflow" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return tmp_path / "workflow"


def rewrite(path, old, new):
    """Edit a file so that its size or its time stamp differs, as an editor would."""
    source = path.read_text()
    assert old in source
    before = path.stat().st_mtime_ns
    path.write_text(source.replace(old, new))
    os.utime(path, ns=(before + 10**9, before + 10**9))


def train_digest(base):
    return code_digest(Path("scripts/train.py"), base=base)


def names(base, *roots):
    return {path.relative_to(base).as_posix() for path in import_closure(*roots, base=base)}


def test_the_closure_follows_absolute_relative_late_and_circular_imports(base):
    assert names(base, Path("scripts/train.py")) == {
        "scripts/train.py",
        "brainfed/training/federated.py",
        "brainfed/models/gcn.py",
        "brainfed/models/layers.py",
    }


def test_names_in_strings_are_not_imports(base):
    assert names(base, "scripts/report.py") == {"scripts/report.py", "brainfed/reporting/page.py"}


def test_an_entry_point_means_its_definition(base):
    by_entry = code_digest("brainfed.training.federated:train", base=base)
    assert by_entry == code_digest("brainfed.training.federated", base=base)
    assert by_entry == code_digest(base / "brainfed/training/federated.py", base=base)
    assert by_entry != train_digest(base)
    rewrite(base / "brainfed/training/federated.py", '"""Rounds."""', "def trial():\n    return 1\n\n\n")
    assert by_entry == code_digest("brainfed.training.federated:train", base=base)
    assert by_entry != code_digest("brainfed.training.federated", base=base)


def test_several_roots_are_a_union_whatever_their_order(base):
    one = code_digest(Path("scripts/report.py"), "brainfed.training.federated", base=base)
    other = code_digest("brainfed.training.federated", Path("scripts/report.py"), base=base)
    assert one == other
    assert len(one) == 16


@pytest.mark.parametrize(
    ("counts", "place", "old", "new"),
    [
        (True, "scripts/train.py", "federated.train()", "federated.train(1)"),
        (True, "brainfed/training/federated.py", "forward(2)", "forward(4)"),
        (True, "brainfed/models/layers.py", "SLOPE = 3", "SLOPE = 5"),
        (True, "brainfed/models/__init__.py", "", "print()\n"),
        (True, "brainfed/models/__init__.py", "", "import seaborn\n"),
        (False, "brainfed/models/__init__.py", "", "import os\n"),
        (False, "brainfed/models/__init__.py", "", "DEPTH = 3\n"),
        (False, "brainfed/models/layers.py", "SLOPE = 3", "def slope():\n    return 4\n\n\nSLOPE = 3"),
        (False, "brainfed/models/gcn.py", "from . import layers", "from brainfed.models import layers"),
        (False, "brainfed/models/gcn.py", "import numpy\nfrom . import layers", "from . import layers\nimport numpy"),
        (False, "brainfed/training/federated.py", "# late", "# on purpose late"),
        (False, "brainfed/training/federated.py", '"""Train."""', '"""Train all institutions."""'),
        (False, "brainfed/training/federated.py", '"""Rounds."""', '"""Rounds of training."""\n\n# Section 3.'),
        (False, "brainfed/training/federated.py", "    return forward(2)", "\n\n    return forward( 2 )"),
        (False, "brainfed/models/__init__.py", "", '"""Modules."""\n'),
        (False, "brainfed/reporting/page.py", "brainfed", "another"),
        (False, "brainfed/runtime/_logs.py", "pass", "every = 10"),
        (False, "scripts/report.py", "import", "import sys\nimport"),
    ],
)
def test_an_edit_of_code_that_runs_changes_the_digest_and_one_of_text_or_other_code_does_not(
    base, counts, place, old, new
):
    before = train_digest(base)
    rewrite(base / place, old, new)
    assert (train_digest(base) != before) == counts


def test_a_docstring_that_is_used_as_a_value_counts(base):
    rewrite(base / "brainfed/models/layers.py", "SLOPE = 3", "SLOPE = 'three'")
    before = train_digest(base)
    rewrite(base / "brainfed/models/layers.py", "three", "seven")
    assert train_digest(base) != before


def test_a_submodule_that_appears_later_is_found(base):
    rewrite(base / "brainfed/models/gcn.py", "import layers", "import layers, norms")
    rewrite(base / "brainfed/models/gcn.py", "layers.SLOPE * x", "layers.SLOPE * x + norms.EPSILON")
    before = train_digest(base)
    (base / "brainfed/models/norms.py").write_text("EPSILON = 1e-5\n")
    assert train_digest(base) != before


def test_a_module_beside_the_script_is_followed(base):
    rewrite(base / "scripts/report.py", "import", "import beside\nimport")
    (base / "scripts/beside.py").write_text("VALUE = 1\n")
    assert "scripts/beside.py" in names(base, Path("scripts/report.py"))


def test_the_digest_is_the_same_in_another_folder(base, tmp_path):
    moved = tmp_path / "elsewhere" / "flow"
    shutil.copytree(base, moved)
    assert code_digest("scripts/train.py", base=moved) == train_digest(base)


def test_moving_code_to_another_module_keeps_the_digest(base):
    before = train_digest(base)
    (base / "brainfed/models/layers.py").rename(base / "brainfed/models/slopes.py")
    rewrite(base / "brainfed/models/gcn.py", "import layers", "import slopes as layers")
    assert train_digest(base) == before


@pytest.mark.parametrize(
    "root",
    [
        *(
            "brainfed.training.centralised:train",
            "brainfed.training.federated:trian",
            "brainfed.training.federated:math",
        ),
        *("scripts/trian.py", Path("../outside.py")),
    ],
)
def test_a_root_that_is_not_there_is_named(base, root):
    (base.parent / "outside.py").write_text("")
    with pytest.raises(UserError, match=str(root)):
        code_digest(root, base=base)


def test_a_file_that_is_not_python_is_named(base):
    rewrite(base / "brainfed/models/layers.py", "SLOPE = 3", "SLOPE = (3")
    with pytest.raises(UserError, match=r"layers\.py: not valid Python"):
        train_digest(base)


def test_neutral_modules_exist_and_stay_out_of_every_closure():
    base = Path(brainfed.__file__).parents[1]
    modules = {".".join(module) for module in SourceTree(base).modules}
    assert modules >= NEUTRAL_MODULES
    doors = {f"brainfed/{folder}__init__.py" for folder in ("runtime/", "runtime/jobs/")}
    closure = names(base, "brainfed.runtime.jobs._checkpoints")
    assert closure == {f"brainfed/runtime/{name}.py" for name in ("_artefacts", "jobs/_checkpoints", "_errors")} | doors


def test_packages_modules_and_single_definitions_can_be_left_out(base):
    before = train_digest(base)
    place = base / "brainfed/runtime/_logs.py"
    rewrite(base / "brainfed/training/federated.py", "forward(2)", "forward(2, Progress())")

    def changes(*exclude):
        first = code_digest("scripts/train.py", base=base, exclude=exclude)
        rewrite(place, "pass", "every = 10")
        second = code_digest("scripts/train.py", base=base, exclude=exclude)
        rewrite(place, "every = 10", "pass")
        return first != second

    assert train_digest(base) != before
    assert changes()
    assert changes("brainfed.runtime.log", "brainfed.runtime._logs:progress", "runtime._logs")
    for name in ("brainfed.runtime", "brainfed.runtime._logs", "brainfed.runtime._logs:Progress"):
        assert not changes(name)


def test_no_module_that_handles_arrays_or_tables_is_neutral():
    """What writes, reads or draws numbers belongs to the digest of each job that uses it."""
    folder = Path(brainfed.__file__).parent
    libraries = re.compile(r"^\s*(?:import|from) (?:numpy|pandas|pyarrow|safetensors)\b", re.MULTILINE)
    modules = (path for room in ("runtime", "scripting") for path in (folder / room).rglob("*.py"))
    handling = {path for path in modules if libraries.search(path.read_text())}
    named = {".".join(("brainfed", *path.relative_to(folder).with_suffix("").parts)) for path in handling}
    assert {"brainfed.runtime._artefacts", "brainfed.runtime._streams"} <= named
    assert not {name for name in named if is_neutral(name)}


def test_a_settings_description_and_bounds_belong_to_the_manual_its_default_to_the_job(base):
    place = base / "brainfed/models/layers.py"
    place.write_text('SLOPE = setting(3, "Slope.", minimum=1)\nOTHER = setting(factory=dict, description="Other.")\n')
    before = train_digest(base)
    rewrite(place, '"Slope.", minimum=1', '"The slope of the ramp.", minimum=0, maximum=9')
    rewrite(place, '"Other."', '"Something else."')
    assert train_digest(base) == before
    rewrite(place, "setting(3", "setting(4")
    assert train_digest(base) != before


# What versions of Python write differently in a syntax tree: fields that are new, f-strings, characters that print.
UNLIKE = [
    "def f(x, /, *, y=None): ...\n",
    "class A(B, metaclass=C): x: int = 1\n",
    "async def f():\n    async with a as b, c: return [d async for d in e if f]\n",
    "a = {**b, 'c': None}\nd = None\ne = u'text'\nf = ...\n",
    "a = f'{b}' f'{c!r:>{d}}' 'e' f'f{g=}'\n",
    "a = f'{b:}' + f'{c:{d}.{e}f}' + f'{{{f}}}' + f''\n",
    "a = f'{b:x{c}y}' 'd' f'{e}'\n",
    "try:\n    a\nexcept* B as c:\n    raise D from c\n",
    "match a:\n    case {'b': [1, *_], **c} if d: pass\n    case A(x=1) | None: pass\n",
    "a = '\\ue000\\U000323b0\u00e9\\x00'\nb = b'\\xff'\nc = 1e999, 1j, 10**20, 0x1F, -1\n",
    "a = lambda *b, **c: (yield)\ndel a[1:2, ::3]\nassert a, 'b'\n",
    "'a'\nglobal b\nfor c in d:\n    'text'\nelse:\n    pass\n",
]
DIGEST_OF_UNLIKE = "150d1f6f68710075"
DIGESTS = """
import json, sys
from pathlib import Path
from brainfed.digests._definitions import source_of
print(json.dumps([source_of(text.encode(), Path("a.py")) for text in json.load(sys.stdin)]))
"""


def other_interpreters():
    """Other versions of Python on this machine that the package supports."""
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    folders = [*os.environ["PATH"].split(os.pathsep), *map(str, (Path.home() / ".pyenv/versions").glob("*/bin"))]
    names = [f"python3.{minor}" for minor in range(11, 16) if f"3.{minor}" != own]
    found = {name: shutil.which(name, path=os.pathsep.join(reversed(folders))) for name in names}
    return [path for path in found.values() if path]


def parsed(text):
    """A file's content as it is cached."""
    return json.loads(json.dumps(source_of(text.encode(), Path("a.py"))))


def test_a_digest_does_not_depend_on_the_version_of_python():
    digests = [json.dumps(parsed(text)) for text in UNLIKE]
    assert len(set(digests)) == len(UNLIKE)
    assert hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16] == DIGEST_OF_UNLIKE


@pytest.mark.full("It starts every other Python of the machine.")
@pytest.mark.skipif(not other_interpreters(), reason="no other version of Python is on this machine")
def test_other_versions_of_python_have_the_same_digests_of_our_code(tmp_path):
    (tmp_path / "lazy_loader").symlink_to(Path(lazy_loader.__file__).parent)
    workflow = Path(__file__).resolve().parents[3] / "workflow"
    files = sorted(workflow.rglob("*.py"))
    count = int(os.environ.get("BRAINFED_CASES", "40"))
    texts = UNLIKE + [file.read_text() for file in random.Random(0).sample(files, min(count, len(files)))]
    expected = list(map(parsed, texts))
    for interpreter in other_interpreters():
        run = subprocess.run(
            [interpreter, "-c", DIGESTS],
            input=json.dumps(texts),
            env=os.environ | {"PYTHONPATH": f"{workflow}{os.pathsep}{tmp_path}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        assert json.loads(run.stdout) == expected, interpreter


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("def f(a):\n    return a\n", "def f(a):\n    return 'a'\n"),
        ("def f(a):\n    return a.b\n", "def f(a):\n    return 'a.b'\n"),
        ("def f(*, a): ...\n", "def f(*, a=None): ...\n"),
        ("f = {**g}\n", "f = {None: g}\n"),
        ("f = f'{g}{h}'\n", "f = f'{g}h'\n"),
        ("X = 1\nfrom math import pi as X\nf = X\n", "X = 1\nf = X\nfrom math import pi as X\n"),
        ("from math import pi as X\nf = X\nX = 1\n", "f = X\nfrom math import pi as X\nX = 1\n"),
        ("g = 1\nf = [(g, g := 2) for h in (1, 2)]\n", "g = 3\nf = [(g, g := 2) for h in (1, 2)]\n"),
    ],
)
def test_what_looks_alike_has_digests_of_its_own(tmp_path, text, other):
    digests = []
    for content in (text, other):
        (tmp_path / "one.py").write_text(content)
        digests.append(code_digest("one:f", base=tmp_path))
    assert digests[0] != digests[1]


def test_empty_text_and_split_text_in_an_f_string_mean_the_same():
    assert parsed("f'{a}bc'") == parsed("f'{a}' 'b' f'c'") == parsed("f'{a:}bc'")
    assert parsed("f'{a}b{c}'") != parsed("f'{a}{c}b'")


WORKFLOW = Path(__file__).resolve().parents[3] / "workflow"
SHARDS = {"series.shards"}
READS = SHARDS | {"scans.region_table", "series.arrays", "series.roi_series", "series.text"}
EXTRACTS = SHARDS | {
    *(f"extraction.{name}" for name in ("bids_extraction", "confounds", "extraction")),
    *(f"scans.{name}" for name in ("atlas", "region_means", "region_table", "scan")),
    "series.roi_series",
}
STANDARDISES = SHARDS | {"series.roi_series"}
CONNECTS = STANDARDISES | {"connectivity", "settings"}
COMPARES = CONNECTS | {"quality"}


@cache
def reached(*roots):
    """The definitions of the library that roots reach, as `module:name`."""
    tree = SourceTree(WORKFLOW)
    names = Links(tree, tree.searched(roots), NEUTRAL_MODULES).reached(roots)
    return {name.removeprefix("brainfed.") for name in names if name.startswith("brainfed.")}


def modules_of(names, room):
    """Without the underscores of modules."""
    modules = {name.partition(":")[0].removeprefix(room) for name in names if name.startswith(room)}
    return {module.replace("._", ".").removeprefix("_") for module in modules}


@pytest.mark.parametrize(
    ("script", "modules"),
    [
        ("read_series", READS),
        ("extract_series", EXTRACTS),
        ("extract_runs", EXTRACTS),
        ("ingest_phenotypes", set()),
        ("compute_connectivity", CONNECTS),
        ("compute_covariances", STANDARDISES | {"tangent"}),
        ("compute_tangent", SHARDS | {"tangent"}),
        ("fit_connectivity", SHARDS | {"tangent", "fitted.combat", "fitted.rfe", "settings"}),
        ("read_measures", SHARDS | {"morphometry.tables", "morphometry.features"}),
        ("compute_morphometry", set()),
        ("build_connectomes", set()),
        ("join_series", STANDARDISES | {"settings"}),
        ("choose_public", set()),
        ("include_subjects", set()),
        ("list_issues", set()),
        ("measure_scans", COMPARES),
        ("measure_quality", set()),
        ("relate_motion", COMPARES),
    ],
)
def test_a_script_reaches_definitions_of_the_modules_that_it_runs(script, modules):
    assert modules_of(reached(f"scripts/{script}.py"), "imaging.") == modules


def test_an_edit_of_a_reader_or_a_writer_of_series_runs_the_other_not_anew():
    writes, reads = (reached(f"scripts/{script}.py") for script in ("read_series", "compute_connectivity"))
    assert "imaging.series._shards:write_shard" in writes - reads
    assert "imaging.series._shards:load_series" in reads - writes


def test_an_edit_of_the_bids_listing_extracts_nothing_anew():
    for script in ("extract_runs", "extract_series", "ingest_phenotypes", "simulate_scans"):
        found = {name for name in reached(f"scripts/{script}.py") if name.startswith("cohort.sources.bids")}
        assert found <= {"cohort.sources._bids_tree:BidsRun"}


@pytest.mark.parametrize("name", ["majority", "ridge", "fedgcn"])
def test_an_edit_of_inpainting_reruns_no_method_that_has_none(name):
    found = {name for name in reached("scripts/train_method.py", METHODS[name].entry) if name.startswith("inpainting.")}
    assert found == {f"inpainting._inputs:{name}" for name in ("FusedGraph", "read_fused")}


def test_an_edit_of_inpainting_builds_no_graph_and_scores_nothing_anew():
    for script in ("build_graph", "compute_connectivity", "split_subjects", "score_experiment"):
        assert not {name for name in reached(f"scripts/{script}.py") if name.startswith("inpainting.")}


def test_an_edit_of_drawing_or_fusing_trains_no_fedni_generator_anew():
    trains = modules_of(reached("scripts/train_generator.py", inpainter_of(METHODS["fedni"]).train), "inpainting.")
    asks = modules_of(reached("scripts/fuse_graph.py", inpainter_of(METHODS["fedni"]).load), "inpainting.")
    assert {"fusing", "fedni.drawing"} <= asks - trains
    assert {"fedni.training", "fedni.stacked_training"} <= trains - asks


def test_an_edit_of_one_inpainter_trains_no_generator_of_the_other():
    fedni = reached("scripts/train_generator.py", inpainter_of(METHODS["fedni"]).train)
    assert not {name for name in fedni if "fedsage." in name}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_an_edit_of_a_paper_trains_nothing_anew(name):
    found = reached("scripts/train_method.py", METHODS[name].entry)
    assert not {name for name in found if name.startswith(("reporting.", "papers."))}


def test_an_edit_of_a_panel_draws_nothing_anew():
    """A figure that repeats one of a paper has its family's numbers, and no drawing reads a panel or its templates."""
    for script in ("draw_experiment", "draw_paper_figure", "draw_leakage", "draw_clusters", "draw_patterns"):
        found = reached(f"scripts/{script}.py")
        assert not {name for name in found if ".panels." in name or re.fullmatch(r"papers\..*:PAPER", name)}
    assert "papers._fedni_tables:PANELS" in reached("scripts/write_report.py")
    papers = {name for name in reached("scripts/draw_experiment.py") if name.startswith("papers.")}
    assert papers == {"papers._beside:BESIDE"}
