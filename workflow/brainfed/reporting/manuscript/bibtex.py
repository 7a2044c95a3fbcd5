"""The cited works as BibTeX, from the sentences of the list of citations."""

import re
from collections.abc import Sequence

from brainfed.reporting.manuscript.citations import Citation

WORK = re.compile(r"(?P<authors>.+?) \((?P<year>\d{4})\)\. (?P<title>.+?)\. (?P<venue>.+)\.$")
"""`Last F, Last F (2021). Title. Venue 12, 3–4.`"""
ARTICLE = re.compile(r"(?P<journal>[^,]+) (?P<volume>\d+), (?P<pages>\d+(?:\u2013\d+)?)$")
PREPRINT = re.compile(r"arXiv (?P<eprint>[\d.]+)$")
PAGES = re.compile(r"(?P<booktitle>.+), (?P<pages>\d+\u2013\d+)$")
OTHERS = " et al."
SPECIAL = str.maketrans({"&": r"\&", "%": r"\%", "_": r"\_", "#": r"\#"})


def bibtex(works: Sequence[Citation]) -> str:
    """One entry a work, keys such as `bellec2010` and, if one is taken, `bellec2010b`."""
    taken: set[str] = set()
    return "\n\n".join(_entry(work, taken) for work in works)


def _entry(work: Citation, taken: set[str]) -> str:
    found = WORK.match(work.text)
    if found is None:
        raise ValueError(f"expected `Authors (year). Title. Venue.`, found {work.text!r}")
    kind, place = _place(found["venue"])
    fields = {
        "author": _authors(found["authors"]),
        "title": f"{{{found['title']}}}",
        **place,
        "year": found["year"],
        **({"doi": work.doi} if work.doi else {}),
    }
    key = _key(found["authors"], found["year"], taken)
    lines = [
        f"  {name} = {{{value.translate(SPECIAL) if name != 'doi' else value}}}," for name, value in fields.items()
    ]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])


def _place(venue: str) -> tuple[str, dict[str, str]]:
    """Type of an entry, and the fields of what holds it."""
    if (article := ARTICLE.match(venue)) is not None:
        return "article", {**article.groupdict(), "pages": article["pages"].replace("\u2013", "--")}
    if (preprint := PREPRINT.match(venue)) is not None:
        return "misc", {"eprint": preprint["eprint"], "archiveprefix": "arXiv"}
    if (paged := PAGES.match(venue)) is not None:
        return "inproceedings", {"booktitle": paged["booktitle"], "pages": paged["pages"].replace("\u2013", "--")}
    return "inproceedings", {"booktitle": venue}


def _authors(listed: str) -> str:
    """`Last, F and Last, F`, with `others` for et al."""
    names = [_name(name) for name in listed.removesuffix(OTHERS).split(", ")]
    return " and ".join([*names, *(["others"] if listed.endswith(OTHERS) else [])])


def _name(name: str) -> str:
    last, _, initials = name.rpartition(" ")
    return f"{last}, {initials}"


def _key(authors: str, year: str, taken: set[str]) -> str:
    first = _name(authors.removesuffix(OTHERS).split(", ")[0]).split(",")[0]
    stem = re.sub(r"\W", "", first).lower() + year
    free = next(key for key in (stem, *(f"{stem}{letter}" for letter in "bcdefgh")) if key not in taken)
    taken.add(free)
    return free
