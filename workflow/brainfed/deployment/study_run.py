"""What the coordinator's ServerApp does: it greets the sites, compares them, and answers until all have left."""

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from logging import getLogger
from pathlib import Path
from typing import Any

from brainfed.deployment.conversation import Conversation
from brainfed.deployment.flower.secure.coordinator import SecureSums
from brainfed.deployment.introduction import check_introduction, introduction, study_digest
from brainfed.deployment.kept_state import KeptState
from brainfed.deployment.places import OUTCOME, StudyPlace
from brainfed.federation.apart.coordinator import Coordinator
from brainfed.federation.apart.exchange import INTRODUCE, REFUSED
from brainfed.federation.apart.form import require_introduction
from brainfed.federation.apart.hub import Hub
from brainfed.federation.apart.packet import Packet
from brainfed.federation.apart.site_error import SiteError
from brainfed.runtime.artefacts import write_text
from brainfed.runtime.errors import UserError

STATE = "coordinator"
GREETING_S = 10.0
"""For a site to introduce itself."""
SKEW_S = 60.0
"""Difference of clocks that is refused: Flower drops messages that seem to come from the past or the future."""

logger = getLogger(__name__)


def converse(hub: Hub, config: Mapping[str, Any]) -> None:
    """Run a study; its outcome is in the folder of Flower's files.

    Args:
        hub: to the sites.
        config: `folder`, of Flower's files; `study`, the path of the study's config; `place`, the working directory.

    Raises:
        UserError: sites differ, are late, or send what cannot be used.
    """
    folder = Path(str(config["folder"]))
    os.chdir(str(config["place"]))
    try:
        place = StudyPlace.of(Path(str(config["study"])))
        left, steps = _run(hub, place, folder)
    except UserError as error:
        write_text(folder / OUTCOME, json.dumps({"error": str(error)}) + "\n")
        raise
    names = dict(enumerate(place.plan.project.study.ordered))
    scores = {names[code]: packet.about.get("scores", []) for code, packet in sorted(left.items())}
    write_text(folder / OUTCOME, json.dumps({"steps": steps, "scores": scores}, indent=1) + "\n")


def _run(hub: Hub, place: StudyPlace, folder: Path) -> tuple[dict[int, Packet], int]:
    """The last words of all sites, and the number of rounds and sums."""
    study = place.plan.project.study
    names = dict(enumerate(study.ordered))
    coordinator = Coordinator(names, study.least, SecureSums(hub, study.least))
    expected = introduction(place.plan, time.time())
    kept = KeptState(folder / STATE, study_digest(place.plan))

    def compare(codes: Sequence[int]) -> Collection[int]:
        return _introduced(hub, {code: names[code] for code in codes}, expected, GREETING_S)

    conversation = Conversation(hub, coordinator, study.wait, kept, compare)
    here = {code: name for code, name in names.items() if code not in conversation.left}
    _greet(hub, here, expected, study.wait)
    return conversation.run(), coordinator.rounds


def _greet(hub: Hub, names: Mapping[int, str], expected: Mapping[str, Any], wait: float) -> None:
    """Compare every site with the study, as soon as it comes."""
    met = set[int]()
    end = time.monotonic() + wait
    while len(met) < len(names):
        absent = {code: name for code, name in names.items() if code not in met}
        found = _introduced(hub, absent, expected, min(GREETING_S, max(end - time.monotonic(), 1.0)))
        for code in found:
            logger.info("site %s is there", names[code])
        met |= found
        if len(met) < len(names) and time.monotonic() > end:
            away = ", ".join(repr(name) for code, name in names.items() if code not in met)
            raise UserError(
                f"expected all sites within {wait:g} s, found none of {away}; ask them to run `brainfed join`, and "
                "start again."
            )


def _introduced(hub: Hub, names: Mapping[int, str], expected: Mapping[str, Any], seconds: float) -> set[int]:
    """The sites that answered in time; all of them would compute what the study does."""
    try:
        found = hub.ask({code: Packet(INTRODUCE) for code in names}, seconds)
    except SiteError as error:
        hub.ask({error.code: Packet(REFUSED, {"sentence": str(error)})}, 10.0)
        raise UserError(str(error)) from error
    for code, reply in found.items():
        _check(hub, code, names[code], reply, expected)
    return set(found)


def _check(hub: Hub, code: int, name: str, reply: Packet, expected: Mapping[str, Any]) -> None:
    try:
        if reply.kind == REFUSED:
            raise UserError(f"site {name!r}: {reply.about['sentence']}")
        require_introduction(code, reply, name)
        check_introduction(name, reply.about, expected)
        skew = float(reply.about["clock"]) - time.time()
        if abs(skew) > SKEW_S:
            raise UserError(
                f"site {name!r}: expected a clock within {SKEW_S:g} s of the coordinator's, found one that is "
                f"{abs(skew):.0f} s {'ahead' if skew > 0 else 'behind'}; set both by NTP."
            )
    except UserError as error:
        hub.ask({code: Packet(REFUSED, {"sentence": str(error)})}, 10.0)
        raise UserError(str(error)) from error
