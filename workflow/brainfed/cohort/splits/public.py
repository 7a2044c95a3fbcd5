"""Public subjects of every institution (GAHFL, Setting), and the subjects of a site alone."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort.classes import ClassWords, Target, class_words
from brainfed.cohort.settings.splits import PublicSettings
from brainfed.cohort.splits.folds import rounded
from brainfed.runtime.errors import UserError
from brainfed.runtime.streams import Streams


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
