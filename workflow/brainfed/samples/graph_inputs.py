"""Subjects as whole graphs: input of methods that classify graphs."""

from dataclasses import dataclass

from brainfed.samples.graph_samples import GraphSamples, check_graph_samples
from brainfed.samples.labelled_subjects import LabelledSubjects


@dataclass(frozen=True, kw_only=True)
class GraphInputs(LabelledSubjects):
    """One graph a subject.

    Attributes:
        graphs: the n graphs in the order of the subjects, shared by the folds, or such graphs of every fold.
        shapes: (M) features of a node and number of classes of every institution, where its data have fewer than the
            widest: columns beyond are zeros, labels beyond do not occur. Empty: all have all.

    Raises:
        ValueError: as of `LabelledSubjects`, or the graphs of a fold are not n, or differ in their node features.
        UserError: as of `LabelledSubjects`, or a graph is one that no network can read.
    """

    graphs: tuple[GraphSamples, ...]
    shapes: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Reject graphs of other subjects."""
        super().__post_init__()
        if len(self.graphs) not in (1, self.folds):
            raise ValueError(f"expected graphs for all folds or for each of {self.folds}, found {len(self.graphs)}")
        expected = (len(self.subjects), self.graphs[0].nodes.shape[1])
        for number, graphs in enumerate(self.graphs):
            if (len(graphs), graphs.nodes.shape[1]) != expected:
                raise ValueError(
                    f"expected {expected[0]} graphs with {expected[1]} features a node, found {len(graphs)} with "
                    f"{graphs.nodes.shape[1]}"
                )
            check_graph_samples(graphs, self.subjects, f"graphs of fold {number}" if len(self.graphs) > 1 else "graphs")

    def shape(self, institution: int) -> tuple[int, int]:
        """Features of a node and number of classes of an institution."""
        return self.shapes[institution] if self.shapes else (self.graphs[0].nodes.shape[1], self.classes)

    def fold_graphs(self, fold: int) -> GraphSamples:
        """The n graphs that fold `fold` uses."""
        return self.graphs[fold if len(self.graphs) > 1 else 0]
