"""The README and the documents: configs load, links lead somewhere, options come in an order that works."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from PIL import Image

from brainfed.configuration import load_plan
from brainfed.configuration._loading import overlay
from brainfed.configuration.stages.registry import KINDS
from workflow.document_workplace import write_study

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
PAGES = sorted((REPOSITORY / "docs").rglob("*.md"))
DOCUMENTS = [*(REPOSITORY / name for name in ("README.md", "ARCHITECTURE.md", "CHANGELOG.md")), *PAGES]
BLOCKS = [
    pytest.param(block, id=f"{path.stem}-{number}")
    for path in DOCUMENTS
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL))
]
FENCES = {"html", "mermaid", "bash", "text", "yaml", "python"}
"""Languages of a fence: `bash` holds commands to run from the root of the repository, `text` their output."""
LONGEST_README = 120


def test_the_readme_is_short():
    assert len(README.splitlines()) < LONGEST_README


@pytest.mark.parametrize("block", BLOCKS)
def test_a_config_in_the_documents_loads(block, monkeypatch, tmp_path):
    monkeypatch.chdir(REPOSITORY)
    if "extends: study.yaml" in block:
        write_study(tmp_path)
        monkeypatch.chdir(tmp_path)
    base = yaml.safe_load((REPOSITORY / "config" / "config.yaml").read_text(encoding="utf-8"))
    shown = yaml.safe_load(block)
    whole = "project" in shown or "extends" in shown
    plan = load_plan(shown if whole else overlay({**base, "experiments": {}}, shown))
    assert plan.experiments


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_fence_has_a_language(path):
    marks = re.findall(r"^```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(marks) % 2 == 0
    assert set(marks[::2]) <= FENCES, marks[::2]
    assert set(marks[1::2]) <= {""}, marks[1::2]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_target_follows_an_option_that_would_swallow_it(path):
    for command in re.findall(r"snakemake [^`\n#]*", path.read_text(encoding="utf-8")):
        words = command.split()
        for option in ("--configfile", "--resources"):
            if option in words:
                after = words[words.index(option) + 2 :]
                assert not after or not re.fullmatch(r"[a-z][a-z0-9_-]*", after[0]), command


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(path):
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        assert (path.parent / link).exists(), link


@pytest.mark.parametrize("path", [path for path in PAGES if "decisions" not in path.parts], ids=str)
def test_a_page_begins_with_its_use(path):
    title, first = path.read_text(encoding="utf-8").split("\n\n")[:2]
    assert title.startswith("# ")
    assert "After this page you" in first, path


def test_every_stage_and_table_has_a_row_among_the_artefacts():
    page = (REPOSITORY / "docs" / "reference" / "artefacts.md").read_text(encoding="utf-8")
    for kind in KINDS:
        assert f"| `{kind.folder}/" in page, kind.name
    rules = "".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "workflow" / "rules").glob("*.smk"))
    for table in re.findall(r'"results/\{cohort\}/tables/(\{experiment\}[\w-]*\.tsv)"', rules):
        assert f"`tables/{table}`" in page, table


def test_what_the_page_on_methods_imports_is_stable_and_is_there():
    folder = REPOSITORY / "docs"
    page = (folder / "reference" / "stable.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(brainfed[\w.]*)` \| (.*) \|$", page, re.MULTILINE)
    stable = {(door, name) for door, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert [(door, name) for door, name in stable if not hasattr(import_module(door), name)] == []
    guide = (folder / "how-to" / "adding-a-method.md").read_text(encoding="utf-8")
    imports = re.findall(r"^from (brainfed[\w.]*) import (.*)$", guide.split("## Adding a stage")[0], re.MULTILINE)
    used = {(door, name) for door, names in imports for name in names.split(", ") if not door.endswith(".declaration")}
    assert len(used) > 10
    assert sorted(used - stable) == []


def test_every_document_is_in_the_index():
    index = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    decisions = (REPOSITORY / "docs" / "explanation" / "decisions" / "README.md").read_text(encoding="utf-8")
    for path in (REPOSITORY / "docs").rglob("*.md"):
        if path.name == "README.md":
            continue
        place = path.relative_to(REPOSITORY / "docs").as_posix()
        assert f"({place})" in index or f"({path.name})" in decisions, place


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_config_that_a_command_names_exists(path):
    for config in re.findall(
        r"(?:--configfile|brainfed check) (config/[\w-]+\.yaml)", path.read_text(encoding="utf-8")
    ):
        assert config == "config/mystudy.yaml" or (REPOSITORY / config).exists(), config


def test_the_picture_is_of_today_s_first_screen():
    scope = runpy.run_path(str(REPOSITORY / "docs" / "picture.py"))
    with Image.open(REPOSITORY / "docs" / "report.png") as picture:
        assert picture.info.get(scope["DIGEST"]) == scope["digest"](), "`make picture` draws docs/report.png again"
