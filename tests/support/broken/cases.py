"""Numbers of generated cases: `BRAINFED_CASES` overrules how many there are of each kind."""

import os

import pytest

MORE = pytest.mark.full("More cases of the kinds that the first ones draw.")


def cases(first, usual):
    """The numbers of `usual` cases, of which the first tier has the `first` ones."""
    return [
        pytest.param(number, marks=MORE) if number >= first else number
        for number in range(int(os.environ.get("BRAINFED_CASES", usual)))
    ]
