"""Figures in the page: inline SVGs with a caption and alternative text, and of charts the specification.

Text in a figure is text of the page: a browser finds it. Ids of one SVG carry the figure's name, apart from all others.
"""

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from zlib import crc32

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from brainfed.cohort import ClassWords
from brainfed.reporting.charts import SOURCE
from brainfed.runtime import UserError

OF_SNAKEMAKE = "workflow"
"""The caption of Snakemake's own report, which has slots of its own."""
GLOBAL_STYLE = re.compile(r"<style[^>]*>\*\{(.*?)\}</style>", re.DOTALL)
"""The rule for everything that matplotlib writes into every SVG."""

PARTS = re.compile(r' (?:role="graphics-[a-z]+"|aria-roledescription="[^"]*"|aria-hidden="true"|aria-label="[^"]*")')
"""Roles of single marks, which have no words of their own: the whole figure is one image."""
PHONE = 440.0
"""Pixels: a narrower chart is drawn for half a page, and needs no scroll bar on a phone."""
PATH, DIGITS = re.compile(r' d="([^"]*)"'), re.compile(r"(\.\d\d)\d+")
"""Outlines, which are read to a hundredth of a point."""


@dataclass(frozen=True)
class Picture:
    """One figure of the page.

    Attributes:
        name: kind of figure.
        anchor: unique on the page.
        drawing: the SVG.
        caption: caption in plain text.
        alternative: alternative text.
        finding: finding in the figure; empty without one.
        specification: of a Vega-Lite chart, as JSON; empty for other figures.
    """

    name: str
    anchor: str
    drawing: Markup
    caption: str
    alternative: str
    finding: str = ""
    specification: str = ""


def read_captions(files: Sequence[str | Path], words: ClassWords) -> dict[str, str]:
    """Figure -> caption in plain text, from `NAME.rst` files: templates with the slots of `ClassWords.slots`.

    A slot reads `{{ patients or "patients" }}`: Snakemake's own report fills none.
    """
    templates = {path.stem: _template(path.read_text(encoding="utf-8")) for path in map(Path, files)}
    templates.pop(OF_SNAKEMAKE, None)
    return {name: " ".join(template.render(words.slots).split()) for name, template in templates.items()}


@cache
def _template(text: str) -> Template:
    """A caption, compiled once for all cohorts of a process."""
    return Environment(undefined=StrictUndefined, autoescape=False).from_string(text)


def read_pictures(figures: Mapping[str, str], captions: Mapping[str, str], subject: str) -> dict[str, Picture]:
    """Embed SVGs.

    Args:
        figures: name -> SVG file.
        captions: name -> caption.
        subject: topic of the figures; the end of the alternative text.

    Raises:
        UserError: a figure has no caption.
    """
    absent = sorted(set(figures) - set(captions))
    if absent:
        raise UserError(f"report: the figure {absent[0]!r} has no caption; write workflow/report/{absent[0]}.rst.")
    return {name: _picture(name, path, captions[name], subject) for name, path in figures.items()}


def _picture(name: str, path: str, caption: str, subject: str) -> Picture:
    content = Path(path).read_text(encoding="utf-8")
    first = caption.split(". ")[0].rstrip(".:")
    finding = _metadata(content, "dc:title")
    alternative = f"{first} ({subject})" + (f": {finding}" if finding else "")
    anchor = "-".join(["figure", name, *re.findall(r"[\w.]+", subject.lower())])
    specification = _metadata(content, SOURCE).replace("<", "\\u003c")
    drawing = Markup(inline(content, f"f{crc32(anchor.encode()):x}", alternative))
    return Picture(name, anchor, drawing, caption, alternative, finding, specification)


def _metadata(content: str, element: str) -> str:
    match = re.search(rf"<{element}>(.*?)</{element}>", content, flags=re.DOTALL)
    return html.unescape(match[1]) if match else ""


def inline(content: str, prefix: str, alternative: str) -> str:
    """An SVG file as an element of a page: one image with alternative text; all its ids begin with `prefix`."""
    body = content[re.search(r"<svg\b", content).start() :]  # type: ignore[union-attr]
    body = re.sub(r"<!--.*?-->|<metadata.*?</metadata>", "", body, flags=re.DOTALL)
    used = set(re.findall(r"(?:url\(#|xlink:href=\"#)([^\")]+)", body))
    body = re.sub(r'\s+id="([^"]+)"', lambda match: f' id="{prefix}-{match[1]}"' if match[1] in used else "", body)
    body = re.sub(r'(url\(#|xlink:href="#)', rf"\g<1>{prefix}-", body)
    body = PARTS.sub("", PATH.sub(_shorter, body))
    style = GLOBAL_STYLE.search(body)
    body = GLOBAL_STYLE.sub("", body)
    root, rest = body.split(">", 1)
    drawn = re.search(r'\swidth="([\d.]+)(pt)?"', root)
    root = re.sub(r'\s(?:width|height|class|version|xmlns:dc|xmlns:rdf|xmlns:cc)="[^"]*"', "", root)
    width = ""
    if drawn and not drawn[2]:
        width = ("min-width:0;" if float(drawn[1]) < PHONE else "") + f"max-width:{drawn[1]}px;"
    shared = style[1].strip() if style else ""
    return f'{root} style="{width}{shared}" role="img" aria-label="{html.escape(alternative)}">{rest.strip()}'


def _shorter(path: re.Match[str]) -> str:
    """An outline on one line, to a hundredth of a point."""
    points = DIGITS.sub(r"\1", " ".join(path[1].split()))
    return f' d="{points}"'
