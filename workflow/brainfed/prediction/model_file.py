"""The file of a kept model: of every fold and of everybody what scores a patient, and what describes it. No subject."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainfed.runtime.artefacts import read_arrays, write_arrays
from brainfed.runtime.errors import UserError
from brainfed.samples.kept.fitted_model import FittedModel

FORMAT = 2
EVERYBODY = "everybody"
"""The part that was trained on all labelled subjects; the others are `fold-0`, `fold-1` ..."""
ROLES = ("model", "reference")
WHOSE = ("shared", "own")
"""Second and third word of an array's name in a file; the first is the part, the last the array's own name."""
MADE_UP = ("random", "consecutive")
"""Values of `split.institutions`, of a model `drawn`, under which an institution is no hospital."""
WHITENING = "whitening"
"""Inverse square root (R, R) of the reference of tangent features."""


@dataclass(frozen=True)
class Part:
    """One training.

    Attributes:
        model: of the method.
        reference: `WHITENING` of tangent features with a reference; no arrays of others.
    """

    model: FittedModel
    reference: FittedModel

    @property
    def needs_institution(self) -> bool:
        """Whether institutions differ in scaling, weights or reference."""
        return bool(self.model.own or self.reference.own)


@dataclass(frozen=True)
class KeptFile:
    """Content of a file.

    Attributes:
        about: method, features, regions, institutions and how they are drawn, classes, distances; see
            `prediction.keeping.keep`.
        parts: `EVERYBODY` and `fold-0`, ... -> its arrays.
    """

    about: Mapping[str, Any]
    parts: Mapping[str, Part]


def part_name(fold: int | None) -> str:
    """The part of a fold; None: of everybody."""
    return EVERYBODY if fold is None else f"fold-{fold}"


def write_model(path: str | Path, kept: KeptFile) -> None:
    """Write a file; an array is called `part/model/shared/name`."""
    arrays = {
        f"{part}/{role}/{whose}/{name}": array
        for part, held in kept.parts.items()
        for role in ROLES
        for whose in WHOSE
        for name, array in getattr(getattr(held, role), whose).items()
    }
    write_arrays(path, arrays, {"format": FORMAT, **kept.about})


def read_model(path: str | Path) -> KeptFile:
    """Read a file.

    Raises:
        UserError: it is no such file, is of another version of the format, or has an array of another kind of file.
    """
    file = read_arrays(path)
    if file.metadata.get("format") != FORMAT:
        raise UserError(
            f"{path}: expected a kept model of format {FORMAT}, found {file.metadata.get('format', 'another file')}; "
            "use the brainfed that wrote it."
        )
    found: dict[str, dict[str, dict[str, dict[str, Any]]]] = {}
    for name, array in file.arrays.items():
        part, role, whose, own = _words(path, name)
        roles = found.setdefault(part, {role: {whose: {} for whose in WHOSE} for role in ROLES})
        roles[role][whose][own] = array
    parts = {
        part: Part(FittedModel(**roles["model"]), FittedModel(**roles["reference"])) for part, roles in found.items()
    }
    return KeptFile(file.metadata, parts)


def _words(path: str | Path, name: str) -> list[str]:
    words = name.split("/")
    if len(words) != 4 or words[1] not in ROLES or words[2] not in WHOSE:
        raise UserError(
            f"{path}: expected arrays called part/{'|'.join(ROLES)}/{'|'.join(WHOSE)}/name, found {name!r}; let "
            "`snakemake models` write the file anew."
        )
    return words
