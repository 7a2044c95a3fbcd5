"""Types, defaults and anchors in the words of the manual, computed by hand."""

from dataclasses import dataclass
from typing import Literal

import pytest

from brainfed.configuration.manual import anchor, rows
from brainfed.runtime import setting


@dataclass(frozen=True)
class Kinds:
    """One field of each type that a setting may have."""

    name: str = setting(description="A name | or two.")
    share: float = setting(0.5, minimum=0, maximum=1)
    limit: float | None = setting(None, minimum=0)
    count: int = setting(3, minimum=1)
    kind: Literal["one", "two", "three"] = setting("one")
    motion: Literal["basic", "full"] | None = setting(None)
    path: str | tuple[str, ...] | None = setting(None)
    widths: tuple[int, int] = setting((64, 32))
    covariates: tuple[Literal["age", "sex"], ...] = setting(("age",))
    rows: dict[str, tuple[str, ...]] = setting(factory=dict)
    codes: dict[str, Literal["male", "female"]] = setting(factory=lambda: {"m": "male"})
    title: str = setting("")
    on: bool = setting(True)


PRINTED = {
    "name": ("text", "required"),
    "share": ("number, 0 to 1", "`0.5`"),
    "limit": ("number ≥\N{NO-BREAK SPACE}0 or none", "none"),
    "count": ("whole number ≥\N{NO-BREAK SPACE}1", "`3`"),
    "kind": ("`one`, `two` or `three`", "`one`"),
    "motion": ("`basic`, `full` or none", "none"),
    "path": ("text, list of texts or none", "none"),
    "widths": ("2 whole numbers", "`[64, 32]`"),
    "covariates": ("list of `age` or `sex`", '`["age"]`'),
    "rows": ("NAME: list of texts", "`{}`"),
    "codes": ("NAME: `male` or `female`", '`{"m": "male"}`'),
    "title": ("text", "`''`"),
    "on": ("true or false", "`true`"),
}


def test_a_type_has_words_and_bounds_and_a_default_is_written_as_yaml_reads_it():
    assert {row.key: (row.type, row.default) for row in rows(Kinds)} == PRINTED


def test_a_bar_in_a_meaning_ends_no_cell():
    assert str(rows(Kinds)[0]) == "| `name` | text | required | A name \\| or two. |"


@pytest.mark.parametrize(
    ("title", "expected"), [("cohorts.NAME.bids", "cohortsnamebids"), ("shared: GIN rounds", "shared-gin-rounds")]
)
def test_an_anchor_is_github_s(title, expected):
    assert anchor(title) == expected
