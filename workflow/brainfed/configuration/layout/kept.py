"""What the job that keeps a model writes beside its weights: how a new patient's series becomes features."""

from typing import Any

from brainfed.cohort.settings.splits import SplitSettings
from brainfed.configuration.layout.cohort_inputs import CohortInputs
from brainfed.configuration.planning.experiments import Variant

KEEP = "brainfed.prediction.keeping:keep"
"""Named as a string, so that an edit of predictions trains no method again whose models nobody keeps."""


def kept_parameters(variant: Variant, cohort: CohortInputs, split: SplitSettings) -> dict[str, Any]:
    """The entry points of the job, and the description of the model: builtins."""
    return {
        "keep": KEEP,
        "score": variant.method.capabilities.model,
        "about": {
            "variant": variant.name,
            "method": variant.method.name,
            "title": variant.method.title,
            "settings": variant.settings,
            "cohort": cohort.name,
            "drawn": "sites" if split.validation == "leave_one_site_out" else split.institutions,
            "target": cohort.settings.target,
            "class_names": list(cohort.settings.class_names),
            "features": variant.stages["features"].values,
            "series": {
                **cohort.settings_of(
                    *("source", "atlas", "header", "transposed", "variable"),
                    *("min_timepoints", "constant_regions", "extraction"),
                ),
                "by_run": cohort.averages_runs(),
            },
        },
    }
