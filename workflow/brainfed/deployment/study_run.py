"""What the coordinator's ServerApp does: it greets the sites, compares them, and answers until all have left."""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from brainfed.deployment.attendance.greeting import Comparison, greet
from brainfed.deployment.attendance.released import Stated
from brainfed.deployment.conversation import Conversation
from brainfed.deployment.flower.secure.coordinator import SecureSums
from brainfed.deployment.introduction import introduction, study_digest
from brainfed.deployment.kept_state import KeptState
from brainfed.deployment.places import OUTCOME, StudyPlace
from brainfed.federation.apart.coordinator import Coordinator
from brainfed.federation.apart.hub import Hub
from brainfed.federation.apart.packet import Packet
from brainfed.runtime.artefacts import write_text
from brainfed.runtime.errors import UserError

STATE = "coordinator"


def converse(hub: Hub, config: Mapping[str, Any]) -> None:
    """Run a study; its outcome is in the folder of Flower's files.

    Args:
        hub: to the sites.
        config: `folder`, of Flower's files; `study`, the path of the study's config; `place`, the working directory.

    Raises:
        UserError: sites are late in a step, or send what cannot be used.
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
    kept = KeptState(folder / STATE, study_digest(place.plan))
    compare = Comparison(hub, names, introduction(place.plan, time.time(), stated=asdict(Stated.of(place.plan))))
    conversation = Conversation(hub, coordinator, study.wait, kept, compare)
    greet(compare, {code: name for code, name in names.items() if code not in conversation.left})
    return conversation.run(), coordinator.rounds
