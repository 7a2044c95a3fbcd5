"""Declaration of a method: its settings, the stages it needs, the tensors that may cross institutions."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from brainfed.federation import Topology

Family = Literal["baseline", "linear", "graph", "federated"]
Phenotype = Literal["age", "sex", "mean_fd"]
MethodTopology = Literal[Topology, "setting"]


@dataclass(frozen=True)
class Comparison:
    """What a federated method is compared with: the same or the nearest model, trained locally and on pooled data.

    Attributes:
        alone: shipped variant that trains the model in every institution alone.
        pooled: shipped variant that trains it on pooled data.
        differs: a sentence on any other difference from the federated method; empty without one.
        other_model: name of the compared model in a headline, if it is another model.
        apart: settings that are no part of the model, beside those of the federation.
        differs_under: settings of the federated method under which it `differs`; empty: always.
    """

    alone: str
    pooled: str
    differs: str = ""
    other_model: str = ""
    apart: tuple[str, ...] = ()
    differs_under: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Crossing:
    """What may leave an institution, and which real sites can train the method.

    Attributes:
        tensors: every kind of tensor that may leave an institution: name -> its axes. An axis called `subjects` flags
            the method in the report.
        between_sites: of a federated method that real sites can train, its settings that have fewer values there than
            in a simulation, name -> values; None: it runs in a simulation alone.
        leaves_out: of such a method, whether real sites can be left out in turn: the shared model scores the subjects
            of one that trained nothing.
        inner_grid: of such a method, the setting whose values inner folds of the training subjects choose from: with
            more than one value, numbers of every inner training set are added up too. Empty: it has no inner folds.
    """

    tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    between_sites: Mapping[str, tuple[Any, ...]] | None = None
    leaves_out: bool = False
    inner_grid: str = ""


@dataclass(frozen=True)
class Capabilities:
    """What a method can read and what it leaves behind.

    Attributes:
        views: whether it reads features of several views.
        own_features: whether it refuses features that depend on other subjects, as their fit has no privacy.
        patterns: whether it is a linear model, whose job leaves its patterns behind (`Outcome.patterns`).
        without_patterns: settings under which it leaves none.
        members: whether it scores the subjects that trained too (`Outcome.member_scores`), which the audit attacks.
        clusters: whether its server parts the institutions into clusters (`Outcome.clusters`).
        model: `module:function` that scores a subject alone by a kept model (`samples.Score`); empty:
            the method keeps none, and `Outcome.models` is empty.
        without_model: settings under which it keeps none.
        gpu: whether a GPU helps.
    """

    views: bool = False
    own_features: bool = False
    patterns: bool = False
    without_patterns: Mapping[str, Any] = field(default_factory=dict)
    members: bool = True
    clusters: bool = False
    model: str = ""
    without_model: Mapping[str, Any] = field(default_factory=dict)
    gpu: bool = False


@dataclass(frozen=True)
class Method:
    """One row (or several variants of it) of the results table.

    The string below the constant that holds it says in its first paragraph what the method is; the manual prints it.

    Attributes:
        name: the key used in config.
        title: its name in tables and figures.
        settings: a frozen dataclass, every field made with `runtime.setting`.
        entry: `module:function` of its training side,
            `(MethodInputs, settings, Run) -> Outcome`; `GraphInputs` if it needs `connectomes`, `SeriesInputs` if it
            needs `series`, `PublicSeriesInputs` if it needs `public` too.
        family: its group in the report.
        topology: `local`, one model an institution; `federated`; `central`, on pooled data; `setting`, the value of
            its setting `training`.
        comparison: for a federated method, the same or the nearest model trained locally and on pooled data.
        needs: the stages whose artefacts its job reads, as `configuration.stages` names them (`features`, `graph`,
            `fused`; or `connectomes` alone; or `series`, with or without `public`); the stages before these follow.
        phenotypes: the columns of the phenotype table that it reads beside site and diagnosis: `age`, `sex`, `mean_fd`.
            No other reaches its job: `MethodInputs.phenotypes` refuses it.
        options: stage -> the method's declaration for it: an inpainter, settings of fusing.
        crossing: what may leave an institution.
        capabilities: what it can read and what it leaves behind.
        quick: settings with which it trains in a second on a small cohort, for trials and tests; no job reads them. A
            variant's own settings go before them.
        variants: shipped variants, name -> settings that differ from the defaults.
        on_request: those of them that an experiment has only if it names them.
    """

    name: str
    title: str
    settings: type
    entry: str
    family: Family
    topology: MethodTopology
    comparison: Comparison | None = None
    needs: tuple[str, ...] = ("features",)
    phenotypes: tuple[Phenotype, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    crossing: Crossing = Crossing()
    capabilities: Capabilities = Capabilities()
    quick: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    on_request: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse words that mean nothing, and two kinds of samples: graphs, region series, and rows of features.

        Raises:
            ValueError: an unknown family, topology or phenotype; no setting `training` that decides the topology; it
                needs connectomes, or series, and another stage, but for public beside series.
        """
        self._refuse_unknown("family", get_args(Family), self.family)
        self._refuse_unknown("topology", get_args(MethodTopology), self.topology)
        self._refuse_unknown("phenotypes", get_args(Phenotype), *self.phenotypes)
        if self.topology == "setting" and "training" not in {each.name for each in fields(self.settings)}:
            raise ValueError(f"{self.name}: topology: expected a setting named training beside 'setting', found none")
        if "public" in self.needs and set(self.needs) != {"series", "public"}:
            raise ValueError(f"{self.name}: expected series and public, and no other stage, found {self.needs}")
        for alone in ("connectomes", "series"):
            if alone in self.needs and set(self.needs) - {alone, "public"}:
                raise ValueError(f"{self.name}: expected {alone} alone among the stages it needs, found {self.needs}")

    def _refuse_unknown(self, what: str, known: tuple[str, ...], *given: str) -> None:
        for word in given:
            if word not in known:
                raise ValueError(f"{self.name}: {what}: expected one of {', '.join(known)}, found {word!r}")


@dataclass(frozen=True)
class Inpainter:
    """One training algorithm of a generator.

    Attributes:
        name: slug of its stages.
        settings: a frozen dataclass, every field made with `runtime.setting`.
        train: `module:function`, `(InpaintingInputs, settings, Run) -> TrainedGenerator`.
        load: `module:function`, `(InpaintingInputs, settings, ArrayFile, Run) -> NodeGenerator`.
        shared_tensors: every kind of tensor that may leave an institution: name -> its axes.
        max_generated: the setting that limits the generated nodes of one subject; empty: only the cap limits them.
    """

    name: str
    settings: type
    train: str
    load: str
    shared_tensors: Mapping[str, tuple[str, ...]]
    max_generated: str = ""


def inpainter_of(method: Method) -> Inpainter | None:
    """The inpainter of the generator that a method needs; None if it needs none."""
    inpainter = method.options.get("inpainting")
    assert inpainter is None or isinstance(inpainter, Inpainter)
    return inpainter
