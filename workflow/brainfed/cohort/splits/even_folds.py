"""Folds that are even in every institution, every site and every site of an institution at once.

People are the edges of a bipartite multigraph between rows (institutions) and columns (sites), folds are colours. For
any number of colours there is an edge colouring in which the colours of all edges, of every node and of every bundle
of parallel edges differ in number by one at most (de Werra 1971, "Balanced schedules", INFOR 9). Two colours are
brought there by alternating walks over paired edges; colours are taken in pairs until no pair is uneven.
"""

from collections.abc import Hashable, Iterable, Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]


def even_folds(rows: IntArray, columns: IntArray, folds: int, random: np.random.Generator) -> IntArray:
    """(n,) fold of every person, drawn at random among even ones.

    The numbers of people in any two folds differ by one at most: of all people, of each row, of each column, and of
    each row and column together. A row with fewer people than folds has one in some folds and none in the others.

    Args:
        rows: (n,) codes.
        columns: (n,) codes.
        folds: number of folds K.
        random: the order of the people decides nothing else.
    """
    cells = rows * (columns.max(initial=0) + 1) + columns
    order = np.lexsort((random.permutation(len(rows)), columns, rows))
    fold = np.empty(len(rows), dtype=np.int64)
    fold[order] = np.arange(len(rows)) % folds
    # Every halving of an uneven pair lowers the sum of squared counts, so the loop ends.
    while uneven := [pair for pair in combinations(range(folds), 2) if _is_uneven(fold, pair, (rows, columns, cells))]:
        for first, second in uneven:
            members = np.flatnonzero((fold == first) | (fold == second))
            fold[members] = np.where(halves(rows[members], columns[members]), first, second)
    return np.asarray(random.permutation(folds)[fold])


def halves(rows: IntArray, columns: IntArray) -> NDArray[np.bool_]:
    """(n,) the half of every person: even in all people, in each row, each column and each cell.

    People are paired inside their cell, those left over inside their row and inside their column, and the members of a
    pair go to different halves. Pairs make chains, closed ones of even length, so that the halves of a chain differ by
    one at most; chains of odd length add to the smaller half.
    """
    in_cell, left = _pairs(zip(rows.tolist(), columns.tolist(), strict=True))
    half = np.zeros(len(rows), dtype=bool)
    half[[person for person, partner in in_cell.items() if partner < person]] = True
    in_row, _ = _pairs(rows[left].tolist())
    in_column, _ = _pairs(columns[left].tolist())
    surplus = 0
    for chain in _chains(len(left), in_row, in_column):
        side = surplus <= 0
        for person in chain:
            half[left[person]] = side
            surplus += 1 if side else -1
            side = not side
    return half


def _is_uneven(fold: IntArray, pair: tuple[int, int], groupings: Iterable[IntArray]) -> bool:
    """Whether the two folds differ by more than one in a group of one of the groupings."""
    weight = (fold == pair[0]).astype(float) - (fold == pair[1])
    return any(np.abs(np.bincount(grouping, weight)).max(initial=0) > 1 for grouping in groupings)


def _pairs(keys: Iterable[Hashable]) -> tuple[dict[int, int], list[int]]:
    """Position -> position of its partner with the same key; and the positions without one, at most one a key."""
    waiting: dict[Hashable, int] = {}
    partner: dict[int, int] = {}
    for position, key in enumerate(keys):
        if key in waiting:
            other = waiting.pop(key)
            partner[other], partner[position] = position, other
        else:
            waiting[key] = position
    return partner, sorted(waiting.values())


def _chains(count: int, in_row: dict[int, int], in_column: dict[int, int]) -> Iterator[list[int]]:
    """The people in chains, in which partners follow each other: open ones from an end, then closed ones."""
    seen: set[int] = set()
    ends = [person for person in range(count) if person not in in_row or person not in in_column]
    for start in [*ends, *range(count)]:
        if start in seen:
            continue
        chain, ways = [start], (in_column, in_row) if start not in in_row else (in_row, in_column)
        seen.add(start)
        while (following := ways[(len(chain) - 1) % 2].get(chain[-1])) is not None and following not in seen:
            chain.append(following)
            seen.add(following)
        yield chain
