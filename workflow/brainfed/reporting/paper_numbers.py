"""Numbers printed in the papers, to stand beside ours (FedNI Table V, Sec. IV-B)."""

from collections.abc import Mapping

PAPER_METRICS = ("accuracy", "auc", "precision", "recall", "f1")
FEDNI_SOURCE = (
    "Peng et al., FedNI, IEEE Transactions on Medical Imaging 2023, Table V: mean (standard deviation), "
    "five institutions at random, 5-fold cross-validation, five repeats"
)
FEDNI_COHORTS: Mapping[str, str] = {
    "abide": "ABIDE I and II, 485 patients and 544 controls",
    "adni": "ADNI, 375 patients with Alzheimer's disease and 536 with mild cognitive impairment",
}

PaperRow = tuple[tuple[float, float], ...]

FEDNI_TABLE_V: Mapping[str, Mapping[str, PaperRow]] = {
    "abide": {
        "localgcn": ((0.600, 0.012), (0.598, 0.011), (0.580, 0.012), (0.559, 0.017), (0.560, 0.012)),
        "centralgcn": ((0.655, 0.008), (0.654, 0.008), (0.635, 0.010), (0.633, 0.015), (0.633, 0.011)),
        "fedmlp": ((0.630, 0.011), (0.627, 0.011), (0.618, 0.017), (0.573, 0.029), (0.591, 0.015)),
        "fedgcn": ((0.644, 0.009), (0.643, 0.009), (0.625, 0.011), (0.616, 0.022), (0.613, 0.012)),
        "fedsage-plus": ((0.658, 0.006), (0.655, 0.008), (0.641, 0.013), (0.627, 0.017), (0.626, 0.009)),
        "fedni": ((0.667, 0.006), (0.663, 0.007), (0.647, 0.009), (0.640, 0.014), (0.637, 0.007)),
    },
    "adni": {
        "localgcn": ((0.703, 0.016), (0.695, 0.018), (0.666, 0.022), (0.637, 0.037), (0.643, 0.028)),
        "centralgcn": ((0.757, 0.007), (0.750, 0.006), (0.734, 0.013), (0.691, 0.014), (0.710, 0.008)),
        "fedmlp": ((0.731, 0.026), (0.721, 0.030), (0.625, 0.081), (0.631, 0.077), (0.625, 0.079)),
        "fedgcn": ((0.742, 0.007), (0.735, 0.009), (0.704, 0.010), (0.693, 0.014), (0.692, 0.009)),
        "fedsage-plus": ((0.751, 0.008), (0.744, 0.009), (0.722, 0.008), (0.699, 0.015), (0.700, 0.010)),
        "fedni": ((0.758, 0.007), (0.754, 0.007), (0.725, 0.008), (0.721, 0.017), (0.717, 0.011)),
    },
}
"""Cohort -> method -> (mean, standard deviation) of `PAPER_METRICS`."""


def paper_cohort(cohort: str) -> tuple[str, bool]:
    """Which column stands beside a cohort, and whether it is about the same collection."""
    for name in FEDNI_COHORTS:
        if cohort.lower().startswith(name):
            return name, True
    return "abide", False
