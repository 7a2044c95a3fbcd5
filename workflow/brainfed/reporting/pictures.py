"""Figures in the page: the SVG as data URI of an image, a caption, and alternative text.

A separate image keeps the ids and styles of one SVG apart from all others.
"""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from brainfed.cohort.class_words import ClassWords
from brainfed.runtime.errors import UserError

OF_SNAKEMAKE = "workflow"
"""The caption of Snakemake's own report, which has slots of its own."""


@dataclass(frozen=True)
class Picture:
    """One figure of the page.

    Attributes:
        name: kind of figure.
        anchor: unique on the page.
        address: the SVG as data URI.
        caption: caption in plain text.
        alternative: alternative text.
        finding: finding in the figure; empty without one.
    """

    name: str
    anchor: str
    address: str
    caption: str
    alternative: str
    finding: str = ""


def read_captions(files: Sequence[str | Path], words: ClassWords) -> dict[str, str]:
    """Figure -> caption in plain text, from `NAME.rst` files: templates with the slots of `ClassWords.slots`.

    A slot reads `{{ patients or "patients" }}`: Snakemake's own report fills none.
    """
    environment = Environment(undefined=StrictUndefined, autoescape=False)
    texts = {Path(path).stem: Path(path).read_text(encoding="utf-8") for path in files}
    return {
        name: " ".join(environment.from_string(text).render(words.slots).split())
        for name, text in texts.items()
        if name != OF_SNAKEMAKE
    }


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
    content = Path(path).read_bytes()
    encoded = base64.b64encode(content).decode("ascii")
    first = caption.split(". ")[0].rstrip(".:")
    title = re.search(r"<dc:title>(.*?)</dc:title>", content.decode("utf-8"), flags=re.DOTALL)
    finding = html.unescape(title[1]) if title else ""
    alternative = f"{first} ({subject})" + (f": {finding}" if finding else "")
    anchor = "-".join(["figure", name, *re.findall(r"[\w.]+", subject.lower())])
    return Picture(name, anchor, f"data:image/svg+xml;base64,{encoded}", caption, alternative, finding)
