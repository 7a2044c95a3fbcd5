"""What the README shows is true: its configs load, its commands' options come in an order that works."""

import re
from pathlib import Path

import pytest
import yaml

from brainfed.configuration.loading import load_plan, overlay

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
OWN_DATA = (REPOSITORY / "docs" / "your-own-data.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", README + OWN_DATA, re.DOTALL)
COMMANDS = re.findall(r"^snakemake .*$|`(snakemake [^`]*)`", README, re.MULTILINE)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_config_in_the_readme_loads(block):
    base = yaml.safe_load((REPOSITORY / "config" / "config.yaml").read_text(encoding="utf-8"))
    shown = yaml.safe_load(block)
    plan = load_plan(shown if "project" in shown else overlay({**base, "experiments": {}}, shown))
    assert plan.experiments


def test_no_target_follows_an_option_that_would_swallow_it():
    assert COMMANDS
    for command in re.findall(r"snakemake[^`\n#]*", README):
        words = command.split()
        for option in ("--configfile", "--resources"):
            if option in words:
                after = words[words.index(option) + 2 :]
                assert not after or after[0].startswith("-"), command


def test_every_file_that_the_readme_links_to_exists():
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (REPOSITORY / link).exists(), link
