"""Scores printed in the paper of GAHFL, by cohort, method, term left out and share of public subjects."""

from collections.abc import Mapping
from typing import NamedTuple

from brainfed.reporting.variants import ShownVariant

GAHFL_PAPER = "gahfl"
"""An experiment's `paper` that has these numbers beside it."""
GAHFL_SOURCE = (
    "Hu et al., Heterogeneous structured federated learning with graph convolutional aggregation for MRI-based mental "
    "disorder diagnosis, International Joint Conference on Neural Networks 2024, Tables III and IV"
)


class Printed(NamedTuple):
    """Accuracy, specificity, sensitivity and AUC, with patients as the positive class."""

    accuracy: float
    specificity: float
    sensitivity: float
    auc: float


Numbers = Mapping[tuple[str, str, float], Printed]
"""Method, term left out, share of public subjects -> printed scores."""

ABIDE: Numbers = {
    ("fedgems", "none", 0.2): Printed(0.6583, 0.6761, 0.6411, 0.6546),
    ("fedet", "none", 0.2): Printed(0.6489, 0.7234, 0.6028, 0.6550),
    ("gahfl", "none", 0.2): Printed(0.6751, 0.6975, 0.6611, 0.6690),
    ("fedgems", "none", 0.3): Printed(0.6799, 0.6458, 0.7512, 0.6759),
    ("fedet", "none", 0.3): Printed(0.6897, 0.6623, 0.7369, 0.6846),
    ("gahfl", "none", 0.3): Printed(0.6980, 0.7250, 0.6814, 0.6928),
    ("fedgems", "none", 0.4): Printed(0.6934, 0.7048, 0.6823, 0.6913),
    ("fedet", "none", 0.4): Printed(0.6950, 0.6938, 0.7033, 0.6922),
    ("gahfl", "none", 0.4): Printed(0.7140, 0.7083, 0.7281, 0.7084),
    ("gahfl", "bce", 0.3): Printed(0.6653, 0.6401, 0.7101, 0.6604),
    ("gahfl", "sd", 0.3): Printed(0.6744, 0.6959, 0.6580, 0.6744),
    ("gahfl", "wd", 0.3): Printed(0.6662, 0.6790, 0.6560, 0.6649),
}


def _swapped(accuracy: float, specificity: float, sensitivity: float, auc: float) -> Printed:
    """Scores printed with controls as the positive class.

    Of 358 patients and 581 controls, the printed specificity and sensitivity give the printed accuracy this way alone.
    """
    return Printed(accuracy, sensitivity, specificity, auc)


ADHD200: Numbers = {
    ("fedgems", "none", 0.2): _swapped(0.6543, 0.6982, 0.6165, 0.6560),
    ("fedet", "none", 0.2): _swapped(0.6366, 0.7112, 0.5885, 0.6433),
    ("gahfl", "none", 0.2): _swapped(0.6634, 0.7577, 0.6101, 0.6729),
    ("fedgems", "none", 0.3): _swapped(0.6722, 0.7507, 0.6210, 0.6794),
    ("fedet", "none", 0.3): _swapped(0.6682, 0.7347, 0.6195, 0.6721),
    ("gahfl", "none", 0.3): _swapped(0.6855, 0.7683, 0.6341, 0.6943),
    ("fedgems", "none", 0.4): _swapped(0.6856, 0.7442, 0.6395, 0.6893),
    ("fedet", "none", 0.4): _swapped(0.6806, 0.7528, 0.6296, 0.6870),
    ("gahfl", "none", 0.4): _swapped(0.6996, 0.7751, 0.6441, 0.7041),
    ("gahfl", "bce", 0.3): _swapped(0.6540, 0.7394, 0.6000, 0.6634),
    ("gahfl", "sd", 0.3): _swapped(0.6691, 0.7474, 0.6193, 0.6782),
    ("gahfl", "wd", 0.3): _swapped(0.6630, 0.7138, 0.6228, 0.6661),
}

COHORTS: Mapping[str, Numbers] = {"abide": ABIDE, "adhd200": ADHD200}
"""A cohort whose name begins so -> its numbers."""
SWAPPED = frozenset({"adhd200"})

MEAN_DROPS: Mapping[tuple[str, str], float] = {
    ("gahfl", "abide"): 0.0249,
    ("gahfl", "adhd200"): 0.0255,
    ("fedgems", ""): 0.0334,
    ("fedet", ""): 0.0418,
}
"""Method, cohort -> mean drop of accuracy over PAF and OFOM (section III-D); no cohort: over both."""


def paper_cohort_of(cohort: str) -> str:
    """`abide` or `adhd200`; empty for another cohort."""
    return next((name for name in COHORTS if cohort.lower().startswith(name)), "")


def printed_scores(cohort: str, variant: ShownVariant) -> Printed | None:
    """The printed scores of a variant on this cohort of the paper; None where the paper has none.

    Sizes of networks and numbers of rounds do not count: the page lists which of them differ.
    """
    ratio = variant.setting("public.ratio")
    changed = variant.is_poisoned or variant.is_defended or variant.setting("gcna_training") == "l_wd"
    if not cohort or ratio is None or changed:
        return None
    return COHORTS[cohort].get((variant.method, variant.setting("without") or "none", float(ratio)))


def mean_drop(method: str, cohort: str) -> float | None:
    """The printed mean drop of accuracy under both attacks; None for another method or cohort."""
    return MEAN_DROPS.get((method, cohort), MEAN_DROPS.get((method, ""))) if cohort else None
