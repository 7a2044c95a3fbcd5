"""From the definition of a variant to its method, its settings and the stages that it reads."""

from dataclasses import asdict, replace
from typing import Any

from brainfed.configuration.names import known
from brainfed.configuration.planning.stages import (
    FeatureStage,
    FusingStage,
    GraphStage,
    InpaintingStage,
    Regime,
    Variant,
    stage_name,
)
from brainfed.configuration.planning.sweeps import STAGE_KEYS, Definition, stage_settings
from brainfed.configuration.project import ProjectSettings
from brainfed.configuration.validation import validate
from brainfed.graphs.settings import GraphSettings
from brainfed.imaging.settings import FeatureSettings
from brainfed.inpainting.settings import FusingSettings, InpaintingSettings
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS
from brainfed.runtime.errors import UserError


def check_definition(project: ProjectSettings, name: str, definition: Definition) -> None:
    """Validate a variant that no experiment need name.

    Raises:
        UserError: an unknown method or setting, with the nearest valid name.
    """
    where = f"variants.{name}"
    method, _ = _method_settings(where, definition)
    features = _features(project, definition, where)
    graph = _graph(project, method, definition, where, features)
    if method.inpainter is not None:
        _inpainting(project, method, definition, where)
        _refuse_unknown_truth(where, _fusing(project, method, definition, where), graph)


def resolve_variant(project: ProjectSettings, name: str, definition: Definition, regime: Regime) -> Variant:
    """A variant under a regime, with its stages.

    Raises:
        UserError: an unknown method or setting, with the nearest valid name.
    """
    where = f"variants.{name}"
    method, settings = _method_settings(where, definition)
    features = graph = fused = None
    if method.features:
        features = _feature_stage(_features(project, definition, where), regime)
    if method.graph != "none" and features is not None:
        graph = _graph_stage(
            _unseen(_graph(project, method, definition, where, features.settings), regime), features, regime
        )
    _refuse_true_labels(where, features, graph, regime)
    _refuse_no_labels(where, graph, regime)
    if method.inpainter is not None and graph is not None:
        _refuse_unseen(where, method, regime)
        inpainting = _inpainting_stage(_inpainting(project, method, definition, where), method, graph)
        fused = _fusing_stage(_fusing(project, method, definition, where), inpainting)
        _refuse_unknown_truth(where, fused.settings, graph.settings)
    return Variant(name, method, settings, features, graph, fused)


def _refuse_true_labels(where: str, features: FeatureStage | None, graph: GraphStage | None, regime: Regime) -> None:
    """Features and graphs that are chosen by the true diagnoses have no place in a null control."""
    if regime.labels != "permuted":
        return
    for key, reads in (
        ("features.selection", features is not None and features.settings.reads_labels),
        ("graph.embedding", graph is not None and graph.settings.fitted),
    ):
        if reads:
            raise UserError(
                f"{where}.{key}: expected no rfe under `labels: permuted`, found rfe, which is fitted on the true "
                "diagnoses; leave the variant out of the experiment with permuted labels."
            )


def _refuse_no_labels(where: str, graph: GraphStage | None, regime: Regime) -> None:
    """An institution that is left out has no training labels to choose features by, and components do not correlate."""
    if graph is None or not regime.unseen:
        return
    settings = graph.settings
    if (settings.scope, settings.embedding, settings.distance) == ("local", "rfe", "correlation"):
        raise UserError(
            f"{where}.graph.distance: expected euclidean with `embedding: rfe` in graphs of an institution that is "
            "left out, which has no training labels to choose features by, found correlation; choose `embedding: none`."
        )


def _unseen(settings: GraphSettings, regime: Regime) -> GraphSettings:
    """A site that counts as unseen shapes no graph of the others, as it would before a cut that it takes part in."""
    cut = settings.scope == "global_cut"
    return replace(settings, scope="local") if cut and not regime.generates else settings


def _refuse_unknown_truth(where: str, fusing: FusingSettings, graph: GraphSettings) -> None:
    """Nobody is missing where nothing was cut."""
    if fusing.nodes == "true" and graph.scope != "global_cut":
        raise UserError(
            f"{where}.fusing.nodes: `true` puts back the subjects that a cut took away, and `graph.scope: "
            f"{graph.scope}` cuts nothing; expected `graph.scope: global_cut`."
        )


def completes_graph(definition: Definition) -> bool:
    """Whether a variant trains a generator."""
    return METHODS[str(definition["method"])].inpainter is not None


def _refuse_unseen(where: str, method: Method, regime: Regime) -> None:
    """A site that counts as unseen must not have trained the generator."""
    if not regime.generates:
        raise UserError(
            f"{where}: the generator of method {method.name!r} would be trained on the site that is left out, which "
            "`protocol: transductive` shows to it; use `protocol: inductive`, or leave the variant out of the "
            "experiment with `validation: leave_one_site_out`."
        )


def _method_settings(where: str, definition: Definition) -> tuple[Method, dict[str, Any]]:
    """The method that a variant names, and all its settings."""
    if "method" not in definition:
        raise UserError(f"{where}: `method` is missing; name one of {', '.join(sorted(METHODS))}.")
    method: Method = known(str(definition["method"]), METHODS, f"{where}.method", "method")
    read = stage_settings(method)
    for stage in STAGE_KEYS:
        if definition.get(stage) and stage not in read:
            raise UserError(f"{where}.{stage}: method {method.name!r} reads no {stage}; remove the key.")
    own = {key: value for key, value in definition.items() if key != "method" and key not in STAGE_KEYS}
    return method, asdict(validate(method.settings, own, where))


def _own(definition: Definition, stage: str) -> dict[str, Any]:
    """A variant's own settings of a stage."""
    return dict(definition.get(stage) or {})


def _features(project: ProjectSettings, definition: Definition, where: str) -> FeatureSettings:
    """Settings of the features, those that do not count at their defaults."""
    given = asdict(project.features) | _own(definition, "features")
    settings = validate(FeatureSettings, given, f"{where}.features")
    if not settings.reads_labels:
        settings = _unselected(settings)
    return settings if settings.harmonise != "none" else _unharmonised(settings)


def _unselected(settings: FeatureSettings) -> FeatureSettings:
    """All features, of which labels select none."""
    return replace(settings, selection=FeatureSettings.selection, selected=FeatureSettings.selected)


def _unharmonised(settings: FeatureSettings) -> FeatureSettings:
    """The features with all that differs between sites."""
    return replace(
        settings,
        harmonise=FeatureSettings.harmonise,
        harmonise_covariates=FeatureSettings.harmonise_covariates,
        harmonise_bayes=FeatureSettings.harmonise_bayes,
    )


def _graph(
    project: ProjectSettings, method: Method, definition: Definition, where: str, features: FeatureSettings
) -> GraphSettings:
    """Settings of the graph; measures in different units are brought to one scale."""
    inside = "local" if project.graph.scope == "local" else "global_cut"
    scopes = {"none": project.graph.scope, "local": inside, "global": "global"}
    given = {"scope": scopes[method.graph]} | _own(definition, "graph")
    settings = validate(GraphSettings, asdict(project.graph) | given, f"{where}.graph")
    if method.graph == "local" and settings.scope == "global":
        raise UserError(
            f"{where}.graph.scope: method {method.name!r} trains inside institutions, which a `global` graph joins; "
            "use `local`, or `global_cut` for a simulation."
        )
    if settings.embedding == "none":
        settings = replace(settings, embedding_dimensions=GraphSettings.embedding_dimensions)
    return replace(settings, scaling="columns") if features.kind == "morphometry" else settings


def _inpainting(project: ProjectSettings, method: Method, definition: Definition, where: str) -> dict[str, Any]:
    """Settings of the method's inpainter; the project's are those of FedNI's alone."""
    assert method.inpainter is not None
    kind = method.inpainter.settings
    below = asdict(project.inpainting) if kind is InpaintingSettings else {}
    return asdict(validate(kind, below | _own(definition, "inpainting"), f"{where}.inpainting"))


def _fusing(project: ProjectSettings, method: Method, definition: Definition, where: str) -> FusingSettings:
    given = asdict(project.fusing) | dict(method.fusing) | _own(definition, "fusing")
    return validate(FusingSettings, given, f"{where}.fusing")


def _feature_stage(settings: FeatureSettings, regime: Regime) -> FeatureStage:
    split = regime.split if settings.fitted else ""
    slug = settings.connectivity if settings.kind == "connectivity" else settings.kind
    name = stage_name(slug, [asdict(settings), split])
    below = _unharmonised(_unselected(settings))
    whole = _feature_stage(below, regime) if settings.fitted and not below.fitted else None
    return FeatureStage(name, settings, split, whole)


def _graph_stage(settings: GraphSettings, features: FeatureStage, regime: Regime) -> GraphStage:
    content = [features.name, regime.split, regime.protocol, asdict(settings)]
    slug = f"{settings.scope.replace('_', '-')}-k{settings.k}"
    return GraphStage(stage_name(slug, content), settings, features, regime.split, regime.protocol)


def _inpainting_stage(settings: dict[str, Any], method: Method, graph: GraphStage) -> InpaintingStage:
    assert method.inpainter is not None
    inpainter = method.inpainter
    name = stage_name(inpainter.name, [graph.name, inpainter.name, settings])
    return InpaintingStage(name, inpainter, settings, graph)


def _fusing_stage(settings: FusingSettings, inpainting: InpaintingStage) -> FusingStage:
    name = stage_name(inpainting.inpainter.name, [inpainting.name, asdict(settings)])
    return FusingStage(name, settings, inpainting)
