"""The shape of a config, and the names of its parts."""

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, cast, get_args

from brainfed.cohort.settings import CohortSettings, PublicSettings, SplitSettings
from brainfed.configuration._study_settings import StudySettings
from brainfed.configuration._validation import nearest
from brainfed.graphs import ConnectomeSettings, GraphSettings
from brainfed.imaging import FeatureSettings, SeriesSettings
from brainfed.inpainting import FusingSettings, InpaintingSettings
from brainfed.runtime import UserError, setting

Protocol = Literal["transductive", "inductive"]
Labels = Literal["true", "permuted"]
Figure = Literal[
    "none", "bars", "line", "surface", "rounds", "distribution", "clients", "cost", "fidelity", "dose", "readings"
]


def defaults_of(kind: type[Any]) -> Mapping[str, Any]:
    """All defaults of a settings dataclass as builtins, not to be changed; a start asks for them hundreds of times."""
    # To mypy a `type[Any]` is not hashable.
    return _defaults_of(cast(Hashable, kind))


@cache
def _defaults_of(kind: Any) -> Mapping[str, Any]:
    return MappingProxyType(asdict(kind()))


@dataclass(frozen=True)
class ExperimentSettings:
    """One table of the report: which variants on which cohorts, under which regime."""

    title: str = setting("", "Heading in the report; empty: the experiment's name.")
    cohorts: tuple[str, ...] = setting((), "Cohorts by name; empty: all.")
    variants: tuple[str, ...] = setting(
        (),
        "Variants by name, in the order of the table; empty: all shipped ones that it can have, but for networks on "
        "region series, which take long.",
    )
    reference: str = setting("ridge-central", "Variant that the statistical tests compare with.")
    split: dict[str, Any] = setting(
        factory=dict,
        description="Settings of `split` that differ in this experiment; "
        "a list where one value belongs makes one experiment a value.",
    )
    protocol: Protocol | None = setting(None, "Protocol of this experiment; none: the project's.")
    labels: Labels = setting(
        "true", "permuted: the null control, diagnoses shuffled inside every institution and fold."
    )
    default: bool = setting(True, "Part of a run that names no target; otherwise only when it is named.")
    figure: Figure = setting(
        "none",
        "A figure of its own. bars: scores side by side; line, surface: scores against one or two swept settings; "
        "rounds: loss and accuracy by round; distribution: features of real and generated nodes; clients: scores "
        "against the number of institutions; cost: what training takes; fidelity: generated against true neighbours; "
        "dose: scores of several simulated cohorts against a setting in which they differ, and what every method "
        "recovers of the gap between `fedgcn` and `centralgcn`; "
        "readings: how near the accuracies of each set of changed settings come to those of the paper.",
    )
    axes: tuple[str, ...] = setting(
        (),
        "Swept settings that the figure is drawn against: `graph.k`, `inpainting.alpha`, `local_epochs`; "
        "`split.count` for clients; a setting of the simulation for dose, `simulate.group_agreement`.",
    )
    paper: str = setting(
        "",
        "What of a paper stands beside it: `table5`, `fig8` of FedNI's; `fglbc` for Tables 1 to 3 of FGLBC's, of other "
        "data; `gcfl` for Tables 3 and 4 of GCFL's, where the cohort is called after a data set or group there, such "
        "as `proteins` or `mix`; `gahfl` for Tables III and IV of GAHFL's, where its name begins with `abide` or "
        "`adhd200`.",
    )


@dataclass(frozen=True)
class ReportSettings:
    """The content of the report."""

    title: str = setting("", "Title of the report; empty: the project's name.")
    show_subjects: bool = setting(
        False,
        "Print subject ids, and of every subject that an issue names its diagnosis, sex, age, site, scores and "
        "a picture of its connectivity.",
    )


@dataclass(frozen=True)
class ProjectSettings:
    """Everything that a run depends on."""

    project: str = setting(
        description="Name of the project, and of its report; results lie under the names of its cohorts."
    )
    cohorts: dict[str, CohortSettings] = setting(description="The cohorts by name.")
    seed: int = setting(20240101, "Seed of every random stream.", minimum=0)
    threads: int = setting(1, "Compute threads of a job; `--cores` only decides how many jobs run at once.", minimum=1)
    library_versions: Literal["record", "rerun"] = setting(
        "record",
        "Results that other versions of the libraries computed. record: they are kept, and the report names the "
        "versions and says where they differ within one table; rerun: they are computed again. A new version seldom "
        "changes a result beyond rounding, and computing everything again may take days.",
    )
    split: SplitSettings = setting(factory=SplitSettings, description="Institutions, folds and repeats.")
    features: FeatureSettings = setting(factory=FeatureSettings, description="Imaging features.")
    connectomes: ConnectomeSettings = setting(
        factory=ConnectomeSettings, description="Connectomes as graphs, for methods whose samples are graphs."
    )
    series: SeriesSettings = setting(
        factory=SeriesSettings, description="Region series, for methods whose samples are series."
    )
    public: PublicSettings = setting(
        factory=PublicSettings, description="Public subjects, for methods whose server has data of its own."
    )
    graph: GraphSettings = setting(factory=GraphSettings, description="The population graph.")
    inpainting: InpaintingSettings = setting(
        factory=InpaintingSettings, description="Training of the generator of missing neighbours."
    )
    fusing: FusingSettings = setting(factory=FusingSettings, description="How generated nodes join the graph.")
    protocol: Protocol = setting(
        "transductive",
        "transductive: test subjects' features are in the graph, their labels never used; "
        "inductive: they are in no fit and join only to be scored.",
    )
    variants: dict[str, dict[str, Any]] = setting(
        factory=dict,
        description="Variants: `method`, its settings, and those of its stages that differ. "
        "A list where one value belongs is a sweep.",
    )
    experiments: dict[str, ExperimentSettings] = setting(
        factory=lambda: {"methods": ExperimentSettings()}, description="The tables of the report."
    )
    models: tuple[str, ...] = setting(
        (),
        "Variants by name whose models `snakemake models` keeps for new patients, from the first experiment that has "
        "them: one further training on all labelled subjects, beside those of the first repeat.",
    )
    report: ReportSettings = setting(factory=ReportSettings, description="The report.")
    study: StudySettings = setting(factory=StudySettings, description="A federation between real sites.")

    def __post_init__(self) -> None:
        """Refuse views for all variants: most methods read features of one kind."""
        if self.features.views:
            raise ValueError(
                "features.views: expected views under the `features` of variants whose methods weigh them, found "
                f"{', '.join(self.features.views)} for all variants; move them there"
            )


# Names in a config: their form, and whether they exist.

Value = TypeVar("Value")

ALLOWED = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
MAX_LENGTH = 150
"""Characters of a name: a file name may have 255, and endings follow."""
REPORTS = "reports"
PAPER = "paper"
"""The target of all experiments that a plain run leaves out."""

RESERVED_EXPERIMENTS = ("all", "site", "tables", "models", PAPER)
"""Targets of the workflow; every experiment is a target too."""

RULE_FILES = Path(__file__).parents[2] / "rules"
RULE = re.compile(r"^ *(?:use rule \w+ as|rule) (\w+)", re.MULTILINE)

QUICK = "-quick"
"""Ends the name of the same experiment with one repeat."""

TABLE_ENDINGS = (
    "-runs", "-tests", "-gain", "-confusion", "-clients", "-audit", "-patterns", "-planted", "-views",
)  # fmt: skip
"""An experiment writes NAME.tsv and a table for each of these; rules name their tables by `layout.table_pattern`."""
FILES = (".tsv", ".json", ".svg")
"""Endings of files that lie beside the folders of experiments."""


@cache
def rule_names() -> frozenset[str]:
    """The names that the workflow's files give to rules; a target is a rule, too, and two may not have one name.

    Raises:
        UserError: no file lies beside the package, as after an installation that is not editable.
    """
    files = sorted(RULE_FILES.glob("*.smk"))
    if not files:
        raise UserError(
            f"{RULE_FILES}: expected the workflow's rules beside its package, found none; install the package from the "
            "clone, by `make install` or `pip install --editable`."
        )
    return frozenset(RULE.findall("\n".join(file.read_text(encoding="utf-8") for file in files)))


def _made_rules(project: ProjectSettings) -> Iterator[str]:
    """The names of the rules that the workflow makes in loops."""
    yield from (f"draw_{figure}" for figure in get_args(Figure) if figure != "none")
    for cohort, settings in project.cohorts.items():
        if settings.source == "simulate":
            yield from (f"simulate_scans_{cohort}_shard-{number:02d}" for number in range(settings.shards))


def check_names(project: ProjectSettings) -> None:
    """Check all names of a config, which become file names.

    Raises:
        UserError: a name cannot be a file name, collides with other files or targets, or none is given.
    """
    check_name("project", project.project)
    for cohort, settings in project.cohorts.items():
        if settings.kind == "connectivity":
            check_name(f"cohorts.{cohort}.atlas", settings.atlas)
    for key in ("cohorts", "variants", "experiments"):
        table: Mapping[str, object] = getattr(project, key)
        if not table and key != "variants":
            raise UserError(f"config: {key}: expected at least one, found none; add it.")
        for name in table:
            check_name(key, name)
    if REPORTS in project.cohorts:
        raise UserError(f"config: cohorts.{REPORTS}: results/{REPORTS} holds the reports; rename the cohort.")
    rules = {*rule_names(), *_made_rules(project)}
    for name in project.experiments:
        if name in RESERVED_EXPERIMENTS or name in rules:
            raise UserError(f"config: experiments.{name}: `snakemake {name}` is another target; rename it.")
        if name.endswith(QUICK):
            raise UserError(
                f"config: experiments.{name}: a name may not end in {QUICK}, which names the same experiment with one "
                "repeat; rename it."
            )
        for ending in (*TABLE_ENDINGS, *FILES):
            if name.endswith(ending):
                raise UserError(
                    f"config: experiments.{name}: a name may not end in {ending}, which ends the name of another file "
                    "of an experiment; rename it."
                )


def known(name: str, table: Mapping[str, Value], where: str, kind: str) -> Value:
    """The entry of that name; a UserError if there is none, with the nearest name and all the others."""
    if name not in table:
        raise UserError(
            f"{where}: expected the name of a {kind}, found {name!r}{nearest(name, list(table))} Write one of: "
            f"{', '.join(sorted(table))}."
        )
    return table[name]


def check_name(key: str, name: str) -> None:
    """Refuse (UserError) a name that cannot be a part of a path and of a rule's wildcards."""
    if not ALLOWED.fullmatch(name) or len(name) > MAX_LENGTH:
        raise UserError(
            f"config: {key}: expected a name of letters, digits, `-`, `_` and `.`, at most {MAX_LENGTH}, found "
            f"{name!r}; rename it, with a letter or a digit first."
        )
