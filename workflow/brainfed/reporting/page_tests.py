"""One p for a difference on a whole page, in all sentences, stars and tables.

Holm's correction depends on the family of comparisons. With two families, one difference could be significant in one
place of a page and not in another. A difference from the experiment's reference has the p of
the test tables, which count every method in every metric and scope that is tested: one family an experiment. Any other
has the p of the comparisons with a method that stands beside others on every page (those, and its own variants), or of
all federated methods with one that is not; the larger p if it is among both. A sentence with such a p states its
family.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from brainfed.evaluation.experiment import compare_with_reference
from brainfed.evaluation.scores import INSTITUTION
from brainfed.reporting.intervals import Interval, values
from brainfed.reporting.scored import Scored
from brainfed.reporting.variants import ShownVariant


@dataclass(frozen=True)
class PageTests:
    """The comparisons of one experiment's page.

    Attributes:
        scored: the runs.
        variants: all variants of the experiment.
        reference: reference variant of the test tables and of the stars in its figure.
    """

    scored: Scored
    variants: Sequence[ShownVariant]
    reference: str
    _known: dict[tuple[str, ...], dict[str, tuple[Interval, float]]] = field(default_factory=dict, repr=False)
    _defined: dict[tuple[str, str], bool] = field(default_factory=dict, repr=False)
    _family: "list[pd.Series[float]]" = field(default_factory=list, repr=False)

    def differences(self, centre: str, others: Sequence[str], metric: str) -> dict[str, tuple[Interval, float]]:
        """Every other variant minus `centre`, paired by run, and its p on this page (NaN: too few runs).

        Args:
            centre: the variant that the others are compared with.
            others: their names.
            metric: one metric.
        """
        names = [name for name in dict.fromkeys(others) if name != centre]
        found = self._compared(centre, names, metric)
        return {name: (difference, self._p(centre, name, names, metric)) for name, (difference, _) in found.items()}

    def counted(self, centre: str, others: Sequence[str], metric: str) -> str:
        """The family of Holm's correction: `over all 60 comparisons with FedGCN in the tests below`; empty over one."""
        title, table = self._title(centre), len(self._table().dropna())
        if centre == self.reference:
            return (
                f"over all {table} comparisons with {title} in the tests below, methods, metrics and scopes"
                if table > 1
                else ""
            )
        count = len(self._together(centre, others, metric))
        said = f"over the {count} comparisons with {title} on this page, metric by metric" if count > 1 else ""
        if self.reference not in others or table == 1:
            return said
        family = f"over the {table} of the tests below"
        return f"{said}, against {self._title(self.reference)} {family}" if said else family

    def _p(self, centre: str, other: str, others: Sequence[str], metric: str) -> float:
        if not self._has_values(other, metric):
            return float("nan")
        for one, beside in ((centre, other), (other, centre)):
            if one == self.reference:
                return float(self._table()[beside, metric, INSTITUTION])
        found = []
        for one, beside, asked in ((centre, other, others), (other, centre, [])):
            together = self._together(one, asked, metric)
            if beside in together:
                found.append(self._compared(one, together, metric)[beside][1])
        return float(np.max(found))

    def _table(self) -> "pd.Series[float]":
        """(variant, metric, scope) -> p of the test tables, computed once."""
        if not self._family:
            tests = compare_with_reference(
                self.scored.runs, self.reference, self.scored.ratio, pooled=self.scored.pooled
            )
            self._family.append(tests.set_index(["variant", "metric", "scope"])["p_holm"])
        return self._family[0]

    def _compared(self, centre: str, others: Sequence[str], metric: str) -> dict[str, tuple[Interval, float]]:
        """The families of comparisons, computed once."""
        key = (metric, centre, *others)
        if key not in self._known:
            self._known[key] = self.scored.differences(centre, others, metric)
        return self._known[key]

    def _together(self, centre: str, asked: Sequence[str], metric: str) -> list[str]:
        """All comparisons of the page with `centre`, whatever the call asks for."""
        everybody = self._others(centre, metric)
        own = self._variant(centre)
        if own.beside:
            always = {*own.beside, *(variant.name for variant in self.variants if variant.method == own.method)}
        elif own.family != "federated":
            always = {variant.name for variant in self.variants if variant.family == "federated"}
        else:
            always = set()
        return [name for name in everybody if name in always or name in asked]

    def _others(self, centre: str, metric: str) -> list[str]:
        names = [variant.name for variant in self.variants if variant.name != centre]
        return [name for name in names if self._has_values(name, metric)]

    def _has_values(self, name: str, metric: str) -> bool:
        """Whether a variant has a defined value, looked up once."""
        if (name, metric) not in self._defined:
            self._defined[name, metric] = bool(len(values(self.scored.runs, name, metric)))
        return self._defined[name, metric]

    def _variant(self, name: str) -> ShownVariant:
        return next(variant for variant in self.variants if variant.name == name)

    def _title(self, name: str) -> str:
        return self._variant(name).title
