"""A site's config beside the study's file that it extends: a change of the study is refused at home already."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from brainfed.configuration.loading import extended, extends, load_plan, read_config
from brainfed.configuration.planning.plan import Plan
from brainfed.deployment.introduction import require_same_settings, settings_of
from brainfed.runtime.errors import UserError


def require_study_of(config: Path, plan: Plan) -> None:
    """Refuse a site's config that changes the study which it extends.

    A config that extends no study is left to the coordinator.

    Args:
        config: the file of the site.
        plan: what it plans.

    Raises:
        UserError: a setting of the study differs, or the study's file is not valid by itself.
    """
    if not plan.project.study.site:
        return
    path = next(_studies(read_config(config)), None)
    if path is None:
        return
    study = load_plan(read_config(path), [path])
    require_same_settings(f"{config}: site {plan.project.study.site!r}", settings_of(plan), settings_of(study))


def require_extended_study(config: Path) -> None:
    """Refuse a site's config that extends no study, or has a cohort of another name: all that follows would mislead.

    Args:
        config: the file of the site; one of a coordinator passes.

    Raises:
        UserError: as above, or a file does not exist or is no YAML.
    """
    content = read_config(config)
    whole = extended(content)
    study = whole.get("study")
    if not isinstance(study, Mapping) or not study.get("site"):
        return
    if not study.get("sites"):
        raise UserError(
            f"{config}: expected `extends` with the path of the study's file beside `study.site: {study['site']}`, "
            "found no file that names the sites of a study; add it, as `extends: study.yaml`."
        )
    path = next(_studies(content), None)
    known = extended(read_config(path)).get("cohorts") if path is not None else None
    own = whole.get("cohorts")
    if not isinstance(known, Mapping) or not isinstance(own, Mapping):
        return
    if foreign := [str(name) for name in own if name not in known]:
        raise UserError(
            f"{config}: cohorts.{foreign[0]}: expected the cohort's name in {path}, {', '.join(map(str, known))}, "
            "found another; correct it."
        )


def _studies(config: Mapping[str, Any]) -> Iterator[Path]:
    """The files that are a study's, among those that a config extends: the nearest first."""
    for path in reversed(extends(config)):
        content = read_config(path)
        study = extended(content).get("study")
        if isinstance(study, Mapping) and study.get("sites") and not study.get("site"):
            yield path
        yield from _studies(content)
