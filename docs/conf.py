"""The documents as a site: `make docs`. Its index is docs/README.md; links lead somewhere, and no page loads anything.

Equations are MathML, made when the site is built: a browser shows them without a script or a font from elsewhere.
Flowcharts are SVG, drawn at the same time (`flowchart`).
"""

import posixpath
import re
import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).parent))

project = "brainfed"
root_doc = "docs/README"
include_patterns = [
    "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "docs/**.md", "config/README.md",
    "benchmarks/README.md",
]  # fmt: skip
exclude_patterns = [".venv", ".snakemake", "results", "resources", "tests", "workflow", "_site"]
extensions = ["myst_parser", "flowchart"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
html_theme = "furo"
html_title = "brainfed"
html_show_copyright = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
nitpicky = True

INDEXES = (root_doc, "docs/explanation/decisions/README")
"""Pages whose links to other pages are the contents of the site."""
HISTORY = "History"
"""The heading of a part that only refers to pages, whose places in the contents are elsewhere."""

UNREAD = re.compile(r"\\|<mi>&</mi>")
"""The converter passes on a command that it does not know, and an alignment mark outside a table."""

logger = logging.getLogger(__name__)


def add_contents(_app: Sphinx, name: str, source: list[str]) -> None:
    """Append the contents of an index, a part for each of its headings."""
    if name not in INDEXES:
        return
    parts = re.split(r"^#+ ", source[0], flags=re.MULTILINE)[1:]
    for part in parts:
        heading = part.partition("\n")[0]
        if heading == HISTORY:
            continue
        links = dict.fromkeys(re.findall(r"\]\(([^)#:]+)\.md\)", part))
        pages = "\n".join(posixpath.normpath(f"/{posixpath.dirname(name)}/{link}") for link in links)
        if pages:
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{pages}\n```\n"


def visit_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write an equation inside a sentence."""
    translator.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write an equation on a line of its own."""
    translator.body.append(translator.starttag(node, "div", CLASS="math") + mathml(node, "block") + "</div>\n")
    raise nodes.SkipNode


def mathml(node: nodes.math | nodes.math_block, display: str) -> str:
    """MathML of a LaTeX equation; a warning, which stops the build, if a part of it is not understood."""
    found = convert(node.astext(), display=display)
    if UNREAD.search(found):
        logger.warning("equation: expected LaTeX that latex2mathml reads, found %r", node.astext(), location=node)
    return found


def setup(app: Sphinx) -> None:
    """Connect the indexes and the equations."""
    app.connect("source-read", add_contents)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
