"""Institutions and folds of one repeat (FedNI Sec. IV-A)."""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.cohort import ClassWords, Target, class_words
from brainfed.cohort.settings import SplitSettings, institution_of_site
from brainfed.cohort.splits._folds import held_out, left_out_in_turn, stratified, stratified_by_site
from brainfed.runtime import Streams, UserError


def consecutive_institutions(subjects: pd.DataFrame, settings: SplitSettings, streams: Streams) -> NDArray[np.object_]:
    """(n,) name of each subject's institution, `institution-1` ...; the same in all repeats.

    Of N labelled subjects every institution gets the next min(`block`, N // `count`) in the order of their ids, and
    each of the others goes to an institution at random. Duplicates follow the first labelled one. Subjects without a
    label go to institutions at random and do not move the others. `subjects` has subject, group (of duplicates) and
    diagnosis (-1 without one), in ascending order of subject.
    """
    labelled = (subjects["diagnosis"] >= 0).to_numpy()
    known = subjects.loc[labelled, "group"].reset_index(drop=True).drop_duplicates()
    others = subjects.loc[~labelled & ~subjects["group"].isin(known).to_numpy(), "group"].drop_duplicates()
    fixed, length = Streams(streams.seed), min(settings.block, int(labelled.sum()) // settings.count)
    run = known.index.to_numpy() // length
    inside = run < settings.count
    place = fixed.numpy("institutions", "consecutive").integers(settings.count, size=len(known))
    place[inside] = run[inside]
    spread = fixed.numpy("institutions", "consecutive", "unlabelled").integers(settings.count, size=len(others))
    drawn = zip([*known, *others], [*place.tolist(), *spread.tolist()], strict=True)
    names = {group: f"institution-{code + 1}" for group, code in drawn}
    return subjects["group"].map(names).to_numpy(dtype=object)


# Institutions and folds of one repeat (FedNI Sec. IV-A: equal random parts, stratified 5-fold inside each).
#
# Xie et al. (2021) divide a cohort into consecutive runs, with one test set in each (`consecutive`, `holdout`).
#
# Subjects with identical series form a group. Its members share an institution and a fold under all settings, so that
# no model tests a subject after training on its duplicate.

OUTSIDE = ""
"""In place of an institution's name: in no institution."""


def split(
    included: pd.DataFrame,
    participants: pd.DataFrame,
    settings: SplitSettings,
    streams: Streams,
    target: Target = "diagnosis",
    classes: Sequence[str] = (),
    sites: Sequence[str] = (),
) -> pd.DataFrame:
    """The institution and the fold of every included subject.

    Subjects without a label join the institutions afterwards and are tested in no fold. They do not change the
    places of the others.

    Args:
        included: subject, included, twin_group, and reason where sites are left out in turn.
        participants: subject, site, diagnosis (0 ... C - 1, null).
        settings: of institutions and folds.
        streams: the repeat's random streams; the same seed gives the same split in any row order.
        target: what the column `diagnosis` holds, for messages.
        classes: names of the diagnoses in the order of their codes; empty: patients and controls.
        sites: of a study between sites, all of them in order, also those whose subjects are elsewhere; empty: the
            sites of `participants`.

    Returns:
        subject, institution, fold; in ascending order of subject. Random institutions are called
        `institution-1` ..., like consecutive ones; the others have the name of their group or site. Under `share`
        each holds that fraction of the subjects, and the others are left out. Under `leave_one_site_out`
        the fold is the rank of the site among `sites`, or all sites of `participants` with a diagnosis. Duplicates of
        different sites belong to the first. Unlabelled subjects have the fold -1. Under `holdout` the tested have
        the fold 0, the trained the fold -1, and those held back are left out.

    Raises:
        UserError: an institution has too few subjects, or too few of a diagnosis, for its folds; a site is
            unknown, in two groups or in none; fewer than two sites are to be left out in turn, or one of them has
            no subject to test.
    """
    subjects, institution = draw_institutions(included, participants, settings, streams, target, classes, sites)
    if settings.validation == "leave_one_site_out":
        fold = left_out_in_turn(subjects, institution, sites or _tested_sites(participants))
    elif settings.validation == "holdout":
        fold, kept = held_out(subjects, institution, settings, streams)
        subjects, institution, fold = subjects.loc[kept], institution[kept], fold[kept]
    elif settings.stratifies_sites:
        fold = stratified_by_site(subjects, institution, settings.folds, streams)
    else:
        fold = stratified(subjects, institution, settings.folds, streams)
    return pd.DataFrame({"subject": subjects["subject"].to_numpy(), "institution": institution, "fold": fold})


def draw_institutions(
    included: pd.DataFrame,
    participants: pd.DataFrame,
    settings: SplitSettings,
    streams: Streams,
    target: Target = "diagnosis",
    classes: Sequence[str] = (),
    sites: Sequence[str] = (),
) -> tuple[pd.DataFrame, NDArray[np.object_]]:
    """Subjects to split (subject, group, site, diagnosis), and (n,) the institution of each; arguments as of `split`.

    Raises:
        UserError: as `split`, folds aside.
    """
    subjects = _eligible(included, participants)
    if settings.validation == "leave_one_site_out":
        institution = _site(subjects, "leave_one_site_out")
        _refuse_untestable(set(institution[(subjects["diagnosis"] >= 0).to_numpy()]), sites, included, participants)
        return subjects, institution
    if settings.stratifies_sites:
        _site(subjects[subjects["diagnosis"] >= 0], "stratify: site_label")
    everywhere = sorted(participants["site"].dropna().unique())
    institution = _institutions(subjects, everywhere, settings, streams)
    anywhere = frozenset(subjects["diagnosis"])
    drawn = institution != OUTSIDE
    subjects, institution = subjects.loc[drawn].reset_index(drop=True), institution[drawn]
    words = class_words(target, classes)
    for name in sorted(set(institution[(subjects["diagnosis"] >= 0).to_numpy()])):
        members = subjects.loc[institution == name]
        wanted = _classes_of_data_sets(members, participants) if target == "class" else set(words.many)
        _refuse_few(str(name), members, settings, words, wanted, anywhere)
    return subjects, institution


def _classes_of_data_sets(members: pd.DataFrame, participants: pd.DataFrame) -> set[int]:
    """Classes of graphs in the data sets (sites) of these members: a data set may lack classes that others have."""
    beside = participants["site"].isin(members["site"]) & participants["diagnosis"].notna()
    return {int(code) for code in participants.loc[beside, "diagnosis"].unique()}


def _tested_sites(participants: pd.DataFrame) -> list[str]:
    """Sites with a diagnosis, each of which is left out in turn."""
    return sorted(participants.loc[participants["diagnosis"].notna(), "site"].dropna().unique())


def _eligible(included: pd.DataFrame, participants: pd.DataFrame) -> pd.DataFrame:
    """subject, group, site, diagnosis (-1 without one) of the subjects to split, in ascending order of subject."""
    kept = included.loc[included["included"], ["subject", "twin_group"]]
    subjects = kept.merge(
        participants[["subject", "site", "diagnosis"]], on="subject", how="left", validate="one_to_one"
    )
    subjects = subjects.sort_values("subject", ignore_index=True)
    if not subjects["diagnosis"].notna().any():
        raise UserError("splits: no included subject has a diagnosis; see cohort/issues.tsv for the dropped subjects.")
    group = subjects["twin_group"].fillna(subjects["subject"])
    return subjects.assign(group=group, diagnosis=subjects["diagnosis"].fillna(-1).astype("int64"))


def _institutions(
    subjects: pd.DataFrame, sites: list[str], settings: SplitSettings, streams: Streams
) -> NDArray[np.object_]:
    if settings.institutions == "random":
        return _random_institutions(subjects, settings, streams)
    if settings.institutions == "consecutive":
        _refuse_small_cohort(subjects.loc[subjects["diagnosis"] >= 0, "group"].nunique(), settings)
        return consecutive_institutions(subjects, settings, streams)
    site = _site(subjects, settings.institutions)
    if settings.institutions == "sites":
        return site
    owner = institution_of_site(settings.groups, sites, set(site))
    return np.array([owner[name] for name in site], dtype=object)


def _site(subjects: pd.DataFrame, wanted_by: str) -> NDArray[np.object_]:
    """(n,) site of each subject's group, which is the site of the group's first subject."""
    unknown = subjects.loc[subjects["site"].isna(), "subject"]
    if len(unknown):
        raise UserError(
            f"splits: `{wanted_by}` needs the site of every subject, {unknown.iloc[0]} "
            f"(and {len(unknown) - 1} more) have none; fill in the site or exclude them."
        )
    return subjects.groupby("group")["site"].transform("first").to_numpy(dtype=object)


def _random_institutions(subjects: pd.DataFrame, settings: SplitSettings, streams: Streams) -> NDArray[np.object_]:
    """Spread groups of duplicates in random order evenly, or over institutions of a fixed size; labelled ones first."""
    labelled = subjects["diagnosis"] >= 0
    sizes = subjects[labelled].groupby("group", sort=True).size()
    _refuse_small_cohort(len(sizes), settings)
    shuffled = sizes.iloc[streams.numpy("institutions").permutation(len(sizes))]
    others = subjects[~labelled].groupby("group", sort=True).size()
    unlabelled = others.iloc[streams.numpy("institutions", "unlabelled").permutation(len(others))]
    if settings.share is None:
        chosen = _evenly(shuffled, settings.count) | _evenly(unlabelled, settings.count)
    else:
        target = _size(settings.share, settings.folds, int(labelled.sum()))
        chosen = _filled(shuffled, settings.count, target)
        chosen |= _filled(unlabelled, settings.count, int(round(settings.share * int((~labelled).sum()), 9)))
    return subjects["group"].map(chosen).fillna(OUTSIDE).to_numpy(dtype=object)


def _evenly(shuffled: "pd.Series[int]", count: int) -> dict[str, str]:
    """Assign groups, larger ones first, each to the smallest institution so far."""
    sizes = np.zeros(count, dtype=np.int64)
    chosen: dict[str, str] = {}
    for group, size in shuffled.sort_values(ascending=False, kind="stable").items():
        smallest = int(sizes.argmin())
        sizes[smallest] += size
        chosen[str(group)] = f"institution-{smallest + 1}"
    return chosen


def _size(share: float, folds: int, subjects: int) -> int:
    """Number of subjects of an institution."""
    size = int(round(share * subjects, 9))
    if size < folds:
        raise UserError(
            f"splits: a share of {share:g} of {subjects} subjects is {size} in an institution, {folds} folds need at "
            f"least {folds}; raise `share`, or lower `folds`."
        )
    return size


def _filled(shuffled: "pd.Series[int]", count: int, target: int) -> dict[str, str]:
    """Assign each group to the first institution with room for it among `target` subjects; more change none of them."""
    sizes = np.zeros(count, dtype=np.int64)
    chosen: dict[str, str] = {}
    for group, size in shuffled.items():
        roomy = np.flatnonzero(sizes + size <= target)
        if len(roomy):
            sizes[roomy[0]] += size
            chosen[str(group)] = f"institution-{roomy[0] + 1}"
    return chosen


def _refuse_small_cohort(people: int, settings: SplitSettings) -> None:
    needed = settings.count * settings.least_people
    if people >= needed:
        return
    folds = settings.validation == "folds"
    parts = f"{settings.folds} folds" if folds else "2 parts, one that trains and one that is tested,"
    counted = f"{settings.count} institution{'s' if settings.count > 1 else ''}"
    raise UserError(
        f"splits: {counted} x {parts} need at least {needed} different subjects, {people} are "
        f"included; lower `count`{' or `folds`' if folds else ''}."
    )


def _refuse_few(
    institution: str,
    members: pd.DataFrame,
    settings: SplitSettings,
    words: ClassWords,
    wanted: Collection[int],
    anywhere: Collection[int],
) -> None:
    """Refuse an institution with too few subjects of a `wanted` class for its folds or its test.

    `anywhere` are the classes in the cohort.
    """
    folds, other = settings.folds, "merge it with another institution"
    if settings.counts_institutions:
        other = "lower `count`" if settings.share is None else "raise `share`"
    if settings.institutions == "consecutive":
        other += ", or raise `block`"
    if settings.validation == "holdout":
        people = members.loc[members["diagnosis"] >= 0, "group"].nunique()
        if people < settings.least_people:
            raise UserError(
                f"splits: institution {institution} needs at least {settings.least_people} different labelled subjects "
                f"for `validation: holdout`, one that trains and one that is tested, it has {people}; {other}."
            )
        return
    if words.target == "class" and settings.share is None:
        other = f"use `validation: holdout`, or {other}"
    for code, title in words.many.items():
        if code not in wanted:
            continue
        people = members.loc[members["diagnosis"] == code, "group"].nunique()
        if people < folds:
            needs = f"splits: institution {institution} needs at least {folds} different {title} for {folds} folds"
            if code not in anywhere:
                raise UserError(f"{needs}, the whole cohort has none; fix codes.{words.target} or the table.")
            raise UserError(f"{needs}, it has {people}; {'lower `folds`, or ' if folds > 2 else ''}{other}.")


def _refuse_untestable(
    tested: set[str], sites: Sequence[str], included: pd.DataFrame, participants: pd.DataFrame
) -> None:
    """Refuse fewer than two sites to leave out in turn, sites that are none of a study's, and sites with an empty fold.

    `tested` have a labelled subject, `sites` are those of a study.
    """
    if len(tested | set(sites)) < 2:
        raise UserError(
            f"splits: leave_one_site_out needs subjects of at least 2 sites, found {sorted(tested | set(sites))}; "
            "use `validation: folds`."
        )
    if sites and (others := sorted(tested - set(sites))):
        raise UserError(
            f"splits: expected subjects of the study's sites ({', '.join(sites)}), found some of {others[0]}; give the "
            "site one name in the table (`codes.site` renames it) and in `study`."
        )
    emptied = sorted(set(_tested_sites(participants)) - tested)
    if not emptied:
        return
    members = participants.loc[(participants["site"] == emptied[0]) & participants["diagnosis"].notna(), "subject"]
    decided = included.set_index("subject").loc[members]
    reasons = decided["reason"].where(~decided["included"], "duplicate of a subject at another site")
    kinds = reasons.str.partition(" (")[0]
    raise UserError(
        f"splits: leave_one_site_out tests every site, expected subjects to test at site {emptied[0]}, found none: "
        f"all {len(members)} leave (most often: {kinds.mode().iloc[0]}; see cohort/issues.tsv; {len(emptied) - 1} more "
        "such sites); loosen that rule, leave the site out by `rows`, or merge it with another under codes.site."
    )
