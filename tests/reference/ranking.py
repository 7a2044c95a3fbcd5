"""AUC as what it means: how often a patient outranks a control, ties counting half."""

from collections.abc import Sequence


def auc_by_pairs(label: Sequence[int], score: Sequence[float]) -> float:
    patients = [s for s, y in zip(score, label, strict=True) if y == 1]
    controls = [s for s, y in zip(score, label, strict=True) if y == 0]
    wins = sum((p > c) + (p == c) / 2 for p in patients for c in controls)
    return wins / (len(patients) * len(controls))
