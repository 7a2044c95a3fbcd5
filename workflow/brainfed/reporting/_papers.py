"""What a family adds to the page: its panels, and works to cite.

A family declares one `Paper` in `papers`, whose `pages` lists it; `figures` and `beside` list the family's figures and
what its methods stand beside. Nothing in `reporting` knows which families there are: the scripts that draw and write
the report hand these lists over.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from jinja2 import BaseLoader, PrefixLoader

from brainfed.reporting._citations import Citation
from brainfed.reporting.panels import Panel


@dataclass(frozen=True)
class Cited:
    """Works to cite where one of these methods was run; without methods in every report."""

    works: tuple[Citation, ...]
    methods: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Paper:
    """One family.

    Attributes:
        name: of the family; the names of its templates begin with it: `NAME/panel.html.j2`.
        templates: where these templates are; None without panels.
        panels: in the order of the page at each place.
    """

    name: str
    templates: BaseLoader | None = None
    panels: tuple[Panel, ...] = ()
    cites: tuple[Cited, ...] = ()


def templates_of(papers: Sequence[Paper]) -> BaseLoader:
    """The templates of all panels, `NAME/panel.html.j2`."""
    return PrefixLoader({paper.name: paper.templates for paper in papers if paper.templates is not None})


def works_of(papers: Sequence[Paper], methods: Collection[str]) -> list[Citation]:
    """The works to cite for methods of these names, each once."""
    cited = [each for paper in papers for each in paper.cites if not each.methods or each.methods & set(methods)]
    return list(dict.fromkeys(work for each in cited for work in each.works))
