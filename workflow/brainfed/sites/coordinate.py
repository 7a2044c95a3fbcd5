"""`brainfed coordinate CONFIG`: the study's server. It holds no subjects and no models of its own."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from brainfed.runtime import UserError
from brainfed.sites._outcome_page import write_outcome_page
from brainfed.sites.flower import FlowerFolder, make_or_check, require_public_keys, start_run, start_superlink, together
from brainfed.sites.released import SHARE, Stated
from brainfed.sites.study import FOLDER, OUTCOME, PAGE, StudyPlace, study_digest

ENTRY = "brainfed.sites.conversation:converse"
LOOK_S = 0.5


def coordinate(config: Path) -> None:
    """Run a study from the first site that comes to the last that leaves; one that was stopped goes on.

    Raises:
        UserError: a site's key is missing, or the study ends with an error; what was reached is kept.
    """
    place = StudyPlace.of(config)
    study, folder = place.plan.project.study, FlowerFolder(FOLDER.resolve())
    if study.site:
        raise UserError(
            f"{config}: expected the study's own file, found the config of site {study.site!r}; name that file, or run "
            "`brainfed join` with this one."
        )
    host, _, port = study.address.rpartition(":")
    folder.make()
    make_or_check(folder.certificate, folder.certificate_key, host)
    missing = [name for name in study.ordered if not folder.public_key(name).exists()]
    if missing:
        raise UserError(
            f"{folder.public_key(missing[0])}: expected the public key of site {missing[0]!r}, found no file; ask the "
            f"site for the file of this name, which its `brainfed join` makes ({len(missing)} of {len(study.sites)} "
            "keys are missing)."
        )
    require_public_keys({name: folder.public_key(name) for name in study.ordered})
    outcome = folder.root / OUTCOME
    outcome.unlink(missing_ok=True)
    (folder.root / PAGE).unlink(missing_ok=True)
    folder.write_connection(f"127.0.0.1:{port}")
    folder.write_app(ENTRY, study.ordered, {"study": str(config.resolve()), "place": str(Path.cwd())})
    log = folder.log("coordinator")
    said = log.stat().st_size if log.exists() else 0
    with together() as running:
        print(_fewest_subjects(Stated.of(place.plan)), file=sys.stderr)
        running.append(start_superlink(folder, study.ordered, "0.0.0.0", int(port)))
        print(
            f"study {study_digest(place.plan)[:16]} at port {port}, waits for {', '.join(study.ordered)}",
            file=sys.stderr,
        )
        running.append(start_run(folder))
        _follow(folder, said, lambda: any(each.process.poll() is not None for each in running))
        if not outcome.exists():
            ended = next(each for each in running if each.process.poll() is not None)
            raise UserError(f"{ended.name} ended without a result:\n{ended.tail()}")
    content = json.loads(outcome.read_text(encoding="utf-8"))
    if "error" in content:
        raise UserError(content["error"])
    print(f"all sites have left; their scores: {folder.root / OUTCOME}", file=sys.stderr)
    write_outcome_page(place, content["scores"], content["steps"], folder.root / PAGE)
    print(f"the page to read: {folder.root / PAGE}", file=sys.stderr)


def _fewest_subjects(stated: Stated) -> str:
    """What the leader of a study reads about the sums that it releases."""
    said = f"the study adds up exact numbers of {stated.sets} different sets of each site's subjects"
    fewest = stated.sets * SHARE
    if stated.accept_reconstruction:
        return f"{said}: features of single subjects of sites with fewer than {fewest} could be computed (accepted)"
    return f"{said}: sites with fewer than {fewest} subjects are refused"


def _follow(folder: FlowerFolder, place: int, ended: Callable[[], bool]) -> None:
    """Print the coordinator's log from a place on, until the study has ended; its error is in the outcome."""
    log = folder.log("coordinator")
    while True:
        done = ended() or (folder.root / OUTCOME).exists()
        if log.exists():
            with log.open(encoding="utf-8", errors="replace") as file:
                file.seek(place)
                # A line has date, time, level and message.
                sys.stderr.writelines(line for line in file if line.split(maxsplit=3)[2:3] != ["ERROR"])
                place = file.tell()
        if done:
            return
        time.sleep(LOOK_S)
