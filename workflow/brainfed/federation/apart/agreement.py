"""Agreement of the sites' requests: one step, one study, a state of each site's own, sums of one kind."""

from collections.abc import Collection, Mapping
from typing import Any

from brainfed.federation.apart.exchange import TOTAL
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.sealed import SUM
from brainfed.federation.apart.session import Session
from brainfed.federation.apart.site_error import SiteError, usual
from brainfed.runtime.errors import UserError

STATED = ("strategy", "settings", "tensors", "rounds")
"""What all institutions must state alike when they open a training."""


def require_nobody_gone(requests: Mapping[int, Packet], gone: Collection[int], names: Mapping[int, str]) -> None:
    """All sites have the same joint jobs: one that has left before a new step has results of another study.

    Raises:
        UserError: a site has left.
    """
    if gone:
        left = ", ".join(repr(names[code]) for code in sorted(gone))
        raise UserError(
            f"{next(iter(requests.values())).about['key']}: expected {left} in this step too, found that it has left; "
            "it had results of an earlier study. Move `results` away there and `federation/coordinator` here; begin "
            "anew."
        )


def require_one_key(requests: Mapping[int, Packet], names: Mapping[int, str]) -> None:
    """Sites ask one thing at a time, all the same.

    Raises:
        UserError: sites are at different steps.
    """
    asked = {code: (request.kind, request.about["key"]) for code, request in requests.items()}
    if len(set(asked.values())) > 1:
        stated = "; ".join(f"{names[code]!r} at {key} ({kind})" for code, (kind, key) in sorted(asked.items()))
        raise UserError(
            f"expected all sites at the same step, found {stated}; the sites' settings or versions differ, or one "
            "has results of an earlier study: begin anew there in an empty `results`."
        )


def require_stated(
    code: int,
    request: Packet,
    stated: Mapping[str, Any],
    name: str,
    by: str = "the study",
    error: type[SiteError] = SiteError,
) -> None:
    """A training is the same at a site as in the study that has begun, or `by` another site.

    Raises:
        SiteError: a site opens another training under the same key; `error` of this class.
    """
    for what in STATED:
        if request.about[what] != stated[what]:
            raise error(
                code,
                f"site {name!r}: expected the same {what} as {by}, found another for {request.about['key']}; run the "
                "same study with the same version of brainfed at all sites.",
            )


def require_like_trainings(requests: Mapping[int, Packet], names: Mapping[int, str]) -> dict[str, Any]:
    """Sites that open a training together state the same of it; what they state, by the names `STATED`.

    Raises:
        SiteError: a site states something else than more than half of the sites.
        DifferingSitesError: sites state different things, and no more than half of them the same.
    """
    every = {code: {name: request.about[name] for name in STATED} for code, request in requests.items()}
    lead, error = usual(every, len(names))
    for code, request in sorted(requests.items()):
        require_stated(code, request, every[lead], names[code], f"site {names[lead]!r}", error)
    return every[lead]


def require_state(code: int, request: Packet, session: Session, name: str) -> None:
    """A site that has trained goes on from its own state: what stays at home is in no message.

    Raises:
        SiteError: it begins at a round that it has trained, whose answer has long come.
    """
    if int(request.about["round"]) < session.replied[code] and not (session.over and session.publishes):
        raise SiteError(
            code,
            f"site {name!r}: expected its state after round {session.replied[code] + 1} of {request.about['key']}, "
            f"found that it begins at round {request.about['round'] + 1}; restore its `results` as they were, or begin "
            "a new study.",
        )


def require_like_tensors(requests: Mapping[int, Packet], names: Mapping[int, str]) -> None:
    """Open numbers of one step have the same names at all sites that send some, and samples of as many folds.

    Raises:
        SiteError: a site has others than more than half of the sites.
        DifferingSitesError: sites have different ones, and no more than half of them the same.
    """
    sent = {
        code: _described(request)
        for code, request in sorted(requests.items())
        if request.kind == TOTAL or request.tensors
    }
    if not sent:
        return
    lead, error = usual(sent, len(names))
    for code, found in sent.items():
        if found != sent[lead]:
            raise error(
                code,
                f"site {names[code]!r}: expected {sent[lead]} for {requests[code].about['key']} as of site "
                f"{names[lead]!r}, found {found}; run the same study with the same version of brainfed at all sites.",
            )


def require_like_sums(requests: Mapping[int, Packet], names: Mapping[int, str]) -> None:
    """Numbers that are added up unseen have the same names and types at all sites; none is open beside them.

    Raises:
        SiteError: a site has others than more than half of the sites.
        DifferingSitesError: sites have different ones, and no more than half of them the same.
    """
    sums = {code: request.about.get(SUM) for code, request in requests.items()}
    lead, error = usual(sums, len(names))
    for code, request in requests.items():
        if sums[code] != sums[lead]:
            raise error(
                code,
                f"site {names[code]!r}: expected numbers to add up for {request.about['key']} as those of site "
                f"{names[lead]!r}, in names, types and `study.secure_sums`, found others; run the same study with the "
                "same version of brainfed at all sites.",
            )


def _described(request: Packet) -> str:
    folds = len(request.about.get("samples", []))
    return (", ".join(sorted(request.tensors)) or "no tensors") + (f" and samples of {folds} folds" if folds else "")
