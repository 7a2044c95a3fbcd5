"""`config/README.md`: the keys that most studies change, every key of a study, every key of the methods."""

import re

from brainfed.configuration.manual.first_keys import first_keys
from brainfed.configuration.manual.methods import method_sections
from brainfed.configuration.manual.rows import link
from brainfed.configuration.manual.sections import study_sections
from brainfed.configuration.manual.texts import PREAMBLE


def manual() -> str:
    """The page that lists every key, its type, its default and its meaning."""
    sections = [first_keys(), *study_sections(), *method_sections()]
    titles = [title for section in sections[1:] for title in re.findall("^## (.*)$", section, re.M)]
    parts = [title for title in titles if "." not in title.removesuffix(".NAME")]
    contents = "All parts: " + ", ".join(map(link, parts)) + "."
    return "\n".join([PREAMBLE, f"{contents}\n", *sections])
