"""Accuracy of the site predicted from the embedding of each kind of graph (`evaluation.site_trace`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from brainfed.evaluation.site_trace import SiteTrace, site_trace
from brainfed.reporting.tables.homophily import ShownGraph, distinct_titles

COLUMNS = ("graph", "title", "group", "accuracy", "chance", "subjects", "sites", "left_out")


def site_trace_table(graphs: Sequence[ShownGraph]) -> pd.DataFrame:
    """One row an embedding of a group of subjects: an institution, or all.

    Graphs that differ in their edges alone share an embedding and its row: shuffled controls, other numbers of
    neighbours, a graph over all subjects before and after the cut, and the same graph in every repeat.
    """
    rows = []
    seen: set[tuple[bytes, bytes]] = set()
    apart = [_uncut(shown) for shown in graphs if not shown.shuffled]
    for shown, title in zip(apart, distinct_titles(apart, ["embedding_dimensions"]), strict=True):
        site = shown.codes("site")
        for group, members in _groups(shown).items():
            embedding = shown.graph.embedding[members]
            points = (members.tobytes(), embedding.tobytes())
            if points not in seen:
                seen.add(points)
                rows.append((shown.name, title, group, *_values(site_trace(embedding, site[members]))))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _uncut(shown: ShownGraph) -> ShownGraph:
    """The graph before the cut; a cut removes edges and keeps the embedding."""
    return replace(shown, scope="global") if shown.scope == "global_cut" else shown


def _groups(shown: ShownGraph) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Positions of the subjects that share one projection."""
    if shown.scope != "local":
        return {"everybody": np.arange(len(shown.people))}
    institution = shown.people["institution"]
    return {str(name): np.flatnonzero(institution == name) for name in sorted(institution.dropna().unique())}


def _values(trace: SiteTrace) -> tuple[float, float, int, int, int]:
    return trace.accuracy, trace.chance, trace.subjects, trace.sites, trace.left_out


@dataclass(frozen=True)
class SiteRow:
    """One kind of graph: the mean over its embeddings with two sites or more.

    Attributes:
        title: `inside institutions` or `over everybody`.
        accuracy: mean accuracy; NaN if no embedding has two sites.
        chance: mean share of the largest site.
        lowest: lowest accuracy of an embedding.
        highest: highest accuracy of an embedding.
        embeddings: number of these embeddings.
        sites: fewest and most sites of an embedding.
        subjects: fewest and most subjects of an embedding.
        left_out: most sites that an embedding leaves out as too small.
        fewest_subjects: fewest subjects of an embedding; 0 if no embedding has two sites.
    """

    title: str
    accuracy: float
    chance: float
    lowest: float
    highest: float
    embeddings: int
    sites: str
    subjects: str
    left_out: int
    fewest_subjects: int = 0


def site_rows(table: pd.DataFrame) -> list[SiteRow]:
    """The rows of the page, one a kind of graph."""
    return [_row(str(title), group) for title, group in table.groupby("title", sort=False)]


def _row(title: str, group: pd.DataFrame) -> SiteRow:
    scored = group.dropna(subset=["accuracy"])
    if scored.empty:
        return SiteRow(title, np.nan, np.nan, np.nan, np.nan, 0, "", "", 0)
    accuracy = scored["accuracy"]
    return SiteRow(
        title, float(accuracy.mean()), float(scored["chance"].mean()), float(accuracy.min()), float(accuracy.max()),
        len(scored), _range(scored["sites"]), _range(scored["subjects"]), int(scored["left_out"].max()),
        int(scored["subjects"].min()),
    )  # fmt: skip


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low}\u2013{high}"
