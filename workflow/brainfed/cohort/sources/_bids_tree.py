"""The runs of a BIDS derivative, found by the entities in its file names."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from brainfed.cohort.settings import BidsSettings
from brainfed.runtime import UserError


@dataclass(frozen=True)
class BidsRun:
    """One preprocessed image and its files.

    Attributes:
        name: its entities, `sub-01_ses-a_task-rest_run-1_space-T1w`.
        image: path of the 4D image.
        confounds: path of its table of confounds, None if absent.
        components: path of the json beside that table, which describes its CompCor columns, if it is needed.
        mask: path of its brain mask, None if absent or not used.
        sidecars: paths of the json files that apply to the image, the nearest last (BIDS inheritance principle).
        links: paths of those that are links without content, as of a data set that was not fetched.
    """

    name: str
    image: str
    confounds: str | None = None
    mask: str | None = None
    sidecars: tuple[str, ...] = ()
    components: str | None = None
    links: tuple[str, ...] = ()


# Find the runs of a BIDS derivative by the entities in its file names.
#
# ancpbids parses the names and is imported only here. Unlike other BIDS libraries it needs no pandas, scikit-learn or
# pyarrow (0.1 s, and every job lists the cohort again).

NATIVE = "native"
VERSIONS = ("space", "cohort", "res", "den", "desc", "rec")
"""Entities that distinguish versions of one run, not runs."""
NUMBERS = ("run", "echo", "flip", "inv", "split", "chunk")
"""Entities whose label is a number: `run-1` and `run-01` are one run."""
IMAGES = (".nii.gz", ".nii")
ENDINGS = (
    "_bold.nii.gz",
    "_bold.nii",
    "_bold.json",
    "_mask.nii.gz",
    "_mask.nii",
    "_timeseries.tsv",
    "_regressors.tsv",
    "_timeseries.json",
    "_regressors.json",
)
BELOW = (("sub-",), ("ses-", "func"), ("func",))
"""Folders to enter by depth: a derivative's subjects; their sessions and images; images of sessions."""


@dataclass(frozen=True)
class BidsFile:
    """One file with the entities of its name; `exists` is false for a link without content."""

    path: str
    entities: dict[str, str]
    suffix: str
    extension: str
    exists: bool = True

    def without(self, *names: str) -> dict[str, str]:
        """Entities except these."""
        return {name: label for name, label in self.entities.items() if name not in names}

    @property
    def of_run(self) -> dict[str, str]:
        """Entities but `desc`, to be compared: numbers without leading zeros, a magnitude as a whole image."""
        labels = {name: _value(name, label) for name, label in self.without("desc").items()}
        return {name: label for name, label in labels.items() if (name, label) != ("part", "mag")}


def find_runs(folder: str | Path, settings: BidsSettings, where: str) -> dict[str, tuple[BidsRun, ...]]:
    """Subject label (without `sub-`) -> its runs in order of session, task and number, from an existing derivative.

    Raises:
        UserError: no image has the wanted space, resolution, task, session or run; images have several of one of
            these and the settings choose none; or one run has two images or tables of confounds.
    """
    root = Path(folder)
    tree = _read_tree(root, where)
    images = [file for files in tree.values() for file in files if _is_image(file, settings)]
    _refuse_strays(images, root, where)
    if not images:
        raise UserError(
            f"{where}: expected images sub-*/[ses-*/]func/*_desc-{_description(settings)}_bold.nii.gz in {folder}, "
            "found none; fix bids.derivatives."
        )
    for entity, key, wanted, several in (
        ("space", "space", settings.space, False),
        ("res", "resolution", settings.resolution, False),
        ("task", "task", settings.task, False),
        ("rec", "reconstruction", settings.reconstruction, True),
        ("ses", "sessions", settings.sessions, True),
        ("run", "run_numbers", settings.run_numbers, True),
    ):
        listed = wanted if isinstance(wanted, tuple) else () if wanted is None else (wanted,)
        labels = [str(label).removeprefix(f"{entity}-") for label in listed]
        images = _among(entity, key, labels, images, where, several=several)
    _refuse_doubles(images, where)
    runs: dict[str, list[BidsRun]] = {}
    for image in sorted(images, key=lambda image: (_order(image), image.path)):
        runs.setdefault(image.entities["sub"], []).append(_run(image, tree, root, settings, where))
    kept = 1 if settings.runs == "first" else None
    return {label: tuple(of_subject[:kept]) for label, of_subject in sorted(runs.items())}


def _refuse_strays(images: Sequence[BidsFile], root: Path, where: str) -> None:
    """Refuse an image in the folder of another subject or session."""
    for image in images:
        folders = [normalize("NFC", part) for part in Path(image.path).relative_to(root).parts[:-1]]
        for entity in ("sub", "ses"):
            holding = next((folder for folder in folders if folder.startswith(f"{entity}-")), None)
            named = f"{entity}-{image.entities[entity]}" if entity in image.entities else None
            if holding != named:
                raise UserError(
                    f"{where}: expected an image of {holding or f'no {entity}-'} in {Path(image.path).parent}, found "
                    f"{Path(image.path).name}; move it to its folder, or fix its name."
                )


def _read_tree(root: Path, where: str) -> dict[Path, list[BidsFile]]:
    """Folder -> its BIDS files: the derivative, its subjects, their sessions, and func/ of each."""
    tree: dict[Path, list[BidsFile]] = {}
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            raise UserError(
                f"{where}: expected a folder that can be read, found {error}; fix its permissions."
            ) from error
        tree[folder] = _files(entries)
        depth = len(folder.relative_to(root).parts)
        below = BELOW[depth] if depth < len(BELOW) and folder.name != "func" else ()
        waiting += [Path(entry.path) for entry in entries if entry.name.startswith(below) and Path(entry).is_dir()]
    return tree


def _files(entries: Sequence["os.DirEntry[str]"]) -> list[BidsFile]:
    from ancpbids.utils import parse_bids_name

    files = []
    for entry in entries:
        if entry.name.endswith(ENDINGS) and (parsed := parse_bids_name(normalize("NFC", entry.name))):
            # An entry answers without a look at the disk, but a link to itself is no file.
            exists = Path(entry).is_file() if entry.is_symlink() else entry.is_file()
            path = str(Path(entry.path))
            files.append(BidsFile(path, parsed["entities"], parsed["suffix"], parsed["extension"], exists))
    return files


def _description(settings: BidsSettings) -> str:
    return "smoothAROMAnonaggr" if settings.confounds.strategy == "ica_aroma" else "preproc"


def _is_image(file: BidsFile, settings: BidsSettings) -> bool:
    """Whether a file is a preprocessed image; single echoes are not, nor parts of complex images but the magnitude."""
    return (
        file.suffix == "bold"
        and file.extension in IMAGES
        and file.entities.get("desc") == _description(settings)
        and "sub" in file.entities
        and "echo" not in file.entities
        and file.entities.get("part", "mag") == "mag"
    )


def _label(image: BidsFile, entity: str) -> str:
    """Label of an image: a run's number without leading zeros, a template with its cohort."""
    label = image.entities.get(entity, NATIVE)
    if entity == "space" and "cohort" in image.entities:
        return f"{label}:cohort-{image.entities['cohort']}"
    return _value(entity, label)


def _value(entity: str, label: str) -> str:
    """A label, of an entity with numbers without leading zeros."""
    return str(int(label)) if entity in NUMBERS and label.isdecimal() else label


def _among(
    entity: str, key: str, wanted: Sequence[str], images: list[BidsFile], where: str, *, several: bool
) -> list[BidsFile]:
    """The images with one of the wanted labels; where none is wanted all, which have one label unless `several`."""
    present = {_label(image, entity) for image in images}
    labels = sorted(present, key=lambda label: (label.isdecimal(), int(label) if label.isdecimal() else 0, label))
    if not wanted and not several and len(labels) > 1:
        raise UserError(
            f"{where}: expected images of one {key}, found those of {', '.join(labels)}; name one in bids.{key}."
        )
    if not wanted:
        return images
    absent = [label for label in wanted if label not in labels]
    if absent:
        shown = [f"none ({NATIVE})" if label == NATIVE else label for label in labels]
        raise UserError(
            f"{where}: expected images with {entity}-{absent[0]}, found {entity}: {', '.join(shown)}; fix bids.{key}."
        )
    return [image for image in images if _label(image, entity) in wanted]


def _order(image: BidsFile) -> tuple[list[tuple[str, int]], ...]:
    """Sorting key: subject, session, task and run, with numbers by value: ses-2 before ses-10."""
    labels = (image.entities.get(entity, "") for entity in ("sub", "ses", "task", "run"))
    return tuple([(text, int(number or -1)) for text, number in re.findall(r"(\D*)(\d*)", label)] for label in labels)


def _run(image: BidsFile, tree: dict[Path, list[BidsFile]], root: Path, settings: BidsSettings, where: str) -> BidsRun:
    beside = tree[Path(image.path).parent]
    confounds = _confounds(image, beside, where)
    mask = _mask(image, beside) if settings.brain_mask else None
    sidecars = _sidecars(image, tree, root)
    wanted = confounds is not None and settings.confounds.strategy == "compcor"
    described = str(Path(confounds.path).with_suffix(".json")) if confounds and wanted else None
    components = next((file for file in beside if file.path == described), None)
    files = [file for file in (image, confounds, mask, components, *sidecars) if file is not None]
    return BidsRun(
        name="_".join(f"{name}-{label}" for name, label in image.without("desc").items()),
        image=image.path,
        confounds=_path_of(confounds),
        mask=_path_of(mask),
        sidecars=tuple(file.path for file in sidecars),
        components=_path_of(components),
        links=tuple(file.path for file in files if not file.exists),
    )


def _path_of(file: BidsFile | None) -> str | None:
    """Path of a file; None for none, and for a link without content."""
    return file.path if file is not None and file.exists else None


def _confounds(image: BidsFile, beside: Sequence[BidsFile], where: str) -> BidsFile | None:
    """Table of confounds by nilearn's rule: `_timeseries`, or `_regressors` before fMRIPrep 20.2."""
    tables = [
        file
        for file in beside
        if file.suffix in ("timeseries", "regressors")
        and (file.extension, file.entities.get("desc")) == (".tsv", "confounds")
        and file.of_run.items() <= image.of_run.items()
    ]
    if len(tables) > 1:
        raise UserError(
            f"{where}: expected one table of confounds for {image.path}, found "
            f"{' and '.join(file.path for file in tables)}; remove all but the right one."
        )
    return tables[0] if tables else None


def _mask(image: BidsFile, beside: Sequence[BidsFile]) -> BidsFile | None:
    masks = (file for file in beside if file.suffix == "mask" and file.extension in IMAGES)
    return next((file for file in masks if file.entities.get("desc") == "brain" and file.of_run == image.of_run), None)


def _sidecars(image: BidsFile, tree: dict[Path, list[BidsFile]], root: Path) -> list[BidsFile]:
    """Sidecars that apply to an image, from the root of the derivative to the image's folder."""
    below = Path(image.path).relative_to(root).parts[:-1]
    whole = image.of_run | {"desc": image.entities["desc"]}
    sidecars: list[BidsFile] = []
    for depth in range(len(below) + 1):
        here = [
            file
            for file in tree[root.joinpath(*below[:depth])]
            if (file.suffix, file.extension) == ("bold", ".json")
            and file.of_run.items() <= whole.items()
            and file.entities.get("desc", whole["desc"]) == whole["desc"]
        ]
        sidecars += sorted(here, key=lambda file: len(file.entities))
    return sidecars


def _refuse_doubles(images: Sequence[BidsFile], where: str) -> None:
    """Refuse two images of one run: equal entities, numbers compared by value and a magnitude taken for the image."""
    seen: dict[tuple[tuple[str, str], ...], BidsFile] = {}
    for image in images:
        run = tuple(sorted((name, label) for name, label in image.of_run.items() if name not in VERSIONS))
        other = seen.setdefault(run, image)
        if other is not image:
            choice = ", or choose between reconstructions (rec-LABEL) by bids.reconstruction"
            differ = image.entities.get("rec") != other.entities.get("rec")
            raise UserError(
                f"{where}: expected one image a run, found {other.path} and {image.path}; remove one of them"
                f"{choice if differ else ''}."
            )
