"""What a hostile user does to a finished project."""

import csv
import fcntl
import gzip
import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import IO, Any

import nibabel as nib
import numpy as np

from brainfed.cohort.sources import shard_name
from brainfed.runtime.records._made import content
from workflow.hostile_project import CONFIG, SHARDS
from workflow.project import Project

PAST, FUTURE = 946_684_800, 2_208_988_800
"""2000 and 2040, in seconds."""
METHODS = CONFIG["experiments"]["methods"]
HELD: list[IO[str]] = []
ONE, TWO = "sub-0001", "sub-0002"


def shard(subject: str) -> str:
    """The job that extracts a subject's series."""
    return f"extract_series:{int(shard_name(subject, SHARDS).removeprefix('shard-'))}"


def config(**changes: Any) -> Callable[[Project], None]:
    """Change the config: mappings are merged, anything else is replaced."""
    return lambda project: project.configure(**merged(deepcopy(CONFIG), changes))


def lab(**changes: Any) -> Callable[[Project], None]:
    """Change the cohort of files."""
    return config(cohorts={"lab": changes})


def merged(old: dict[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping with what another one holds put over it."""
    for key, value in new.items():
        old[key] = merged(old[key], value) if isinstance(value, Mapping) and isinstance(old.get(key), dict) else value
    return old


def rename_variant(project: Project) -> None:
    """The same settings under another name."""
    changed: dict[str, Any] = deepcopy(CONFIG)
    changed["variants"]["swift"] = changed["variants"].pop("quick")
    changed["experiments"]["methods"]["variants"] = ["ridge-central", "swift", "nodes"]
    project.configure(**changed)


def reorder_sites(project: Project) -> None:
    """Equal shares of subjects are dealt out in the order of the sites."""
    changed: dict[str, Any] = deepcopy(CONFIG)
    simulate = changed["cohorts"]["demo"]["simulate"]
    simulate["sites"] = dict(reversed(simulate["sites"].items()))
    project.configure(**changed)


def write_config(text: Callable[[str], str]) -> Callable[[Project], None]:
    """Rewrite the text of the config."""

    def edit(project: Project) -> None:
        path = project.folder / "config.yaml"
        path.write_text(text(path.read_text()))

    return edit


def at(name: str) -> Callable[[Project], Path]:
    """A file of the lab."""
    return lambda project: project.folder / "resources" / name


SCAN, OTHER_SCAN = at(f"scans/{ONE}.nii.gz"), at(f"scans/{TWO}.nii.gz")
CONFOUNDS, OTHER_CONFOUNDS = at(f"confounds/{ONE}.tsv"), at(f"confounds/{TWO}.tsv")
ATLAS, LABELS, TABLE = at("atlas.nii.gz"), at("atlas.tsv"), at("first.csv")


def darker(path: Path) -> None:
    """Another scan with the same header."""
    image = nib.load(path)
    values = np.asarray(image.dataobj)
    nib.save(nib.Nifti1Image(values[..., ::-1], image.affine, image.header), path)


def relabelled(path: Path) -> None:
    """Two regions trade places."""
    image = nib.load(path)
    labels = np.asarray(image.dataobj)
    swapped = np.where(labels == 1, 2, np.where(labels == 2, 1, labels)).astype(labels.dtype)
    nib.save(nib.Nifti1Image(swapped, image.affine, image.header), path)


def one_digit(path: Path) -> None:
    """Change the last digit of a text file, which stays as long as it was."""
    text = path.read_text()
    place = max(index for index, mark in enumerate(text) if mark.isdigit())
    path.write_text(text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :])


def age(path: Path) -> None:
    """One subject's age, as long as it was."""
    lines = path.read_text().splitlines(keepends=True)
    cells = lines[1].split(",")
    cells[2] = cells[2][:-1] + str((int(cells[2][-1]) + 1) % 10)
    lines[1] = ",".join(cells)
    path.write_text("".join(lines))


def cell(column: str, value: str | None = None) -> Callable[[Path], None]:
    """Another value in the first row of a table; without one, that of another row."""

    def edit(path: Path) -> None:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        others = {row[column] for row in rows} - {rows[0][column]}
        rows[0][column] = min(others) if value is None else value
        _write_table(path, rows)

    return edit


def notes(path: Path) -> None:
    """One more column, of words about some subjects."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    _write_table(path, [row | {"notes": "moved" if number % 3 else ""} for number, row in enumerate(rows)])


def _write_table(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def first_name(path: Path) -> None:
    """Another name for a region."""
    lines = path.read_text().splitlines(keepends=True)
    lines[1] = lines[1].rstrip("\n") + "-left\n"
    path.write_text("".join(lines))


def older(find: Callable[[Project], Path], change: Callable[[Path], None]) -> Callable[[Project], None]:
    """Other content with a time long before every result, as `cp -p` and `rsync -a` bring it."""

    def edit(project: Project) -> None:
        path = find(project)
        change(path)
        os.utime(path, (PAST, PAST))

    return edit


def same_time(find: Callable[[Project], Path], change: Callable[[Path], None]) -> Callable[[Project], None]:
    """Other content of the same size with the very time that the file had."""

    def edit(project: Project) -> None:
        path = find(project)
        before = path.stat()
        change(path)
        assert path.stat().st_size == before.st_size
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    return edit


def changed(find: Callable[[Project], Path], change: Callable[[Path], None]) -> Callable[[Project], None]:
    """Other content with the time of now."""
    return lambda project: change(find(project))


def trade(first: Callable[[Project], Path], second: Callable[[Project], Path]) -> Callable[[Project], None]:
    """Two files trade names; their times go with them."""

    def edit(project: Project) -> None:
        one, other = first(project), second(project)
        spare = one.with_name("spare")
        one.rename(spare)
        other.rename(one)
        spare.rename(other)

    return edit


def relink(change: Callable[[Path], None] | None) -> Callable[[Project], None]:
    """The folder of scans becomes a link to a copy, with one scan older and changed, or all equal."""

    def edit(project: Project) -> None:
        scans, copy = project.folder / "resources" / "scans", project.folder / "elsewhere"
        shutil.move(scans, copy)
        if change:
            change(copy / f"{ONE}.nii.gz")
            os.utime(copy / f"{ONE}.nii.gz", (PAST, PAST))
        scans.symlink_to(copy)

    return edit


def rewrite(find: Callable[[Project], Path]) -> Callable[[Project], None]:
    """The same bytes in a new file."""

    def edit(project: Project) -> None:
        path = find(project)
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)

    return edit


def touch(pattern: str, when: float | None = None) -> Callable[[Project], None]:
    """Another time for every file that a pattern finds."""

    def edit(project: Project) -> None:
        if pattern.startswith("workflow"):
            project.own_workflow()
        files = [path for path in project.folder.glob(pattern) if path.is_file()]
        assert files
        for path in files:
            os.utime(path, None if when is None else (when, when))

    return edit


def add_subject(project: Project) -> None:
    """One more row, scan and table of confounds."""
    shutil.copy(SCAN(project), SCAN(project).with_name("sub-9000.nii.gz"))
    darker(SCAN(project).with_name("sub-9000.nii.gz"))
    shutil.copy(CONFOUNDS(project), CONFOUNDS(project).with_name("sub-9000.tsv"))
    row = TABLE(project).read_text().splitlines()[1].split(",")
    TABLE(project).write_text(TABLE(project).read_text() + ",".join(["sub-9000", *row[1:]]) + "\n")


def remove_subject(project: Project) -> None:
    """One row less."""
    lines = TABLE(project).read_text().splitlines(keepends=True)
    TABLE(project).write_text("".join([lines[0], *lines[2:]]))


def recompress(path: Path) -> None:
    """The same image in another compression: other bytes, so its reader must run."""
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(content, compresslevel=1, mtime=1))


def forget(project: Project) -> None:
    """Snakemake's memory is gone."""
    shutil.rmtree(project.folder / ".snakemake")


def then(*edits: Callable[[Project], None]) -> Callable[[Project], None]:
    """One edit after another."""

    def edit(project: Project) -> None:
        for one in edits:
            one(project)

    return edit


def find(pattern: str) -> Callable[[Project], Path]:
    """The one result that a pattern finds."""

    def found(project: Project) -> Path:
        (path,) = (project.folder / "results").glob(pattern)
        return path

    return found


PREDICTIONS = {name: find(f"lab/methods/*/{name}/repeat-0/predictions.parquet") for name in ("quick", "ridge-central")}
FEATURES = find("lab/features/*/all.safetensors")


def record(result: Callable[[Project], Path]) -> Callable[[Project], Path]:
    """The record beside a result."""
    return lambda project: result(project).with_name(f".{result(project).name}.made")


def delete(find: Callable[[Project], Path]) -> Callable[[Project], None]:
    """A file is gone."""
    return lambda project: find(project).unlink()


def delete_records(project: Project) -> None:
    """Nothing says what made any result."""
    for path in (project.folder / "results").rglob(".*.made"):
        path.unlink()


def delete_series(project: Project) -> None:
    """To save disk: what was computed from the series is kept."""
    for path in (project.folder / "results" / "lab" / "timeseries").rglob("shard-*"):
        path.unlink()


def delete_series_and_records(project: Project) -> None:
    """The whole folder."""
    shutil.rmtree(project.folder / "results" / "lab" / "timeseries")


def other_version(
    find: Callable[[Project], Path], package: str = "numpy", version: str = "1.0.0"
) -> Callable[[Project], None]:
    """A result that another version of a library, or of Python, computed."""
    return rewrite_record(find, lambda held: held["versions"].update({package: version}))


def rewrite_record(
    find: Callable[[Project], Path], change: Callable[[dict[str, Any]], object]
) -> Callable[[Project], None]:
    """The record beside a result says something else."""

    def edit(project: Project) -> None:
        path = record(find)(project)
        held = json.loads(path.read_text())
        change(held)
        path.write_text(json.dumps(held))

    return edit


def copy_results(project: Project) -> None:
    """Results as a colleague sends them: all times are those of the copy, Snakemake's memory stays behind."""
    results = project.folder / "results"
    shutil.move(results, project.folder / "sent")
    shutil.copytree(project.folder / "sent", results, copy_function=shutil.copyfile)
    shutil.rmtree(project.folder / "sent")
    forget(project)


def without(*patterns: str) -> Callable[[Project], None]:
    """Results are sent without some files or folders, as by `rsync --exclude`, and without Snakemake's memory."""

    def edit(project: Project) -> None:
        copy_results(project)
        for pattern in patterns:
            left_out = [*(project.folder / "results").glob(pattern)]
            assert left_out, pattern
            for path in left_out:
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()

    return edit


def without_what_was_made_of(find: Callable[[Project], Path], *parts: str) -> Callable[[Project], None]:
    """Results are sent without all that was made of one job's results, and without parts of these.

    Their times are kept, as by `rsync -a`: by other times Snakemake itself would run their readers. A part is the end
    of a file's name.
    """

    def edit(project: Project) -> None:
        forget(project)
        first = find(project)
        records = {path: json.loads(path.read_text()) for path in (project.folder / "results").rglob(".*.made")}
        own = {*records.pop(record(find)(project))["outputs"]}
        reached = set(own)
        while below := [path for path, held in records.items() if not reached.isdisjoint(held["contents"])]:
            for path in below:
                outputs = records.pop(path)["outputs"]
                reached.update(outputs)
                for gone in (path, *(project.folder / output for output in outputs)):
                    gone.unlink()
        assert first.exists()
        dropped = [project.folder / path for path in own if path.endswith(parts)]
        assert len(dropped) == len(parts)
        for path in dropped:
            path.unlink()

    return edit


def link_elsewhere(folder: str) -> Callable[[Project], None]:
    """A folder of results lies on another disk, or is shared with another clone."""

    def edit(project: Project) -> None:
        path = project.folder / folder
        path.rename(project.folder / "shared")
        path.symlink_to(project.folder / "shared")

    return edit


def of_another_run(
    find: Callable[[Project], Path], change: Callable[[Path], None], **parts: str
) -> Callable[[Project], None]:
    """Another project's result is copied over this one, with its own record: other content, other settings."""

    def edit(project: Project) -> None:
        path = find(project)
        change(path)
        own = str(path.relative_to(project.folder))

        def as_theirs(held: dict[str, Any]) -> None:
            held["outputs"][own] = content(path)
            held["parts"].update(parts)

        rewrite_record(find, as_theirs)(project)

    return edit


def damage(find: Callable[[Project], Path], *readers: Callable[[Project], Path]) -> Callable[[Project], None]:
    """A disk changes a byte of a file and none of its times; then the jobs of these results read it.

    No program can set the time at which the file system noted a change, so the records are given the new one.
    """

    def edit(project: Project) -> None:
        path = find(project)
        own = str(path.relative_to(project.folder))
        before = path.stat()
        flip_a_byte(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        found = content(path)
        read_damaged = [record(reader)(project) for reader in readers]
        for file in (project.folder / "results").rglob(".*.made"):
            held = json.loads(file.read_text())
            for contents in (held["contents"], held["outputs"]):
                if own in contents:
                    digest = found.digest if file in read_damaged and contents is held["contents"] else contents[own][0]
                    contents[own] = [digest, *found.signature]
            file.write_text(json.dumps(held))
        memory = project.folder / ".snakemake" / "brainfed-contents.json"
        memory.unlink(missing_ok=True)

    return edit


def read_as(path: str, digest: str) -> Callable[[dict[str, Any]], None]:
    """A record says that its job read other content in an input; "" if the input changed meanwhile."""

    def change(held: dict[str, Any]) -> None:
        (name,) = (name for name in held["contents"] if name.endswith(path))
        held["contents"][name][0] = digest

    return change


def ahead(pattern: str, seconds: float) -> Callable[[Project], None]:
    """Files that a machine dated whose clock is ahead."""
    return lambda project: touch(pattern, time.time() + seconds)(project)


def hold_lock(project: Project) -> None:
    """Another run holds the results; the lock goes with the test's process."""
    lock = (project.folder / "results" / "lab" / ".lock").open("w")
    HELD.append(lock)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def flip_a_byte(path: Path) -> None:
    """The last byte of an array."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def code(file: str, addition: str = "\n\nADDED = 1\n") -> Callable[[Project], None]:
    """Append to a file of the workflow."""

    def edit(project: Project) -> None:
        project.own_workflow()
        path = project.folder / "workflow" / file
        path.write_text(path.read_text() + addition)

    return edit


def function(file: str, name: str) -> Callable[[Project], None]:
    """Add a statement to a function of the workflow."""
    return lambda project: project.edit_function(file, name)


def edited_meanwhile(file: str, target: str, addition: str = "\n\nADDED = 1\n") -> Callable[[Project], None]:
    """Make a file anew while the workflow is edited, and put the workflow back."""

    def edit(project: Project) -> None:
        project.own_workflow()
        source, snakefile = project.folder / "workflow" / file, project.folder / "workflow" / "Snakefile"
        before = {path: (path.read_text(), path.stat().st_mtime_ns) for path in (source, snakefile)}
        snakefile.write_text(f"{before[snakefile][0]}\nPath({str(source)!r}).open('a').write({addition!r})\n")
        (output,) = {str(path.relative_to(project.folder)) for path in project.folder.glob(target)}
        (project.folder / output).unlink()
        done = project.snakemake("--cores", "1", output)
        assert ("was edited during this run" in done.stderr) == bool(addition.strip())
        for path, (text, when) in before.items():
            path.write_text(text)
            os.utime(path, ns=(when, when))

    return edit


def empty_metadata(project: Project) -> None:
    """Snakemake's own records are damaged."""
    for path in (project.folder / ".snakemake" / "metadata").rglob("*"):
        if path.is_file():
            path.write_text("")
