"""The documents as a site: `make docs`. Its index is docs/README.md, and every link must lead somewhere."""

import posixpath
import re

from sphinx.application import Sphinx

project = "brainfed"
root_doc = "docs/README"
include_patterns = [
    "README.md", "ARCHITECTURE.md", "docs/*.md", "docs/decisions/*.md", "config/README.md", "benchmarks/README.md",
]  # fmt: skip
exclude_patterns = [".venv", ".snakemake", "results", "resources", "tests", "workflow", "_site"]
extensions = ["myst_parser"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "brainfed"
html_show_copyright = False
html_copy_source = False
nitpicky = True

INDEXES = (root_doc, "docs/decisions/README")
"""Pages whose links to other pages are the contents of the site."""


def add_contents(_app: Sphinx, name: str, source: list[str]) -> None:
    """Append the contents of an index, a part for each of its headings."""
    if name not in INDEXES:
        return
    parts = re.split(r"^#+ ", source[0], flags=re.MULTILINE)[1:]
    for part in parts:
        heading = part.partition("\n")[0]
        links = dict.fromkeys(re.findall(r"\]\(([^)#:]+)\.md\)", part))
        pages = "\n".join(posixpath.normpath(f"/{posixpath.dirname(name)}/{link}") for link in links)
        if pages:
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"


def setup(app: Sphinx) -> None:
    """Connect the indexes."""
    app.connect("source-read", add_contents)
