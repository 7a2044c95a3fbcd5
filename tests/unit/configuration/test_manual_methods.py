"""Keys that methods share: printed once, and no key of any method lost."""

import re
from dataclasses import dataclass, fields, replace

import pytest

from brainfed.configuration.manual import anchor, manual, own_rows, rows, rows_of_class, shared_classes, summaries
from brainfed.methods import METHODS
from brainfed.runtime import setting


def sections():
    """Anchor of a heading -> the text below it, as printed."""
    parts = re.split(r"^#+ (.*)$", manual(), flags=re.MULTILINE)[1:]
    return {anchor(title): text for title, text in zip(parts[::2], parts[1::2], strict=True)}


def keys(text):
    """Key -> its row, of a printed table."""
    return {match[1]: match[0] for match in re.finditer(r"^\| `(\w+)` \|.*$", text, re.MULTILINE)}


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_reader_of_an_entry_finds_every_key_of_its_method(method):
    page = sections()
    entry = page[f"method-{method.name}"]
    found = {}
    for link in re.findall(r"\(#(shared-[^)]*)\)", entry):
        found |= keys(page[link])
    found |= keys(entry)
    asked = {row.key: str(row) for row in rows(method.settings)}
    assert asked.keys() == {field.name for field in fields(method.settings)}
    assert {key: found.get(key) for key in asked} == asked


def test_every_method_says_in_a_sentence_what_it_is():
    assert summaries().keys() == METHODS.keys()
    assert [name for name, lines in summaries().items() if not " ".join(lines).endswith(".")] == []


def test_no_row_of_an_entry_stands_in_one_of_its_groups():
    page = sections()
    for name in METHODS:
        entry = page[f"method-{name}"]
        for link in re.findall(r"\(#(shared-[^)]*)\)", entry):
            assert not set(keys(entry).values()) & set(keys(page[link]).values()), (name, link)


def test_the_part_on_methods_has_a_third_of_the_rows_of_its_methods():
    printed = [line for line in manual().partition("## Methods")[2].splitlines() if line.startswith("| `")]
    all_rows = sum(len(rows(method.settings)) for method in METHODS.values())
    assert 3 * len(printed) < all_rows


@dataclass(frozen=True)
class Rounds:
    """Rounds that all have."""

    rounds: int = setting(10, "Rounds.")
    noise: float = setting(0.1, "Noise.")


@dataclass(frozen=True)
class Wide(Rounds):
    """Another default."""

    rounds: int = setting(20, "Rounds.")
    width: int = setting(3, "Width.")


@dataclass(frozen=True)
class Alone:
    """A key that other classes also declare, and one of its own."""

    cost: float = setting(1.0, "Cost.")
    bias: float = setting(0.0, "Bias.")


@dataclass(frozen=True)
class Same(Rounds):
    """No key of its own."""


def made_up(**settings):
    """Methods by name, with these settings."""
    return {name: replace(METHODS["majority"], name=name, settings=kind) for name, kind in settings.items()}


def names(found):
    return [row.key for row in found]


def test_a_class_of_two_methods_is_a_table_and_an_override_is_the_method_s_own():
    methods = made_up(plain=Rounds, wide=Wide)
    shared = shared_classes(methods)
    assert shared == [Rounds]
    assert names(rows_of_class(Rounds)) == ["rounds", "noise"]
    assert own_rows(methods["plain"], shared) == []
    assert names(own_rows(methods["wide"], shared)) == ["rounds", "width"]


def test_a_class_of_one_method_is_no_shared_table():
    methods = made_up(plain=Rounds, other=Alone)
    assert shared_classes(methods) == []
    assert names(own_rows(methods["other"], [])) == ["cost", "bias"]


def test_a_base_class_comes_first_and_a_class_without_keys_has_no_table():
    methods = made_up(plain=Rounds, same=Same, wide=Wide, wider=Wide)
    shared = shared_classes(methods)
    assert shared == [Rounds, Wide]
    assert [row.default for row in rows_of_class(Wide) if row.key == "rounds"] == ["`20`"]
    assert own_rows(methods["same"], shared) == []
