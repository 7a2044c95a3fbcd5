"""Test folds of subjects: even by site and institution, one site a fold, or one test set."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import ClassWords, Target, class_words
from brainfed.cohort.settings import PublicSettings, SplitSettings
from brainfed.runtime import Streams, UserError

# Folds that are even in every institution, every site and every site of an institution at once.
#
# People are the edges of a bipartite multigraph between rows (institutions) and columns (sites), folds are colours. For
# any number of colours there is an edge colouring in which the colours of all edges, of every node and of every bundle
# of parallel edges differ in number by one at most (de Werra 1971, "Balanced schedules", INFOR 9). Two colours are
# brought there by alternating walks over paired edges; colours are taken in pairs until no pair is uneven.

IntArray = NDArray[np.int64]


def even_folds(rows: IntArray, columns: IntArray, folds: int, random: np.random.Generator) -> IntArray:
    """(n,) fold of every person, drawn at random among even ones, from the (n,) codes of rows and of columns.

    The numbers of people in any two folds differ by one at most: of all people, of each row, of each column, and of
    each row and column together. A row with fewer people than folds has one in some folds and none in the others.
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


UNTESTED = -1
"""In place of a fold: the subject is never scored. It trains in all folds if it has a label."""


def stratified(
    subjects: pd.DataFrame, institution: NDArray[np.object_], folds: int, streams: Streams
) -> NDArray[np.int64]:
    """(n,) fold of each subject; those of each diagnosis are spread evenly in each institution.

    `subjects` has group (of duplicates) and diagnosis (-1 without one), `institution` (n,) names.
    """
    fold = np.full(len(subjects), UNTESTED, dtype=np.int64)
    diagnosis, group = subjects["diagnosis"].to_numpy(), subjects["group"].to_numpy()
    for name in sorted(set(institution[diagnosis >= 0])):
        members = np.flatnonzero((institution == name) & (diagnosis >= 0))
        seed = streams.key("folds", name) % 2**32
        fold[members] = folds_of_groups(diagnosis[members], group[members], folds, seed)
    return fold


def folds_of_groups(
    classes: NDArray[np.int64], groups: NDArray[np.object_], folds: int, seed: int
) -> NDArray[np.int64]:
    """(n,) fold of each member; a group is in one fold, and each class is spread as evenly as groups allow.

    Groups come in random order, those with the most uneven counts of classes first. Each goes to the fold where the
    shares of the classes differ least between folds afterwards, the one with the fewest members among ties. This is
    what StratifiedGroupKFold of scikit-learn 1.8 and 1.9 does with a shuffle. Version 1.7 deals other folds for one
    seed (below 2**32), so the folds of a study must not depend on it.
    """
    _, code, size = np.unique(classes, return_inverse=True, return_counts=True)
    _, group = np.unique(groups, return_inverse=True)
    counts = np.zeros((group.max() + 1, len(size)))
    np.add.at(counts, (group, code), 1)
    order = np.arange(len(counts))
    np.random.RandomState(seed).shuffle(order)
    order = order[np.argsort(-np.std(counts[order], axis=1), kind="stable")]
    dealt = np.zeros((folds, len(size)))
    fold = np.empty(len(counts), dtype=np.int64)
    for member in order:
        fold[member] = _emptiest(dealt, counts[member], size)
        dealt[fold[member]] += counts[member]
    return fold[group]


def _emptiest(dealt: NDArray[np.float64], added: NDArray[np.float64], size: NDArray[np.int64]) -> int:
    """The fold of a group: from (folds, classes) counts so far, and (classes,) counts of the group and of all."""
    best, least, fewest = 0, np.inf, np.inf
    for index, members in enumerate(dealt.sum(axis=1)):
        tried = dealt.copy()
        tried[index] += added
        unevenness = float(np.mean(np.std(tried / size, axis=0)))
        if unevenness < least or (np.isclose(unevenness, least) and members < fewest):
            best, least, fewest = index, unevenness, members
    return best


def stratified_by_site(
    subjects: pd.DataFrame, institution: NDArray[np.object_], folds: int, streams: Streams
) -> NDArray[np.int64]:
    """(n,) fold of each subject; those of each diagnosis are spread evenly in each institution, site, and both.

    Their numbers in any two folds differ by one at most, also where a site has fewer subjects than folds. Duplicates
    count once, with the diagnosis, the site and the institution of the first labelled one. Arguments as of
    `stratified`; `subjects` has the site, too, which is known of every labelled one.
    """
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    people = subjects.assign(institution=institution)[labelled].drop_duplicates("group").sort_values("group")
    drawn: dict[str, int] = {}
    for code in sorted(set(people["diagnosis"].tolist())):
        members = people[people["diagnosis"] == code]
        rows, columns = (pd.factorize(members[key], sort=True)[0].astype(np.int64) for key in ("institution", "site"))
        even = even_folds(rows, columns, folds, streams.numpy("folds", "by site", code))
        drawn |= dict(zip(members["group"], even.tolist(), strict=True))
    fold = subjects["group"].map(drawn).fillna(UNTESTED).to_numpy(dtype=np.int64)
    return np.where(labelled, fold, UNTESTED)


def left_out_in_turn(
    subjects: pd.DataFrame, institution: NDArray[np.object_], sites: Sequence[str]
) -> NDArray[np.int64]:
    """(n,) fold of each labelled subject: the rank of its site (`institution`) among all tested `sites`."""
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    places = zip(institution, labelled, strict=True)
    return np.array([sites.index(site) if known else UNTESTED for site, known in places], dtype=np.int64)


# One test set: of every institution a share is tested, a share is held back, the rest trains (Xie et al. 2021).

TESTED = 0
"""The only test fold."""


def held_out(
    subjects: pd.DataFrame, institution: NDArray[np.object_], settings: SplitSettings, streams: Streams
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(n,) fold of each subject, -1 where it trains; and (n,) whether it is kept: the others are held back.

    In every institution each class has its share of the tested and of those held back, rounded up or down; which way
    is drawn, so that a class with too few people for all parts is spread at random. Duplicates count once, with the
    diagnosis and the institution of the first labelled one. Subjects without a label are kept. Arguments as of
    `stratified`; each institution has two labelled people or more.
    """
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    people = subjects.assign(institution=institution)[labelled].drop_duplicates("group").sort_values("group")
    tested: set[str] = set()
    held_back: set[str] = set()
    for name, members in people.groupby("institution", sort=True):
        random = streams.numpy("holdout", str(name))
        order = _by_class(members["diagnosis"].to_numpy(np.int64), random)
        wanted, left = _sizes(len(order), settings)
        chosen = spread_evenly(len(order), wanted, random)
        others = order[~chosen]
        group = members["group"].to_numpy(dtype=object)
        tested |= set(group[order[chosen]])
        held_back |= set(group[others[spread_evenly(len(others), left, random)]])
    fold = np.where(labelled & subjects["group"].isin(tested).to_numpy(), TESTED, UNTESTED)
    return fold.astype(np.int64), ~subjects["group"].isin(held_back).to_numpy()


def spread_evenly(count: int, wanted: int, random: np.random.Generator) -> NDArray[np.bool_]:
    """(count,) systematic sample of `wanted` places from a random start.

    Every place has the same probability, and any run of r places has r wanted / count of the sample, rounded up or
    down.
    """
    start = int(random.integers(count)) if count else 0
    steps = (np.arange(count + 1) * wanted + start) // max(count, 1)
    return np.asarray(np.diff(steps) > 0)


def _by_class(diagnosis: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """(n,) positions, one class after the other: classes in random order, and people in random order inside them."""
    rank = random.permutation(diagnosis.max() + 1)
    shuffled = random.permutation(len(diagnosis))
    return np.asarray(shuffled[np.argsort(rank[diagnosis[shuffled]], kind="stable")], dtype=np.int64)


def _sizes(people: int, settings: SplitSettings) -> tuple[int, int]:
    """Numbers of tested and held-back people, rounded; at least one is tested and one trains."""
    tested = min(max(1, rounded(settings.tested * people)), people - 1)
    return tested, min(rounded(settings.held_back * people), people - 1 - tested)


def rounded(number: float) -> int:
    """The nearest whole number; halves go up."""
    return int(np.floor(round(number, 9) + 0.5))


# Public subjects of every institution (GAHFL, Setting), and the subjects of a site alone.


def require_own(sites: Sequence[str], site: str) -> None:
    """Refuse (UserError) subjects whose `sites` are another than this one of a study, or none at all."""
    if not sites:
        raise UserError(f"site {site!r}: expected its subjects, found none; correct `phenotype` or its columns.")
    if others := [name for name in sites if name != site]:
        named = ", ".join(map(repr, others[:3])) + (" and others" if others[3:] else "")
        raise UserError(
            f"site {site!r}: expected subjects of this site alone, found those of {named} in the table; set "
            "`phenotype` to this site's own table, or remove their rows. Another spelling of "
            f"{site!r} is renamed by `codes.site`."
        )


# Public subjects: the share of its training subjects that every institution gives to the server (GAHFL, Setting).
#
# They are the one declared exception to "nothing with a subject axis crosses". No tested subject is among them.


def draw_public(
    split: pd.DataFrame,
    participants: pd.DataFrame,
    included: pd.DataFrame,
    settings: PublicSettings,
    streams: Streams,
    target: Target = "diagnosis",
    classes: Sequence[str] = (),
) -> pd.DataFrame:
    """The public subjects of every fold.

    In each fold, institution and class the first round(R n) of the n training people in random order are public, halves
    rounded up. The order does not depend on R, so that a smaller public set is part of a larger one. Duplicates count
    once, with the class of the first labelled one, and are public together. Diagnoses are the true ones, also where a
    method sees permuted labels: these are shuffled inside institutions and folds, and carry nothing of the draw.

    Args:
        split: subject, institution, fold.
        participants: subject, diagnosis (0 ... C - 1, null).
        included: subject, twin_group.
        settings: the ratio R.
        streams: the repeat's random streams; the same seed gives the same draw in any row order.
        target: what the column `diagnosis` holds, for messages.
        classes: names of the diagnoses in the order of their codes; empty: patients and controls.

    Returns:
        subject, fold: one row for each public subject and each fold in whose training it is public; in ascending order
        of fold and subject.

    Raises:
        UserError: a fold has no public subject of a class of its training subjects, an institution with training
            subjects keeps no private one, or a subject of the split is not in the other tables.
    """
    people, words = _labelled(split, participants, included), class_words(target, classes)
    drawn = []
    for fold in range(int(split["fold"].max()) + 1):
        training = people[people["fold"] != fold]
        public = _public(training, fold, settings.ratio, streams)
        _refuse_emptied(training, public, fold, settings.ratio, words)
        drawn.append(pd.DataFrame({"subject": training.loc[public, "subject"], "fold": fold}))
    return pd.concat(drawn, ignore_index=True)


def _labelled(split: pd.DataFrame, participants: pd.DataFrame, included: pd.DataFrame) -> pd.DataFrame:
    """subject, institution, fold, diagnosis, group (of duplicates) of labelled subjects, ascending by subject."""
    people = split[["subject", "institution", "fold"]].sort_values("subject", ignore_index=True)
    for column, table in (("diagnosis", participants), ("twin_group", included)):
        strangers = people.loc[~people["subject"].isin(table["subject"]), "subject"]
        if len(strangers):
            raise UserError(
                f"public: expected the {column} of every subject of the split, found none of {strangers.iloc[0]!r}; "
                "delete the cohort's folder `splits` and run again."
            )
        people = people.merge(table[["subject", column]], on="subject", how="left", validate="one_to_one")
    people = people[people["diagnosis"].notna()]
    group = people["twin_group"].fillna(people["subject"])
    return people.assign(group=group, diagnosis=people["diagnosis"].astype("int64")).drop(columns="twin_group")


def _public(training: pd.DataFrame, fold: int, ratio: float, streams: Streams) -> NDArray[np.bool_]:
    """(n,) whether each training subject of a fold is public."""
    chosen: set[str] = set()
    people = training.drop_duplicates("group")
    for (institution, code), cell in people.groupby(["institution", "diagnosis"], sort=True):
        order = streams.numpy("public", str(institution), fold, str(code)).permutation(cell["group"].to_numpy(object))
        chosen |= set(order[: rounded(ratio * len(order))])
    return training["group"].isin(chosen).to_numpy()


def _refuse_emptied(
    training: pd.DataFrame, public: NDArray[np.bool_], fold: int, ratio: float, words: ClassWords
) -> None:
    """Refuse a public set without a class that some institution trains on, and an institution that is all public."""
    lost = sorted(set(training["diagnosis"]) - set(training.loc[public, "diagnosis"]))
    if lost:
        members = training[training["diagnosis"] == lost[0]]
        most = int(members.groupby("institution")["group"].nunique().max())
        raise UserError(
            f"public.ratio: expected public {words.many[lost[0]]} in fold {fold}, found none: {ratio:g} of the "
            f"{most} or fewer that train in each institution rounds to 0; raise `public.ratio`, or choose fewer "
            "institutions."
        )
    for institution, given in pd.Series(public, index=training.index).groupby(training["institution"]):
        if given.all():
            raise UserError(
                f"public.ratio: expected private training subjects of institution {institution} in fold {fold}, found "
                f"none: {ratio:g} of each class rounds to all {len(given)}; lower `public.ratio`, or merge the "
                "institution with another."
            )
