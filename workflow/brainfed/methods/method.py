"""What a method declares: its settings, the stages it needs, what it lets cross institutions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from brainfed.federation.schedule import Topology


@dataclass(frozen=True)
class Twins:
    """What a federated method is compared with: the same model on other data, or the nearest one.

    Attributes:
        alone: shipped variant that trains the model in every institution alone.
        pooled: shipped variant that trains it on everybody's data in one place.
        differs: a sentence on what else differs from the federated method; empty where nothing does.
        other_model: where no method has the same model, how the twins' model is called in a headline.
    """

    alone: str
    pooled: str
    differs: str = ""
    other_model: str = ""


@dataclass(frozen=True)
class Method:
    """One row (or several variants of it) of the results table.

    Attributes:
        name: the key used in config.
        title: how tables and figures call it.
        settings: a frozen dataclass, every field made with `runtime.settings.setting`.
        entry: `module:function` of its training side,
            `(MethodInputs, settings, Run) -> Outcome`.
        family: how the report groups it.
        topology: where it trains: `local`, every institution a model of its own; `federated`; `central`, on pooled
            data; `setting`, as its setting `training` says.
        twins: of a federated method, the same or the nearest model trained alone and on pooled data.
        needs: the stages whose artefacts its job reads, as `configuration.stages` names them (`features`, `graph`,
            `fused`); what these are made of follows.
        options: stage -> what the method declares for it, as the stage's kind has it: an inpainter, settings of fusing.
        gpu: whether a GPU helps.
        shared_tensors: every kind of tensor that may leave an institution: name -> its axes. An axis called
            `subjects` flags the method in the report.
        variants: shipped variants, name -> settings that differ from the defaults.
    """

    name: str
    title: str
    settings: type
    entry: str
    family: Literal["baseline", "linear", "graph", "federated"]
    topology: Topology | Literal["setting"]
    twins: Twins | None = None
    needs: tuple[str, ...] = ("features",)
    options: Mapping[str, Any] = field(default_factory=dict)
    gpu: bool = False
    shared_tensors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
