"""What several papers bring together, in their order."""

from collections.abc import Collection, Sequence

from jinja2 import BaseLoader, PrefixLoader

from brainfed.reporting.manuscript.citations import Citation
from brainfed.reporting.panels.panel import Panel
from brainfed.reporting.papers.paper import Paper


def panels_of(papers: Sequence[Paper]) -> list[Panel]:
    """All panels."""
    return [panel for paper in papers for panel in paper.panels]


def templates_of(papers: Sequence[Paper]) -> BaseLoader:
    """The templates of all panels, `NAME/panel.html.j2`."""
    return PrefixLoader({paper.name: paper.templates for paper in papers if paper.templates is not None})


def works_of(papers: Sequence[Paper], methods: Collection[str]) -> list[Citation]:
    """The works to cite for methods of these names, each once."""
    cited = [one for paper in papers for one in paper.cites if not one.methods or one.methods & set(methods)]
    return list(dict.fromkeys(work for one in cited for work in one.works))
