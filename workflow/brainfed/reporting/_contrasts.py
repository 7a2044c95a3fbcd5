"""Effect sizes of features between patients and controls, or between a class and all others.

Descriptive: they use every analysed subject and no method reads them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from brainfed.cohort import DIAGNOSIS_WORDS, ClassWords
from brainfed.imaging import FeatureSettings, connectivity
from brainfed.runtime import Float64, IntArray, read_table

FALSE_DISCOVERY_RATE = 0.05


@dataclass(frozen=True)
class GroupEffects:
    """One value a feature.

    Attributes:
        effect: Cohen's d, patients minus controls; 0 without variance.
        p: two-sided p of Student's t-test.
        counts: number of patients and of controls.
    """

    effect: Float64
    p: Float64
    counts: tuple[int, int]
    words: ClassWords

    @property
    def chance_sd(self) -> float:
        """Standard deviation of d for equal groups (large samples)."""
        return float(np.sqrt(1 / self.counts[0] + 1 / self.counts[1]))

    @property
    def discoveries(self) -> int:
        """Features that differ at a false discovery rate of 5 % (Benjamini & Hochberg)."""
        return int((stats.false_discovery_control(self.p) <= FALSE_DISCOVERY_RATE).sum())

    @property
    def counted(self) -> dict[str, int]:
        """Discoveries and subjects, as entries of a summary."""
        return {"discoveries": self.discoveries, "patients": self.counts[0], "controls": self.counts[1]}

    def strongest(self, count: int) -> IntArray:
        """Positions of the `count` largest |d|, the strongest first."""
        return np.argsort(-np.abs(self.effect), kind="stable")[:count]


@dataclass(frozen=True)
class GroupConnectivity(GroupEffects):
    """The same for every connection of R regions by its Fisher z, in `np.triu_indices(R, 1)` order.

    `patients` and `controls` have the mean correlation of each group, averaged as Fisher z.
    """

    regions: tuple[str, ...]
    patients: Float64
    controls: Float64

    def ends(self) -> tuple[IntArray, IntArray]:
        """The two regions of every connection."""
        return np.triu_indices(len(self.regions), 1)


def compare_groups(
    series: Mapping[str, NDArray[np.float32]],
    diagnosis: Mapping[str, int],
    regions: tuple[str, ...],
    words: ClassWords = DIAGNOSIS_WORDS,
    runs: Mapping[str, Sequence[int]] | None = None,
) -> GroupConnectivity:
    """Compare the Pearson connectivity of patients (1) and controls (0), from the series (time, R) of every subject.

    `runs`: subject -> lengths of its runs, for subjects with the mean connectivity over runs.
    """
    z = connectivity(series, FeatureSettings("pearson", fisher_z=True), runs).astype(np.float64)
    patient = np.array([diagnosis[subject] == 1 for subject in sorted(series)])
    effects = group_effects(z, patient, words)
    means = np.tanh(z[patient].mean(axis=0)), np.tanh(z[~patient].mean(axis=0))
    return GroupConnectivity(effects.effect, effects.p, effects.counts, words, regions, *means)


def group_effects(values: Float64, patient: NDArray[np.bool_], words: ClassWords = DIAGNOSIS_WORDS) -> GroupEffects:
    """Compare the rows of `values` (n, d) of patients, in the mask (n,), with the others."""
    first, second = values[patient], values[~patient]
    counts = (len(first), len(second))
    pooled = ((counts[0] - 1) * first.var(axis=0, ddof=1) + (counts[1] - 1) * second.var(axis=0, ddof=1)) / (
        sum(counts) - 2
    )
    difference = first.mean(axis=0) - second.mean(axis=0)
    effect = np.divide(difference, np.sqrt(pooled), out=np.zeros_like(difference), where=pooled > 0)
    t = effect / np.sqrt(1 / counts[0] + 1 / counts[1])
    p = 2 * stats.t.sf(np.abs(t), sum(counts) - 2)
    return GroupEffects(effect, p, counts, words)


def labelled_subjects(participants: str, included: str) -> dict[str, int]:
    """Analysed subject -> code of its class, in the order of the subjects' ids; those without a class are left out."""
    decided = read_table(included, ["subject", "included"])
    known = read_table(participants, ["subject", "diagnosis"]).set_index("subject")["diagnosis"].dropna()
    chosen = set(decided.loc[decided["included"], "subject"]) & set(known.index)
    return {subject: int(known[subject]) for subject in sorted(chosen)}


def joined(summaries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The summary of one contrast, or of several under `contrasts`."""
    return summaries[0] if len(summaries) == 1 else {"contrasts": list(summaries)}


def networks(regions: tuple[str, ...]) -> list[tuple[str, int, int]]:
    """Runs of regions with the same name before the last `-` or `_`: (name, first, last + 1).

    Empty if the names have no networks: fewer than two runs, or runs of fewer than two regions on average.
    """
    cuts = [max(name.rfind("-"), name.rfind("_"), 0) for name in regions]
    prefixes = [name[:cut] for name, cut in zip(regions, cuts, strict=True)]
    starts = [index for index in range(len(regions)) if index == 0 or prefixes[index] != prefixes[index - 1]]
    ends = [*starts[1:], len(regions)]
    if not 2 <= len(starts) <= len(regions) / 2 or "" in prefixes:
        return []
    return [(prefixes[start], start, end) for start, end in zip(starts, ends, strict=True)]
