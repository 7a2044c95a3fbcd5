"""Figures as the page holds them: the SVG inside an image's address, a caption, and words for who cannot see it.

An image of its own keeps the ids and styles of one SVG away from those of all others.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from brainfed.runtime.errors import UserError


@dataclass(frozen=True)
class Picture:
    """One figure of the page."""

    name: str
    address: str
    caption: str
    alternative: str


def read_captions(files: Sequence[str | Path]) -> dict[str, str]:
    """Figure -> caption in plain text, from `NAME.rst` files."""
    return {Path(path).stem: " ".join(Path(path).read_text(encoding="utf-8").split()) for path in files}


def read_pictures(figures: Mapping[str, str], captions: Mapping[str, str], subject: str) -> dict[str, Picture]:
    """Embed SVGs.

    Args:
        figures: name -> SVG file.
        captions: name -> caption.
        subject: what the figures are about; it ends the words for who cannot see them.

    Raises:
        UserError: a figure has no caption.
    """
    absent = sorted(set(figures) - set(captions))
    if absent:
        raise UserError(f"report: the figure {absent[0]!r} has no caption; write workflow/report/{absent[0]}.rst.")
    return {name: _picture(name, path, captions[name], subject) for name, path in figures.items()}


def _picture(name: str, path: str, caption: str, subject: str) -> Picture:
    content = base64.b64encode(Path(path).read_bytes()).decode("ascii")
    first = caption.split(". ")[0].rstrip(".:")
    return Picture(name, f"data:image/svg+xml;base64,{content}", caption, f"{first} ({subject})")
