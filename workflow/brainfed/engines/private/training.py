"""A network of single subjects in every institution, in private steps or the same steps without privacy."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from brainfed.engines.parameter_names import parameters_by_wire_name
from brainfed.engines.private.clients import PrivateClients
from brainfed.engines.private.cohort import PrivateCohort
from brainfed.engines.training import Training
from brainfed.federation.ledger import Ledger
from brainfed.federation.privacy.schedule import PrivateSchedule
from brainfed.samples.labelled_subjects import IntArray, LabelledSubjects

POOLED = "pooled"
"""Name of the one trainer of a central training."""


@dataclass(frozen=True, kw_only=True)
class PrivateTraining(Training[LabelledSubjects, PrivateSchedule]):
    """A network that sees one subject alone; a federated one shares all of its parameters.

    Attributes:
        network: fold, place of the institution -> its network with initial weights, float32 on the CPU.
        cohort: (M,) positions of each institution's subjects -> `PrivateCohort.of` with their arguments.
        axes: sizes of axes that the ledger knows.
        record_data: records what leaves the institutions before the first round: pooled data, or a shared graph.
        noted: numbers for the outcome.
    """

    network: Callable[[int, int], torch.nn.Module]
    cohort: Callable[[Sequence[IntArray]], PrivateCohort]
    axes: Mapping[str, int]
    record_data: Callable[[Ledger], None] | None = None
    noted: Mapping[str, int] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """(M,) names of the trainers."""
        return (POOLED,) if self.topology == "central" else self.inputs.institutions

    @property
    def counts(self) -> Mapping[str, int]:
        """Those of the method."""
        return self.noted

    def ledger(self) -> Ledger:
        """Has the rows of `record_data`."""
        ledger = Ledger(self.shared_tensors, self.axes)
        if self.record_data and len(self.inputs.institutions) > 1:
            self.record_data(ledger)
        return ledger

    def clients(self, folds: tuple[int, ...], ledger: Ledger) -> PrivateClients:
        """The institutions.

        Raises:
            UserError: the privacy settings do not fit the cohort.
        """
        del ledger
        modules = [[self._network(fold, place) for fold in folds] for place in range(len(self.members))]
        shares = parameters_by_wire_name(modules[0][0]) if self.federated else ()
        cohort = self.cohort(self.members)
        return PrivateClients(modules, cohort, self.schedule, self.inputs.streams, shares, self.names)

    def _network(self, fold: int, place: int) -> torch.nn.Module:
        return self.network(fold, place).to(self.run.device, getattr(torch, self.run.precision))
