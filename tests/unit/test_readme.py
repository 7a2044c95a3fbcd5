"""The README and the documents: configs load, links lead somewhere, options come in an order that works."""

import re
import runpy
from pathlib import Path

import pytest
import yaml
from PIL import Image

from brainfed.configuration.loading import load_plan, overlay

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
CONFIGS = ("README.md", "docs/your-own-data.md", "docs/images.md", "docs/methods.md")
"""Documents whose configs extend none of the shipped ones but config.yaml."""
BLOCKS = [
    block
    for path in CONFIGS
    for block in re.findall(r"```yaml\n(.*?)```", (REPOSITORY / path).read_text(encoding="utf-8"), re.DOTALL)
]
LONGEST_README = 120


def test_the_readme_is_short():
    assert len(README.splitlines()) < LONGEST_README


@pytest.mark.parametrize("block", BLOCKS)
def test_a_config_in_the_documents_loads(block):
    base = yaml.safe_load((REPOSITORY / "config" / "config.yaml").read_text(encoding="utf-8"))
    shown = yaml.safe_load(block)
    plan = load_plan(shown if "project" in shown else overlay({**base, "experiments": {}}, shown))
    assert plan.experiments


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


def test_every_document_is_in_the_index():
    index = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    for path in (REPOSITORY / "docs").glob("*.md"):
        assert path.name == "README.md" or f"({path.name})" in index, path.name


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
