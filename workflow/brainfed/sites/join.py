"""`brainfed join CONFIG`: a site trains with the others. Its scans stay; what leaves is listed before it leaves."""

import hashlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Event, Thread

from brainfed.configuration.layout import all_predictions, joint_files
from brainfed.runtime import UserError, folder_lock, write_text
from brainfed.sites._ipc import SECRET, SITE_SOCKET, Answer, serve, serve_each
from brainfed.sites._packet import LEAVE, REFUSED, Packet
from brainfed.sites._site_client import LeftSite, SiteClient
from brainfed.sites.flower import (
    Connection,
    FlowerFolder,
    Outward,
    make_key_pair,
    require_certificate,
    site_key,
    together,
    write_private,
    write_public,
)
from brainfed.sites.released import Stated, released_by, require_accepted, sentence_of
from brainfed.sites.study import (
    FOLDER,
    LEDGER,
    StudyPlace,
    introduction,
    require_extended_study,
    require_study_of,
    study_digest,
)

# The record that a site finished a study.

LEFT = "left.json"
"""Name of the note."""


@dataclass(frozen=True)
class PastLeave:
    """The record that this site finished a study, and with which results; the coordinator has answered its leave.

    A site that is started again with the same results has nothing to do; with others, or none, the study goes on.

    Attributes:
        path: of the note.
        study: digest of the study.
        files: the results that the study is about.
    """

    path: Path
    study: str
    files: tuple[str, ...]

    def write(self) -> None:
        """Note that the site has left now."""
        time = datetime.now().astimezone().isoformat(timespec="seconds")
        note = {"study": self.study, "time": time, "results": self._digests()}
        write_text(self.path, json.dumps(note, indent=1) + "\n")

    def time(self) -> datetime | None:
        """When the site left this study with the results that it has now; None: it did not, or the note is damaged."""
        if not self.path.exists() or not all(Path(file).exists() for file in self.files):
            return None
        try:
            note = json.loads(self.path.read_text(encoding="utf-8"))
            if (note["study"], note["results"]) != (self.study, self._digests()):
                return None
            return datetime.fromisoformat(note["time"])
        except (ValueError, LookupError, TypeError):
            return None

    def remove(self) -> None:
        """Forget a leave: the study begins anew."""
        self.path.unlink(missing_ok=True)

    def _digests(self) -> dict[str, str]:
        return {file: hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in self.files}


# The command.

FAREWELL_S = 2.0
"""For the last reply to reach the coordinator before Flower ends."""
ENDING_S = 60.0
"""For Snakemake to end its jobs."""


def join(config: Path, cores: str, gpus: int = 0) -> None:
    """Prepare this site's data, train with the other sites, and leave; Snakemake has so many cores and GPUs.

    Raises:
        UserError: the config is none of a site in a study, or changes the study; a key or the certificate is missing or
            broken; another `brainfed join` runs in this folder; the coordinator refuses the site; a job fails.
    """
    require_extended_study(config)
    place = StudyPlace.of(config)
    study = place.plan.project.study
    if not study.site:
        raise UserError(
            f"{config}: expected `study.site`, the name of this site, found none; set it in a config of your own that "
            "extends the study's file."
        )
    require_study_of(config, place.plan)
    folder = FlowerFolder(FOLDER.resolve())
    folder.make()
    lock = folder.root / "join.lock"
    with folder_lock(lock, "`brainfed join` in this folder", "stop it, or leave it running and do not start a second"):
        _join(place, folder, cores, gpus)


def _join(place: StudyPlace, folder: FlowerFolder, cores: str, gpus: int) -> None:
    study, layout = place.plan.project.study, place.layout
    _require_keys(folder, study.site)
    files = joint_files(layout, place.cohort)
    results = files or list(all_predictions(layout, place.cohort).values())
    past = PastLeave(folder.root / LEFT, study_digest(place.plan), tuple(results))
    if (left := past.time()) is not None:
        _say_left(left, place)
        return
    past.remove()
    secret = folder.root / "secret"
    leaving = LeftSite(LEDGER)
    # The subjects are known once they are prepared, which is before the coordinator can ask.
    released = cache(lambda: released_by(place))
    client = SiteClient(
        lambda: introduction(place.plan, time.time(), released=released().words()), leaving, secret.read_text().strip()
    )
    run = _Snakemake(place.config, cores, gpus, client)
    outward = Outward(client, study.least, leaving, unmasked=folder.root / "unmasked.jsonl")
    with _open(client, outward) as (outer, inner), together() as running:
        connect = Connection(running, folder, study, outer, outward, client)
        connect.look()
        run(["site"], {}, lambda: None)
        # Before anything leaves: what the study releases, which is refused if it is more than its file states.
        stated = Stated.of(place.plan)
        print(f"{study.site}: {sentence_of(stated, released())}", file=sys.stderr)
        require_accepted(f"site {study.site!r}", asdict(stated), released().words())
        connect()
        environment = {SITE_SOCKET: str(inner), SECRET: str(secret)}
        for number, file in enumerate(files, start=1):
            print(f"job {number} of {len(files)} with the other sites: {file}", file=sys.stderr)
            run([file], environment, connect)
        _leave(client, all_predictions(layout, place.cohort), connect)
        past.write()
        time.sleep(FAREWELL_S)
    print(f"{study.site} has left the study; all that left this site: {LEDGER}", file=sys.stderr)


def _say_left(when: datetime, place: StudyPlace) -> None:
    project = place.plan.project
    page = Path("results") / "reports" / f"{project.project}.html"
    written = "" if page.exists() else f", which `snakemake --cores all --configfile {place.config}` writes"
    print(
        f"{project.study.site} has left this study already, on {when:%d %B %Y, %H:%M}; its report: {page}{written}. If "
        f"the coordinator still waits for {project.study.site}, remove {FOLDER / LEFT} and run this again.",
        file=sys.stderr,
    )


class _Snakemake:
    """Runs of this site's workflow.

    The client of its jobs is closed before they are interrupted, so that one that waits goes on to its end.
    """

    def __init__(self, config: Path, cores: str, gpus: int, client: SiteClient) -> None:
        self._client = client
        self._options = ["--configfile", str(config), "--cores", cores]
        # Options that a command line gives replace all resources of the profile.
        self._options += ["--resources", f"gpu={gpus}"] if gpus else []

    def __call__(self, files: Sequence[str], environment: Mapping[str, str], watch: Callable[[], None]) -> None:
        """Make files or targets; `environment` is added to this process's, and `watch` is called every second.

        Raises:
            UserError: the coordinator refuses the site, or Snakemake fails.
        """
        command = [sys.executable, "-m", "snakemake", *files, *self._options]
        # A group of its own: Ctrl-C and SIGTERM reach us alone, and we end Snakemake and its jobs together.
        process = subprocess.Popen(command, env={**os.environ, **environment}, process_group=0)
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(1.0)
                    break
                watch()
        except BaseException:
            self._client.close()
            self._end(process)
            raise
        if code:
            raise UserError(
                self._client.refused
                or f"Snakemake ended with code {code}; mend the cause above and run `brainfed join` again."
            )

    @staticmethod
    def _end(process: "subprocess.Popen[bytes]") -> None:
        """Interrupt Snakemake and its jobs, which keep their last round; kill those that do not end.

        A second Ctrl-C kills them at once.
        """
        os.killpg(process.pid, signal.SIGINT)
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(ENDING_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _require_keys(folder: FlowerFolder, site: str) -> None:
    private, public = folder.private_key(site), folder.public_key(site)
    if not private.exists():
        make_key_pair(private, public)
        print(f"made {private}, which stays here, and {public}: send it to the coordinator", file=sys.stderr)
    key = site_key(private)
    if not public.exists():
        write_public(public, key.public_key())
    secret = folder.root / "secret"
    if not secret.exists():
        write_private(secret, secrets.token_hex(32).encode())
    if not re.fullmatch(r"[0-9a-f]{64}", secret.read_text().strip()):
        raise UserError(
            f"{secret}: expected the 64 hexadecimal digits that keep this site's noise secret, found others; restore "
            "the file, or remove it and begin a new study."
        )
    if not folder.certificate.exists():
        raise UserError(
            f"{folder.certificate}: expected the coordinator's certificate, found no file; send "
            f"{public} to the coordinator, put the certificate that you receive there, and run this "
            "again."
        )
    require_certificate(folder.certificate)


def _leave(client: SiteClient, predictions: Mapping[tuple[str, int], str], connect: Callable[[], None]) -> None:
    """Send the scores of all variants and repeats, however long it takes until the coordinator hears them.

    Raises:
        UserError: the coordinator refuses.
    """
    from brainfed.sites._scores import site_scores  # Scores are of the end alone, and import scikit-learn.

    last = Packet(LEAVE, {"scores": site_scores(list(predictions), list(predictions.values()))})
    answers: list[Packet] = []
    asking = Thread(target=lambda: answers.append(client.of_job(last)), daemon=True)
    asking.start()
    while asking.is_alive():
        connect()
        asking.join(1.0)
    (answer,) = answers
    if answer.kind == REFUSED:
        raise UserError(str(answer.about["sentence"]))


@contextmanager
def _open(client: SiteClient, outward: Answer) -> Iterator[tuple[Path, Path]]:
    """The client's sockets, for Flower and for jobs, while the body runs."""
    stop = Event()
    # The path of a socket has at most 107 bytes, which the temporary folder of a cluster may exceed.
    with tempfile.TemporaryDirectory(prefix="brainfed-", dir="/tmp") as short:
        outer, inner = Path(short) / "outer", Path(short) / "inner"
        threads = [
            Thread(target=serve, args=(outer, outward, stop), daemon=True),
            Thread(target=serve_each, args=(inner, client.of_job, stop), daemon=True),
        ]
        for each in threads:
            each.start()
        try:
            yield outer, inner
        finally:
            stop.set()
            for each in threads:
                each.join(1.0)
