"""Panel: time, memory and counts of every method."""

from dataclasses import dataclass

from brainfed.reporting.panels.known import Known
from brainfed.reporting.panels.panel import Panel, Place
from brainfed.reporting.tables.exchanges import Cost, read_costs


@dataclass(frozen=True)
class Costs:
    """The costs of an experiment, a row a variant."""

    rows: list[Cost]

    @property
    def inpaints(self) -> bool:
        """Whether any variant trains a generator first."""
        return any(cost.inpainting_counts for cost in self.rows)

    @property
    def prepares(self) -> bool:
        """Whether any variant has a fitted or built stage before training."""
        return any(cost.preparation for cost in self.rows)


def _content(known: Known) -> Costs:
    return Costs(read_costs(known.outline.variants))


PANEL = Panel("costs", Place.COST, _content, "panels/costs.html.j2")
