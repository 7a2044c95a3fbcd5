"""Draw the mermaid flowcharts of the documents as SVG when the site is built: no browser, no script in the page.

Hosts of code draw the same text with mermaid. This reads the part of its language that the documents use: the header
`flowchart BT`, boxes `name["title: description"]` and arrows `name --> other`. Anything else is a warning, which stops
`make docs`.
"""

import re
from collections.abc import Mapping
from html import escape
from math import inf
from textwrap import wrap

import networkx as nx
from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util import logging

HEADER = "flowchart BT"
BOX = r'(\w+)(?:\["([^"]+)"\])?'
STATEMENT = re.compile(rf"{BOX}(?:\s*-->\s*{BOX})?")

WIDTH, HEIGHT = 204, 58
"""Pixels of a box."""
GAP, RISE = 20, 34
"""Pixels between two boxes of a row, and between two rows."""
LETTERS = 31
"""Letters in a line of a description."""

logger = logging.getLogger(__name__)


def read_flowchart(text: str) -> nx.DiGraph:
    """Return the boxes, each with its `title`, and the arrows of a mermaid flowchart.

    Raises ValueError for a line that is neither header, box nor arrow, and for arrows that run in a circle.
    """
    header, *lines = [line.strip() for line in text.splitlines() if line.strip()]
    if header != HEADER:
        raise ValueError(f"flowchart: expected {HEADER!r} in the first line, found {header!r}")
    graph = nx.DiGraph()
    for line in lines:
        statement = STATEMENT.fullmatch(line)
        if not statement:
            raise ValueError(f'flowchart: expected name["title"] or name --> name, found {line!r}')
        start, start_title, end, end_title = statement.groups()
        for name, title in ((start, start_title), (end, end_title)):
            if name:
                graph.add_node(name, **({"title": title} if title else {}))
        if end:
            graph.add_edge(start, end)
    if not nx.is_directed_acyclic_graph(graph):
        raise ValueError(f"flowchart: expected arrows without a circle, found {nx.find_cycle(graph)}")
    return graph


def place_boxes(graph: nx.DiGraph) -> tuple[nx.DiGraph, dict[object, tuple[float, int]]]:
    """Return the graph with every arrow divided at each row that it passes, and the (middle, row) of each node in it.

    A box stands one row below the lowest box that its arrows lead to, in their middle where there is space.
    Row 0 is at the top. The point at which an arrow passes a row has a place of its own, so no box hides an arrow.
    """
    rows: list[list[object]] = [list(row) for row in nx.topological_generations(graph.reverse())]
    row_of = {name: number for number, row in enumerate(rows) for name in row}
    divided = nx.DiGraph()
    for start, end in graph.edges:
        passed = [(start, end, number) for number in range(row_of[start] - 1, row_of[end], -1)]
        for point in passed:
            rows[point[2]].append(point)
        nx.add_path(divided, [start, *passed, end])
    middles: dict[object, float] = {}
    for row in rows:
        above = {node: [middles[end] for end in divided.successors(node)] for node in row}
        middles |= spread({node: sum(ends) / len(ends) if ends else 0.0 for node, ends in above.items()})
    left = min(middles[name] for name in graph) - WIDTH / 2
    return divided, {node: (middles[node] - left, number) for number, row in enumerate(rows) for node in row}


def spread(wanted: Mapping[object, float]) -> dict[object, float]:
    """Return middles of the nodes of a row that do not overlap, near the wanted ones and in their order."""
    order = sorted(wanted, key=lambda node: wanted[node])
    places: dict[object, float] = {}
    free = -inf
    for node in order:
        half = WIDTH / 2 if isinstance(node, str) else 0
        places[node] = max(wanted[node], free + half)
        free = places[node] + half + GAP
    shift = sum(places[node] - wanted[node] for node in order) / len(order)
    return {node: place - shift for node, place in places.items()}


def draw_flowchart(graph: nx.DiGraph) -> str:
    """Return the flowchart as an SVG element, whose colours are those of the page (`site.css`)."""
    divided, places = place_boxes(graph)
    width = max(x for x, _ in places.values()) + WIDTH / 2 + 2
    height = (max(row for _, row in places.values()) + 1) * (HEIGHT + RISE) - RISE + 2
    said = "; ".join(f"{start} to {end}" for start, end in graph.edges)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape("Arrows: " + said)}" '
        f'width="{width:.0f}" height="{height}" viewBox="-1 -1 {width:.0f} {height}">',
        '<defs><marker id="arrowhead" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    for start, end in divided.edges:
        (x, row), (to_x, to_row) = places[start], places[end]
        y, to_y = row * (HEIGHT + RISE), to_row * (HEIGHT + RISE) + HEIGHT
        path = f"M{x:.0f} {y}C{x:.0f} {y - RISE / 2:.0f} {to_x:.0f} {to_y + RISE / 2:.0f} {to_x:.0f} {to_y}"
        through = "" if end in graph else f"V{to_y - HEIGHT}"
        drawn.append(f'<path d="{path}{through}"' + (' marker-end="url(#arrowhead)"/>' if end in graph else "/>"))
    for name, title in graph.nodes(data="title", default=""):
        x, y = places[name][0], places[name][1] * (HEIGHT + RISE)
        head, _, description = (title or name).partition(": ")
        lines = wrap(description, LETTERS)
        first = y + HEIGHT / 2 + 4 - 7.5 * len(lines)
        drawn.append(f'<rect x="{x - WIDTH / 2:.0f}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4"/>')
        for number, line in enumerate((head, *lines)):
            kind = "" if number else ' class="name"'
            drawn.append(f'<text x="{x:.0f}" y="{first + 15 * number:.1f}"{kind}>{escape(line)}</text>')
    return "\n".join([*drawn, "</svg>"])


class Flowchart(Directive):
    """A fence of mermaid."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the drawing, or nothing but a warning for text that is not understood."""
        try:
            drawn = draw_flowchart(read_flowchart("\n".join(self.content)))
        except ValueError as problem:
            place = (self.state.document.settings.env.docname, self.lineno)
            logger.warning("%s", problem, location=place)
            return []
        return [nodes.raw("", f'<div class="flowchart" tabindex="0">\n{drawn}\n</div>', format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive of the fence."""
    app.add_directive("mermaid", Flowchart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
