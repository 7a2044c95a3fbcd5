"""The twins of a federated variant in its experiment: the same model, trained alone and on pooled data.

A twin reads the same features, compares people in the same graph but for its scope, and has the same settings of the
model. Settings of the federation (rounds, noise, selection) are no part of a model. A variant without a twin in
its experiment has none: no other model stands in for it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from brainfed.configuration.planning.experiments import Experiment, Variant
from brainfed.configuration.project import defaults_of
from brainfed.configuration.stages.registry import kinds_of, stage_keys
from brainfed.federation.settings import FederationSettings
from brainfed.methods.method import Method
from brainfed.methods.registry import METHODS, SHIPPED_VARIANTS

Side = Literal["alone", "pooled"]
SIDES: tuple[Side, ...] = ("alone", "pooled")
OPTIMISER = {"learning_rate", "weight_decay"}
"""Settings of the federation that shape the model too, where its twin is trained by gradient."""


SITE_EFFECTS = (
    "The federated method z-scores features inside each institution, its pooled twin over everybody: their difference "
    "includes the effect of removing what differs between sites."
)
POISON = "Its twins train on honest data."


def find_twins(variant: Variant, variants: Sequence[Variant]) -> dict[str, dict[str, Any]]:
    """Side -> the fields of `reporting.variants.Twin`, whose name is empty where the experiment has no twin.

    Args:
        variant: of the experiment; one that is not federated has no twins.
        variants: all of the experiment.
    """
    twins = variant.method.comparison
    if twins is None:
        return {}
    differs = twins.differs if twins.differs_under.items() <= variant.settings.items() else ""
    scaled = {"pooled": SITE_EFFECTS} if variant.settings.get("standardise") == "institution" else {}
    poisoned = variant.settings.get("attack", "none") != "none" and variant.settings["attacked"] > 0
    return {
        side: {
            **_twin(variant, variants, side, [differs, scaled.get(side, ""), POISON if poisoned else ""]),
            "other_model": twins.other_model,
        }
        for side in SIDES
    }


def twins_of(experiment: Experiment) -> dict[str, dict[str, str]]:
    """Federated variant -> side -> its twin among the experiment's variants; sides without one are left out."""
    found = {variant.name: find_twins(variant, experiment.variants) for variant in experiment.variants}
    named = {
        name: {side: str(twin["name"]) for side, twin in twins.items() if twin["name"]} for name, twins in found.items()
    }
    return {name: sides for name, sides in named.items() if sides}


def topology_of(variant: Variant) -> str:
    """`local`, `federated` or `central`: where a variant trains."""
    topology = variant.method.topology
    return str(variant.settings["training"]) if topology == "setting" else topology


def _twin(variant: Variant, variants: Sequence[Variant], side: Side, differs: Sequence[str]) -> dict[str, Any]:
    shipped, pooled = str(getattr(variant.method.comparison, side)), side == "pooled"
    settings = {key: value for key, value in SHIPPED_VARIANTS[shipped].items() if key not in stage_keys()}
    method = METHODS[str(settings.pop("method"))]
    own, cannot = _model(variant, method)
    if cannot:
        return {"name": "", "differs": [], "missing": f"{method.title} has no setting {cannot}"}
    wanted = {**defaults_of(method.settings), **settings, **own}
    fitting = [
        other
        for other in variants
        if other.method is method
        and all(other.settings[key] == wanted[key] for key in (*settings, *own))
        and _stages(other, method, pooled=pooled) == _stages(variant, method, pooled=pooled)
    ]
    if fitting:
        length = _epochs(variant, pooled=pooled)
        nearest = sorted(fitting, key=lambda other: (other.name != shipped, _epochs(other) != length))[0]
        others = [*differs, _length(variant, nearest, pooled=pooled)]
        return {"name": nearest.name, "differs": list(filter(None, others)), "missing": ""}
    plain = next((other for other in variants if other.name in variant.method.variants), None)
    return {"name": "", "differs": [], "missing": f"add {_definition(variant, plain, method, side, settings, own)}"}


def _model(variant: Variant, method: Method) -> tuple[dict[str, Any], str]:
    """The settings that a twin must share, and those that it lacks; empty where it has all."""
    twins = variant.method.comparison
    federation = {field.name for field in fields(FederationSettings)} - OPTIMISER | set(twins.apart if twins else ())
    known, usual = {field.name for field in fields(method.settings)}, defaults_of(variant.method.settings)
    model = {key: value for key, value in variant.settings.items() if key not in federation}
    cannot = [
        f"{key}: {value}"
        for key, value in model.items()
        if key not in known and key not in OPTIMISER and value != usual[key]
    ]
    return {key: value for key, value in model.items() if key in known}, ", ".join(cannot)


def _stages(variant: Variant, twin: Method, *, pooled: bool) -> dict[str, dict[str, Any]]:
    """Settings of the stages that a twin of this method shares."""
    held = variant.stage_settings()
    return {kind.key: kind.shared(held[kind.key], pooled=pooled) for kind in kinds_of(twin)}


def _epochs(variant: Variant, *, pooled: bool = False) -> int:
    """Epochs of training in all; 0 where a model is fitted to its end.

    A server that trains a model of its own has epochs of its own, which its twin on pooled data shares.
    """
    settings = variant.settings
    each = "global_epochs" if pooled and "global_epochs" in settings else "local_epochs"
    return int(settings.get("epochs", settings.get("rounds", 0) * settings.get(each, 0)))


def _length(variant: Variant, twin: Variant, *, pooled: bool) -> str:
    own, others = _epochs(variant, pooled=pooled), _epochs(twin)
    return "" if own == others or not others else f"{variant.name} trains for {own} epochs, {twin.name} for {others}."


def _definition(
    variant: Variant,
    plain: Variant | None,
    method: Method,
    side: Side,
    settings: Mapping[str, Any],
    own: Mapping[str, Any],
) -> str:
    """The entry to add to a config: the name of a shipped variant, or a line that defines one."""
    usual = defaults_of(method.settings)
    changed = {key: value for key, value in own.items() if usual[key] != value}
    stages = _changed_stages(variant, plain, method, pooled=side == "pooled")
    if not changed and not stages:
        return str(getattr(variant.method.comparison, side))
    wanted = {"method": method.name, **settings, **changed, **stages}
    ready = [name for name, entry in SHIPPED_VARIANTS.items() if entry == wanted]
    return ready[0] if ready else f"a variant {_yaml(wanted)}"


def _changed_stages(
    variant: Variant, plain: Variant | None, twin: Method, *, pooled: bool
) -> dict[str, dict[str, Any]]:
    """Settings of the shared stages that differ from the plain variant's, or from the defaults."""
    found: dict[str, dict[str, Any]] = {}
    for kind in kinds_of(twin):
        usual = plain.stage_settings()[kind.key] if plain else defaults_of(kind.settings_class(twin))
        shared = kind.shared(variant.stage_settings()[kind.key], pooled=pooled)
        changed = {key: value for key, value in shared.items() if value != usual[key]}
        found |= {kind.key: kind.shortened(changed)} if changed else {}
    return found


def _yaml(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if isinstance(value, str) else json.dumps(value)
