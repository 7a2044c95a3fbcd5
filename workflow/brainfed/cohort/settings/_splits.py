"""Settings of institutions, folds and public subjects."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from brainfed.runtime import UserError, setting

# Settings of the public subjects of every institution (GAHFL, Setting: public ratio R).


@dataclass(frozen=True)
class PublicSettings:
    """Settings of the public subjects, for methods whose server has data of its own."""

    ratio: float = setting(
        0.3,
        "Share of the training subjects of each class that every institution gives to the server, rounded, in each "
        "fold; the rest stays private. Subjects that are public at one ratio are so at every larger one.",
        minimum=0.01,
        maximum=0.99,
    )


# Settings of institutions and folds (FedNI Sec. IV-A; site groups as GAHFL Table I; runs as Xie et al. 2021).


@dataclass(frozen=True)
class SplitSettings:
    """Division of subjects into institutions, and of institutions into test folds."""

    institutions: Literal["random", "sites", "site_groups", "consecutive"] = setting(
        "random",
        "Equal random parts of the cohort, one institution a site, the named groups of sites, or runs of consecutive "
        "subjects in the order of their ids, which are the same in all repeats.",
    )
    count: int = setting(5, "Number of random or consecutive institutions.", minimum=1)
    block: int = setting(
        50,
        "Of `consecutive`: most subjects in a run; all runs have as many, at most an equal part of the cohort. Every "
        "other subject goes to an institution at random.",
        minimum=1,
    )
    share: float | None = setting(
        None,
        "Fraction of the cohort in each random institution; the others are left out (FedNI Fig. 7); none: equal parts "
        "of the whole cohort.",
        minimum=0,
        maximum=1,
    )
    groups: Mapping[str, tuple[str, ...]] = setting(
        description="For `site_groups`: name of an institution -> its sites. Every site belongs to exactly one; a site "
        "all of whose subjects leave may be in none.",
        factory=dict,
    )
    validation: Literal["folds", "leave_one_site_out", "holdout"] = setting(
        "folds",
        "Cross-validation folds inside each institution; each site as an institution of its own, tested once "
        "(`institutions` and `folds` are then ignored; methods that complete the graph need `protocol: inductive`); or "
        "one random part of each institution, tested once a repeat (`folds` is then ignored).",
    )
    folds: int = setting(5, "Folds of the cross-validation, stratified as `stratify` says.", minimum=2)
    tested: float = setting(
        0.1,
        "Of `holdout`: fraction of each institution that is tested, with its share of each diagnosis.",
        minimum=0,
        maximum=1,
    )
    held_back: float = setting(
        0.1,
        "Of `holdout`: fraction of each institution that neither trains nor is tested, such as a validation set that "
        "no method reads; the subjects are in no graph and no fit, like those outside a `share`.",
        minimum=0,
        maximum=1,
    )
    stratify: Literal["label", "site_label"] = setting(
        "label",
        "label: every fold has its share of each diagnosis in each institution; site_label: also in each site, of an "
        "institution and of all (no effect under `holdout`, and where sites are institutions or are left out in turn). "
        "Under `label` a site has fewer patients among its training subjects where it has more among its test "
        "subjects, and features that are centred by site turn this into scores. Report both stratifications before "
        "claiming a gain from anything site-wise.",
    )
    repeats: int = setting(5, "Number of draws of institutions and folds.", minimum=1)

    @property
    def draws_institutions(self) -> bool:
        """Whether institutions are random parts of the cohort, not sites, groups of sites or runs of subjects."""
        return self.institutions == "random" and self.validation != "leave_one_site_out"

    @property
    def counts_institutions(self) -> bool:
        """Whether `count` is the number of institutions."""
        return self.institutions in ("random", "consecutive") and self.validation != "leave_one_site_out"

    @property
    def leaves_subjects_out(self) -> bool:
        """Whether some included subjects neither train nor are tested."""
        return self.share is not None or (self.validation == "holdout" and self.held_back > 0)

    @property
    def test_folds(self) -> int | None:
        """Number of test folds of a repeat; None: one for each site of the cohort."""
        return {"folds": self.folds, "leave_one_site_out": None, "holdout": 1}[self.validation]

    @property
    def least_people(self) -> int:
        """Fewest labelled people of an institution that is divided: one a fold, or one that trains and one tested."""
        return self.folds if self.validation == "folds" else 2

    @property
    def trains_untested(self) -> bool:
        """Whether subjects train that no fold tests, so that no score shows them."""
        return self.validation == "holdout"

    @property
    def stratifies_sites(self) -> bool:
        """Whether folds are even in sites of institutions: an institution may have several."""
        return self.stratify == "site_label" and self.institutions != "sites" and self.validation == "folds"

    def __post_init__(self) -> None:
        if self.tested == 0:
            raise ValueError("tested: expected more than 0, found 0, nobody to score; raise it")
        if round(self.tested + self.held_back, 9) >= 1:
            raise ValueError(
                f"tested: expected less than 1 together with held_back, found {self.tested:g} + {self.held_back:g}, "
                "which leaves nobody to train; lower one of them"
            )
        if self.share is None:
            return
        if self.share == 0:
            raise ValueError("share: expected more than 0, found 0, an empty institution; raise it, or choose none")
        if self.institutions != "random" or self.validation != "folds":
            raise ValueError("share: expected random institutions with folds beside it; leave it out, or choose these")
        if round(self.count * self.share, 9) > 1:
            raise ValueError(f"share: {self.count} institutions of {self.share} are more than the cohort; lower it")


def institution_of_site(
    groups: Mapping[str, Collection[str]], sites: Collection[str], inhabited: Collection[str]
) -> dict[str, str]:
    """Site -> name of its group; each of the `inhabited` sites, which have an included subject, needs one.

    Raises:
        UserError: a group names an unknown site, or a site is in two groups, or has subjects and is in none.
    """
    owner: dict[str, str] = {}
    for name, members in groups.items():
        for site in members:
            if site not in sites:
                by_upper = {known.upper(): known for known in sites}
                near = difflib.get_close_matches(site.upper(), by_upper, n=1)
                meant = f"did you mean {by_upper[near[0]]}" if near else f"it has {', '.join(sorted(sites))}"
                raise UserError(f"splits: group {name} names the site {site}, which the cohort lacks; {meant}.")
            if site in owner:
                raise UserError(
                    f"splits: the site {site} stands in the groups {owner[site]} and {name}; keep it in one of them."
                )
            owner[site] = name
    left_out = sorted(set(inhabited) - set(owner))
    if left_out:
        raise UserError(
            f"splits: expected every site of the cohort in a group, {', '.join(left_out)} "
            f"{'is' if len(left_out) == 1 else 'are'} in none; add to `groups`."
        )
    return owner
