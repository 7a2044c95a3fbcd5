"""Numbers of generated cases: `BRAINFED_CASES` overrules how many there are of each kind."""

import os

import pytest

MORE = pytest.mark.full("More cases of the kinds that the first ones draw.")


def cases(first, usual):
    """The numbers of `usual` cases, of which the first tier has the `first` ones."""
    numbers = range(int(os.environ.get("BRAINFED_CASES", usual)))
    return [pytest.param(number, marks=MORE) if number >= first else number for number in numbers]


def numbered(mutations, first, usual, *given):
    """The same of mutations: each once before one comes twice, and in the first tier also all whose words are known."""
    count, many = int(os.environ.get("BRAINFED_CASES", usual)), len(mutations)
    drawn = [number if many <= count else number * 7 % many for number in range(count)]
    guarding = {number for number, one in enumerate(mutations) if one.words is not None} | set(drawn[:first])
    more = [pytest.param(*given, number, marks=MORE) for number in drawn if number not in guarding]
    return [*(pytest.param(*given, number) for number in sorted(guarding)), *more]
