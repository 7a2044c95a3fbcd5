"""What a site keeps of its leave: of which study, when, and with which results."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from brainfed.runtime.artefacts import write_text

LEFT = "left.json"
"""Name of the note."""


@dataclass(frozen=True)
class PastLeave:
    """The note of a leave that the coordinator has answered.

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
