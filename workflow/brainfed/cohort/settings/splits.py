"""Settings of institutions and folds (FedNI Sec. IV-A; site groups as GAHFL Table I)."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from brainfed.runtime.errors import UserError
from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class SplitSettings:
    """Division of subjects into institutions, and of institutions into test folds."""

    institutions: Literal["random", "sites", "site_groups"] = setting(
        "random", "Equal random parts of the cohort, one institution a site, or the named groups of sites."
    )
    count: int = setting(5, "Number of random institutions.", minimum=1)
    share: float | None = setting(
        None,
        "Fraction of the cohort in each random institution; the others are left out (FedNI Fig. 7); none: equal parts "
        "of the whole cohort.",
        minimum=0,
        maximum=1,
    )
    groups: Mapping[str, tuple[str, ...]] = setting(
        description="For `site_groups`: name of an institution -> its sites. Every site belongs to exactly one.",
        factory=dict,
    )
    validation: Literal["folds", "leave_one_site_out"] = setting(
        "folds",
        "Cross-validation folds inside each institution, or each site as an institution of its own, tested once "
        "(`institutions` and `folds` are then ignored; methods that complete the graph need `protocol: inductive`).",
    )
    folds: int = setting(5, "Folds of the cross-validation, stratified as `stratify` says.", minimum=2)
    stratify: Literal["label", "site_label"] = setting(
        "label",
        "label: every fold has its share of each diagnosis in each institution; site_label: also in each site, of an "
        "institution and of all (no effect where sites are institutions, or are left out in turn). Under `label` a "
        "site has fewer patients among its training subjects where it has more among its test subjects, and features "
        "that are centred by site turn this into scores. Report both stratifications before claiming a gain from "
        "anything site-wise.",
    )
    repeats: int = setting(5, "Number of draws of institutions and folds.", minimum=1)

    @property
    def draws_institutions(self) -> bool:
        """Whether institutions are random parts of the cohort, not sites or groups of sites."""
        return self.institutions == "random" and self.validation == "folds"

    @property
    def stratifies_sites(self) -> bool:
        """Whether folds are even in sites of institutions: an institution may have several."""
        return self.stratify == "site_label" and self.institutions != "sites" and self.validation == "folds"

    def __post_init__(self) -> None:
        if self.share is None:
            return
        if self.share == 0:
            raise ValueError("share: expected more than 0, found 0, an empty institution; raise it, or choose none")
        if self.institutions != "random" or self.validation != "folds":
            raise ValueError("share: expected random institutions with folds beside it; leave it out, or choose these")
        if round(self.count * self.share, 9) > 1:
            raise ValueError(f"share: {self.count} institutions of {self.share} are more than the cohort; lower it")


def institution_of_site(groups: Mapping[str, Collection[str]], sites: Collection[str]) -> dict[str, str]:
    """Site -> name of its group, for exactly the sites of the cohort.

    Raises:
        UserError: a group names an unknown site, or a site is in two groups or in none.
    """
    owner: dict[str, str] = {}
    for name, members in groups.items():
        for site in members:
            if site not in sites:
                raise UserError(
                    f"splits: group {name} names the site {site}, which the cohort lacks; {_nearest(site, sites)}."
                )
            if site in owner:
                raise UserError(
                    f"splits: the site {site} stands in the groups {owner[site]} and {name}; keep it in one of them."
                )
            owner[site] = name
    left_out = sorted(set(sites) - set(owner))
    if left_out:
        raise UserError(
            f"splits: expected every site of the cohort in a group, {', '.join(left_out)} "
            f"{'is' if len(left_out) == 1 else 'are'} in none; add to `groups`."
        )
    return owner


def _nearest(site: str, sites: Collection[str]) -> str:
    by_upper = {known.upper(): known for known in sites}
    near = difflib.get_close_matches(site.upper(), by_upper, n=1)
    return f"did you mean {by_upper[near[0]]}" if near else f"it has {', '.join(sorted(sites))}"
