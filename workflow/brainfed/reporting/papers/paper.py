"""What a family of methods brings to the page: its panels, and works to cite.

A family declares one `Paper` in `methods/FAMILY/paper`, and `methods.papers` lists it, with the family's figures and
what its methods stand beside. Nothing in `reporting` knows which families there are: the scripts that draw and write
the report hand these lists over.
"""

from dataclasses import dataclass

from jinja2 import BaseLoader

from brainfed.reporting.manuscript.citations import Citation
from brainfed.reporting.panels.panel import Panel


@dataclass(frozen=True)
class Cited:
    """Works to cite where a method was run.

    Attributes:
        works: in the order of the list.
        methods: names of the methods; empty: in every report.
    """

    works: tuple[Citation, ...]
    methods: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Paper:
    """One family.

    Attributes:
        name: of the family; the names of its templates begin with it: `NAME/panel.html.j2`.
        templates: where these templates are; None without panels.
        panels: in the order of the page at each place.
        cites: works to cite.
    """

    name: str
    templates: BaseLoader | None = None
    panels: tuple[Panel, ...] = ()
    cites: tuple[Cited, ...] = ()
