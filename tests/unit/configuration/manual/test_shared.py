"""Keys that methods share: printed once, and no key of any method lost."""

import re
from dataclasses import dataclass, fields, replace

import pytest

from brainfed.configuration.manual.page import manual
from brainfed.configuration.manual.rows import anchor, rows
from brainfed.configuration.manual.shared import groups_of, own_rows, shared_groups
from brainfed.methods.registry import METHODS
from brainfed.runtime.settings import setting


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
class AlsoAlone:
    """The same key without a common class."""

    cost: float = setting(1.0, "Cost.")


@dataclass(frozen=True)
class AloneToo:
    """And once more."""

    cost: float = setting(1.0, "Cost.")


@dataclass(frozen=True)
class OtherDefault:
    """A key of this name with another default."""

    cost: float = setting(2.0, "Cost.")


def made_up(**settings):
    """Methods by name, with these settings."""
    return {name: replace(METHODS["majority"], name=name, settings=kind) for name, kind in settings.items()}


def names(found):
    return [row.key for row in found]


def test_a_class_of_two_methods_is_a_group_and_an_override_is_the_method_s_own():
    methods = made_up(plain=Rounds, wide=Wide)
    (group,) = shared_groups(methods)
    assert (group.origin, group.methods, names(group.rows)) == (Rounds, ("plain", "wide"), ["rounds", "noise"])
    assert own_rows(methods["plain"], (group,)) == []
    assert names(own_rows(methods["wide"], (group,))) == ["rounds", "width"]


def test_a_class_of_one_method_is_no_group():
    assert shared_groups(made_up(plain=Rounds, other=Alone)) == ()


def test_an_override_that_all_methods_have_is_the_row_of_the_class():
    methods = made_up(wide=Wide, wider=Wide)
    groups = shared_groups(methods)
    assert [(group.origin, names(group.rows)) for group in groups] == [(Rounds, ["rounds", "noise"]), (Wide, ["width"])]
    assert groups[0].rows[0].default == "`20`"


def test_the_same_row_of_three_methods_is_a_group_without_a_class():
    two = made_up(one=Alone, two=AlsoAlone)
    assert shared_groups(two) == ()
    methods = {**two, **made_up(three=AloneToo, four=OtherDefault)}
    (group,) = shared_groups(methods)
    assert (group.origin, group.title, names(group.rows)) == (None, "one, two and three", ["cost"])
    assert names(own_rows(methods["one"], (group,))) == ["bias"]
    assert [names(own_rows(methods[name], (group,))) for name in ("two", "three", "four")] == [[], [], ["cost"]]


def test_groups_of_base_classes_come_first():
    methods = made_up(plain=Rounds, wide=Wide, wider=Wide)
    groups = shared_groups(methods)
    assert [group.origin for group in groups_of(methods["wide"], groups)] == [Rounds, Wide]
    assert [names(group.rows) for group in groups] == [["rounds", "noise"], ["rounds", "width"]]
