"""The manual: as the settings are, its links lead somewhere, its examples load."""

import re
from pathlib import Path

import yaml

from brainfed.configuration import load_plan
from brainfed.configuration.manual import manual
from brainfed.configuration.prune import schema

REPOSITORY = Path(__file__).resolve().parents[3]


def test_schema_and_manual_have_not_drifted():
    remedy = "run `python -m brainfed.configuration.manual`"
    assert (REPOSITORY / "workflow" / "schemas" / "config.schema.json").read_text() == schema(), remedy
    assert (REPOSITORY / "config" / "README.md").read_text() == manual(), remedy


def test_every_link_of_the_manual_leads_to_a_heading():
    page = manual()
    headings = {
        re.sub(r"[^a-z0-9 _-]", "", title.lower()).replace(" ", "-") for title in re.findall(r"^#+ (.*)$", page, re.M)
    }
    links = set(re.findall(r"\]\(#([^)]*)\)", page))
    assert links and links <= headings


def test_the_examples_of_the_manual_are_valid(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    examples = re.findall(r"```yaml\n(.*?)```", manual(), re.S)
    assert len(examples) == 2
    for example in examples:
        load_plan(yaml.safe_load(example))


def test_every_row_of_the_manual_has_four_cells():
    rows = [line for line in manual().splitlines() if line.startswith("|")]
    assert rows and {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {6}
