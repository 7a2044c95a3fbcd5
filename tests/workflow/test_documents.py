"""Every command of the documents works: typed into a shell as it is printed, it does what the document says."""

import re

import pytest

from support.documents.benchmark_options import OPTION, SPAN, named_options, unknown_options
from support.documents.document_commands import Command, commands_of, documents
from support.processes.forked_cli import ForkedCommands
from workflow.document_runs import run_command
from workflow.document_workplace import PLANNED, Workplace, new_workplace
from workflow.project import REPOSITORY

pytestmark = pytest.mark.workflow

DOCUMENTS = documents(REPOSITORY)
ALL = [command for path in DOCUMENTS for command in commands_of(path, REPOSITORY)]
COMMANDS = {
    (command.text, command.config if "mystudy" in command.text else ""): command
    for command in sorted(ALL, key=lambda one: one.in_block)
}
"""Commands that differ, where they stand in a block if they do so."""
FIRST_READ = ("README.md", "docs/tutorial/")
FULL = pytest.mark.full("A command starts the workflow for half a second, and documents have more than a hundred.")
BENCHMARKS = REPOSITORY / "benchmarks"


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    """A checkout with the config that the README calls the reader's own."""
    (usual,) = {command.config for command in commands_of(REPOSITORY / "README.md", REPOSITORY)} - {""}
    return new_workplace(tmp_path_factory.mktemp("documents") / "planned", ForkedCommands(), usual, PLANNED)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(one, id=f"{one.document}: {one.text}", marks=[] if one.document.startswith(FIRST_READ) else [FULL])
        for one in COMMANDS.values()
    ],
)
def test_a_command_of_the_documents_works(place, command):
    run_command(place, command)


def test_options_named_alone_are_those_of_the_programs(place):
    helps = [
        place.commands.run(words, place.folder, {})[1]
        for words in (["snakemake", "-h"], ["brainfed", "check", "-h"], ["brainfed", "predict", "-h"])
    ]
    known = set(OPTION.findall("".join(helps)))
    elsewhere = {"benchmarks/README.md", "ARCHITECTURE.md"}
    for path in DOCUMENTS:
        if path.relative_to(REPOSITORY).as_posix() not in elsewhere:
            spans = [span for span in SPAN.findall(path.read_text(encoding="utf-8")) if span.startswith("--")]
            unknown = {option for span in spans for option in OPTION.findall(span)} - known
            assert not unknown, f"{path.relative_to(REPOSITORY)}: no program has {unknown}"


def test_benchmarks_have_the_options_that_their_document_names():
    named = named_options(BENCHMARKS / "README.md", BENCHMARKS)
    assert len({option.script for option in named}) > 10
    for script in sorted({option.script for option in named}):
        unknown = unknown_options(BENCHMARKS / script, {option.option for option in named if option.script == script})
        lines = [option.line for option in named if option.script == script and option.option in unknown]
        assert not unknown, f"benchmarks/README.md:{lines[0]}: {script} has no {unknown}"


WRONG = {
    "snakemake --coers all": "unrecognized arguments|ambiguous|required",
    "snakemake fig88 --cores all": "fig88",
    "snakemake --cores all --configfile config/absent.yaml": "absent.yaml",
    "snakemake --cores all --resources gpu": "resource",
    "snakemake fetch_abide --cores 1 --configfile config/absent.yaml": "absent.yaml",
    "snakemake --report report.zip --configfile config/absent.yaml": "absent.yaml",
    "snakemake --unlocked": "unlocked",
    "BRAINFED_ADOBT=1 snakemake --cores all": "reads no environment variable BRAINFED_ADOBT",
    "brainfed check config/absent.yaml": "absent.yaml",
    "brainfed cheque config/config.yaml": "no pattern of WAYS",
    "brainfed join site.yaml --fresh": "brainfed join has no --fresh",
    "brainfed coordinate site.yaml": "site.yaml is not for coordinate",
    "brainfed join absent.yaml": "no document shows absent.yaml",
    "brainfed predict results/a --serie b.csv --fold one": "invalid int value",
    "make instal": "instal",
    "python benchmarks/scale.py regions --polt FOLDER": "has no --polt",
    "python benchmarks/scales.py graph": "there is no benchmarks/scales.py",
    "python -m brainfed.configuration.manuel": "manuel",
    "pip install --constraint requirements-dev.lock snakemake-executor-plugin-slurn": "pins no",
    "conda env create --name brainfed --file workflow/envs/brainfedd.yaml": "there is no",
    "conda activate brainfeed": "expected brainfed",
    ". venv/bin/activate": "a.md:3",
    "brew install it": "a.md:3: no pattern of WAYS in tests/workflow/document_runs.py fits `brew install it`; add one",
}
"""Commands that no reader should be given -> words of the sentence that says so."""


@pytest.mark.parametrize(("text", "words"), WRONG.items(), ids=WRONG)
def test_a_wrong_command_is_found(place, text, words):
    with pytest.raises(AssertionError, match=words):
        run_command(place, Command("a.md", 3, text))


DOCUMENT = """\
# A page

```yaml
project: mystudy
```

Type `snakemake
--unlock`, or `make prune YES=1`; the package `snakemake` and the file `config/a.yaml` are no commands.

```bash
A_B=1 snakemake --cores all  # everything
snakemake tables \\
    --cores 1 --configfile config/mystudy.yaml

brew install it
```

```text
make coffee
```

```
cd brainfed
```
"""


def test_commands_of_a_page_are_found_with_their_lines(tmp_path):
    (tmp_path / "page.md").write_text(DOCUMENT)
    found = commands_of(tmp_path / "page.md", tmp_path)
    assert [(one.line, one.text, one.in_block) for one in found] == [
        (7, "snakemake --unlock", False),
        (8, "make prune YES=1", False),
        (11, "A_B=1 snakemake --cores all", True),
        (12, "snakemake tables --cores 1 --configfile config/mystudy.yaml", True),
        (15, "brew install it", True),
        (23, "cd brainfed", True),
    ]
    assert {one.config for one in found} == {"project: mystudy\n"}
    assert found[2].environment == {"A_B": "1"}
    assert found[2].words == ["snakemake", "--cores", "all"]


def test_every_document_with_a_shell_block_gives_commands():
    for path in DOCUMENTS:
        blocks = re.findall(r"^```bash\n", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert len([one for one in commands_of(path, REPOSITORY) if one.in_block]) >= len(blocks), path
