"""A site's config beside the study's file that it extends: a change of the study is refused at home already."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from brainfed.configuration.loading import extended, extends, load_plan, read_config
from brainfed.configuration.planning.plan import Plan
from brainfed.deployment.introduction import require_same_settings, settings_of


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


def _studies(config: Mapping[str, Any]) -> Iterator[Path]:
    """The files that are a study's, among those that a config extends: the nearest first."""
    for path in reversed(extends(config)):
        content = read_config(path)
        study = extended(content).get("study")
        if isinstance(study, Mapping) and study.get("sites") and not study.get("site"):
            yield path
        yield from _studies(content)
