"""The shape of a whole config: cohorts, the stages' defaults, variants, experiments, the report."""

from dataclasses import dataclass
from typing import Any, Literal

from brainfed.cohort.settings.cohort import CohortSettings
from brainfed.cohort.settings.public import PublicSettings
from brainfed.cohort.settings.splits import SplitSettings
from brainfed.federation.apart.study_settings import StudySettings
from brainfed.graphs.connectome.settings import ConnectomeSettings
from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.series.settings import SeriesSettings
from brainfed.imaging.settings import FeatureSettings
from brainfed.inpainting.settings import FusingSettings, InpaintingSettings
from brainfed.runtime.settings import setting

Protocol = Literal["transductive", "inductive"]
Labels = Literal["true", "permuted"]
Figure = Literal[
    "none", "bars", "line", "surface", "rounds", "distribution", "clients", "cost", "fidelity", "dose", "readings"
]


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
