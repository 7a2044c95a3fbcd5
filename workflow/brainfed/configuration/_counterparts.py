"""The counterparts of a federated variant in its experiment: the same model, trained alone and on pooled data.

A counterpart reads the same features, compares people in the same graph but for its scope, and has the same settings of
the model. Settings of the federation (rounds, noise, selection) are no part of a model. No other model stands in for a
counterpart that the experiment lacks.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from brainfed.configuration._project import defaults_of
from brainfed.configuration.planning import Experiment, Variant
from brainfed.configuration.stages.registry import kinds_of, stage_keys
from brainfed.federation import FederationSettings
from brainfed.methods import METHODS, SHIPPED_VARIANTS, Method

Side = Literal["alone", "pooled"]
SIDES: tuple[Side, ...] = ("alone", "pooled")
OPTIMISER = {"learning_rate", "weight_decay"}
"""Settings of the federation that shape the model too, where its counterpart is trained by gradient."""
SITE_EFFECTS = (
    "The federated method z-scores features inside each institution, its pooled counterpart over everybody: their "
    "difference includes the effect of removing what differs between sites."
)
POISON = "Its counterparts train on honest data."


def find_counterparts(variant: Variant, variants: Sequence[Variant]) -> dict[str, dict[str, Any]]:
    """Side -> the fields of `reporting._variants.Counterpart`; the name is empty where the experiment has none.

    `variants` are all of the experiment. A variant that is not federated has no counterparts.
    """
    comparison = variant.method.comparison
    if comparison is None:
        return {}
    differs = comparison.differs if comparison.differs_under.items() <= variant.settings.items() else ""
    scaled = SITE_EFFECTS if variant.settings.get("standardise") == "institution" else ""
    poisoned = variant.settings.get("attack", "none") != "none" and variant.settings["attacked"] > 0
    reasons = {"alone": [differs], "pooled": [differs, scaled]}
    return {
        side: {
            **_counterpart(variant, variants, side, [*reasons[side], POISON if poisoned else ""]),
            "other_model": comparison.other_model,
        }
        for side in SIDES
    }


def counterparts_of(experiment: Experiment) -> dict[str, dict[str, str]]:
    """Federated variant -> side -> its counterpart in the experiment; sides without one are left out."""
    named = {}
    for variant in experiment.variants:
        sides = find_counterparts(variant, experiment.variants).items()
        if own := {side: str(fields["name"]) for side, fields in sides if fields["name"]}:
            named[variant.name] = own
    return named


def topology_of(variant: Variant) -> str:
    """`local`, `federated` or `central`: where a variant trains."""
    topology = variant.method.topology
    return str(variant.settings["training"]) if topology == "setting" else topology


def _counterpart(variant: Variant, variants: Sequence[Variant], side: Side, differs: Sequence[str]) -> dict[str, Any]:
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
    """The settings that a counterpart must share, and those that it lacks; empty where it has all."""
    comparison = variant.method.comparison
    apart = comparison.apart if comparison else ()
    federation = {field.name for field in fields(FederationSettings)} - OPTIMISER | {*apart}
    known, usual = {field.name for field in fields(method.settings)}, defaults_of(variant.method.settings)
    model = {key: value for key, value in variant.settings.items() if key not in federation}
    cannot = [
        f"{key}: {value}"
        for key, value in model.items()
        if key not in known and key not in OPTIMISER and value != usual[key]
    ]
    return {key: value for key, value in model.items() if key in known}, ", ".join(cannot)


def _stages(variant: Variant, counterpart: Method, *, pooled: bool) -> dict[str, dict[str, Any]]:
    """Settings of the stages that a counterpart of this method shares."""
    settings = variant.stage_settings()
    return {kind.key: kind.shared(settings[kind.key], pooled=pooled) for kind in kinds_of(counterpart)}


def _epochs(variant: Variant, *, pooled: bool = False) -> int:
    """Epochs of training in all; 0 where a model is fitted to its end.

    A server that trains a model of its own has epochs of its own, which its counterpart on pooled data shares.
    """
    settings = variant.settings
    each = "global_epochs" if pooled and "global_epochs" in settings else "local_epochs"
    return int(settings.get("epochs", settings.get("rounds", 0) * settings.get(each, 0)))


def _length(variant: Variant, counterpart: Variant, *, pooled: bool) -> str:
    own, others = _epochs(variant, pooled=pooled), _epochs(counterpart)
    return (
        ""
        if own == others or not others
        else f"{variant.name} trains for {own} epochs, {counterpart.name} for {others}."
    )


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
    variant: Variant, plain: Variant | None, counterpart: Method, *, pooled: bool
) -> dict[str, dict[str, Any]]:
    """Settings of the shared stages that differ from the plain variant's, or from the defaults."""
    stages: dict[str, dict[str, Any]] = {}
    for kind in kinds_of(counterpart):
        usual = plain.stage_settings()[kind.key] if plain else defaults_of(kind.settings_class(counterpart))
        shared = kind.shared(variant.stage_settings()[kind.key], pooled=pooled)
        if changed := {key: value for key, value in shared.items() if value != usual[key]}:
            stages[kind.key] = kind.shortened(changed)
    return stages


def _yaml(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_yaml, value))}]"
    return value if isinstance(value, str) else json.dumps(value)
