from ._experiments import Variant, Experiment, expand, swept_values, check_definition, REPEAT
from ._figures import knows_truth, scopes_of
from ._plan import Plan, make_plan, least_folds, split_content

__all__ = [
    "Variant", "Experiment", "expand", "swept_values", "check_definition", "REPEAT",
    "knows_truth", "scopes_of",
    "Plan", "make_plan", "least_folds", "split_content",
]
