"""What a hostile user does to a finished project, and exactly the jobs that must run for it."""

import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nibabel as nib
import numpy as np
import yaml

from brainfed.cohort.listed import shard_name
from workflow.hostile_project import CONFIG, QUICK, SHARDS, below, both, everything
from workflow.project import Project

PAST, FUTURE = 946_684_800, 2_208_988_800
"""2000 and 2040, in seconds."""
METHODS = CONFIG["experiments"]["methods"]
ONE, TWO = "sub-0001", "sub-0002"


@dataclass(frozen=True)
class Case:
    """One edit of a finished project.

    Attributes:
        name: what is done.
        edit: does it.
        runs: rule -> the number of its jobs that must run.
        environment: of the run after it.
    """

    name: str
    edit: Callable[[Project], None]
    runs: "Counter[str]"
    environment: Mapping[str, str] = field(default_factory=dict)


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


def other_numpy(project: Project) -> None:
    """A result that another version of numpy computed."""
    path = record(PREDICTIONS["quick"])(project)
    held = json.loads(path.read_text())
    held["versions"]["numpy"] = "1.0.0"
    path.write_text(json.dumps(held))


def copy_results(project: Project) -> None:
    """Results as a colleague sends them: all times are those of the copy, Snakemake's memory stays behind."""
    results = project.folder / "results"
    shutil.move(results, project.folder / "sent")
    shutil.copytree(project.folder / "sent", results, copy_function=shutil.copyfile)
    shutil.rmtree(project.folder / "sent")
    forget(project)


def flip_a_byte(path: Path) -> None:
    """The last byte of an array."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(bytes(content))


def code(file: str, addition: str = "\n\nADDED = 1\n") -> Callable[[Project], None]:
    """Append to a file of the workflow."""

    def edit(project: Project) -> None:
        path = project.folder / "workflow" / file
        path.write_text(path.read_text() + addition)

    return edit


def empty_metadata(project: Project) -> None:
    """Snakemake's own records are damaged."""
    for path in (project.folder / ".snakemake" / "metadata").rglob("*"):
        if path.is_file():
            path.write_text("")


NOTHING: "Counter[str]" = Counter()
REPORT = Counter(write_report=1)
SCORED = below("score_experiment")
FROM_SPLIT = both(below("split_subjects"), below("split_subjects", cohort="demo"))
EVERYTHING = both(everything(), everything("demo"))
RIDGE = both(below("train_method:ridge-central"), below("train_method:ridge-central", cohort="demo"))
EXTRACTED = below("extract_series:0", "extract_series:1")
SCANS_OF_DEMO = below("simulate_participants", "simulate_scans:0", "simulate_scans:1", cohort="demo")

CASES = [
    # Values that trade places.
    Case("seed and threads trade values", config(seed=1, threads=7), FROM_SPLIT),
    Case("two limits of quality trade values", lab(flag={"alike": 0.95}, min_coverage=0.999), below("measure_quality")),
    Case("another reference", config(experiments={"methods": {"reference": "quick"}}), SCORED),
    Case("rounds and epochs trade values", config(variants={"quick": {"rounds": 3, "local_epochs": 2}}),
         below("train_method:quick")),
    Case("two columns trade meanings", lab(columns={"age": "fd", "mean_fd": "age"}), below("ingest_phenotypes")),
    Case("two codes trade meanings", lab(codes={"diagnosis": {"patient": "control", "control": "patient"}}),
         below("ingest_phenotypes")),
    Case("two tables trade places", lab(phenotype=["resources/second.csv", "resources/first.csv"]),
         below("ingest_phenotypes")),
    Case("two scans trade names", trade(SCAN, OTHER_SCAN), below(shard(ONE), shard(TWO))),
    Case("two tables of confounds trade names", trade(CONFOUNDS, OTHER_CONFOUNDS), below(shard(ONE), shard(TWO))),
    Case("variants in another order", config(experiments={"methods": {"variants": METHODS["variants"][::-1]}}), SCORED),
    # Settings.
    Case("k", config(graph={"k": 5}), below("build_graph")),
    Case("a learning rate", config(variants={"quick": {"learning_rate": 0.01}}), below("train_method:quick")),
    Case("noise off", config(variants={"quick": {"noise": "off"}}), below("train_method:quick")),
    Case("rounds of the generator", config(variants={"nodes": {"inpainting": {"rounds": 3}}}),
         below("train_generator")),
    Case("a cap on generated nodes", config(variants={"nodes": {"fusing": {"cap": 0.25}}}), below("fuse_graph")),
    Case("another seed", config(seed=8), FROM_SPLIT),
    Case("another number of folds", config(split={"folds": 3}), FROM_SPLIT),
    Case("one more repeat", config(split={"repeats": 2}), FROM_SPLIT),
    Case("a rule of exclusion", lab(exclude={"min_volumes": 50}), below("include_subjects")),
    Case("a limit of what is listed", lab(flag={"mean_fd": 0.3}),
         below("list_issues", "draw_cohort")),
    Case("a band", lab(extraction={"high_pass": 0.02}), EXTRACTED),
    Case("a limit of coverage", lab(min_coverage=0.6), below("measure_quality")),
    Case("another number of shards", lab(shards=3),
         below("extract_series:0", "extract_series:1", "extract_series:2")),
    Case("another name of the atlas", lab(atlas="other"), EXTRACTED),
    Case("a title of the report", config(report={"title": "Hostile"}), REPORT),
    Case("ids of subjects in the report", config(report={"show_subjects": True}), REPORT),
    Case("a title of an experiment", config(experiments={"methods": {"title": "Three methods"}}), REPORT),
    Case("a variant less", config(experiments={"methods": {"variants": ["ridge-central", "quick"]}}), SCORED),
    Case("a variant more", config(variants={"slow": {"method": "fedgcn", **QUICK, "rounds": 3}}, experiments={
         "methods": {"variants": [*METHODS["variants"], "slow"]}}), below("train_method:quick")),
    Case("another name of a variant", rename_variant, below("train_method:quick")),
    Case("a stronger simulated effect", config(cohorts={"demo": {"simulate": {"effect": 0.5}}}), SCANS_OF_DEMO),
    Case("a noisier simulated site", config(cohorts={"demo": {"simulate": {"sites": {"a": {"noise": 2.0}}}}}),
         SCANS_OF_DEMO),
    Case("another seed of the simulation", config(cohorts={"demo": {"simulate": {"seed": 9}}}), everything("demo")),
    Case("keys of the config in another order", write_config(
         lambda text: yaml.safe_dump(yaml.safe_load(text), sort_keys=True)), NOTHING),
    Case("a comment in the config", write_config(lambda text: f"# Hostile.\n{text}"), NOTHING),
    Case("a default spelled out", config(graph={"k": 10}), NOTHING),
    Case("a setting that only the page shows", config(features={"selected": 9}), REPORT),
    # Inputs.
    Case("a scan with an older time", older(SCAN, darker), below(shard(ONE))),
    Case("a scan with the time of now", changed(SCAN, darker), below(shard(ONE))),
    Case("a scan compressed anew with an older time", older(SCAN, recompress), below(shard(ONE))),
    Case("confounds with an older time", older(CONFOUNDS, one_digit), below(shard(ONE))),
    Case("confounds of the same size and time", same_time(CONFOUNDS, one_digit), below(shard(ONE))),
    Case("an atlas with an older time", older(ATLAS, relabelled), EXTRACTED),
    Case("names of regions with an older time", older(LABELS, first_name), EXTRACTED),
    Case("a table with an older time", older(TABLE, age), below("ingest_phenotypes")),
    Case("a table of the same size and time", same_time(TABLE, age), below("ingest_phenotypes")),
    Case("a table with the time of now", changed(TABLE, age), below("ingest_phenotypes")),
    Case("a folder that points elsewhere", relink(darker), below(shard(ONE))),
    Case("a folder that points to a copy", relink(None), NOTHING),
    Case("a scan touched", touch(f"resources/scans/{ONE}.nii.gz"), NOTHING),
    Case("all inputs touched", touch("resources/**/*"), NOTHING),
    Case("all inputs dated back", touch("resources/**/*", PAST), NOTHING),
    Case("all inputs dated ahead", touch("resources/**/*", FUTURE), NOTHING),
    Case("a scan written again", rewrite(SCAN), NOTHING),
    Case("a table written again", rewrite(TABLE), NOTHING),
    Case("a file that nobody names", lambda project: SCAN(project).with_name("notes.txt").write_text("x"), NOTHING),
    Case("one subject more", add_subject, below("ingest_phenotypes", shard("sub-9000"))),
    Case("one subject less", remove_subject, below("ingest_phenotypes", shard(ONE))),
    # Results and what is known of them.
    Case("Snakemake's memory deleted", forget, NOTHING),
    Case("Snakemake's memory damaged", empty_metadata, NOTHING),
    Case("its memory deleted, a learning rate changed", then(forget, config(variants={"quick": {
         "learning_rate": 0.01}})), below("train_method:quick")),
    Case("its memory deleted, another reference", then(forget, config(experiments={"methods": {
         "reference": "quick"}})), SCORED),
    Case("its memory deleted, an older scan put in", then(forget, older(SCAN, darker)), below(shard(ONE))),
    Case("its memory deleted, code edited", then(forget, code("brainfed/graphs/similarity.py")), below("build_graph")),
    Case("results copied without times or memory", copy_results, NOTHING),
    Case("results copied, k changed", then(copy_results, config(graph={"k": 5})), below("build_graph")),
    Case("one record deleted", delete(record(PREDICTIONS["quick"])), below("train_method:quick")),
    Case("one record cut off", lambda project: os.truncate(record(PREDICTIONS["quick"])(project), 40),
         below("train_method:quick")),
    Case("all records deleted", delete_records, EVERYTHING),
    Case("predictions of two variants trade places", trade(PREDICTIONS["quick"], PREDICTIONS["ridge-central"]),
         below("train_method:quick", "train_method:ridge-central")),
    Case("features changed and dated back", older(FEATURES, flip_a_byte), below("compute_connectivity")),
    Case("a table of scores edited by hand", changed(find("lab/tables/methods.tsv"), one_digit), SCORED),
    Case("tests edited by hand, time kept", same_time(find("lab/tables/methods-tests.tsv"), one_digit), SCORED),
    Case("all results dated back", touch("results/**/*", PAST), NOTHING),
    Case("all results dated ahead", touch("results/**/*", FUTURE), NOTHING),
    Case("the report deleted", delete(find("reports/hostile.html")), REPORT),
    Case("the report edited by hand", changed(find("reports/hostile.html"), one_digit), REPORT),
    # Versions of the libraries.
    Case("a result of another numpy", other_numpy, NOTHING),
    Case("a result of another numpy, to be computed again", then(other_numpy, config(library_versions="rerun")),
         below("train_method:quick")),
    # Code.
    Case("code of graphs", code("brainfed/graphs/similarity.py"), below("build_graph")),
    Case("code of one method", code("brainfed/training/ridge.py"), RIDGE),
    Case("code of generated nodes", code("brainfed/inpainting/drawing.py"), below("fuse_graph")),
    Case("code of a script", code("scripts/extract_series.py"),
         both(EXTRACTED, below("extract_series:0", "extract_series:1", cohort="demo"))),
    Case("code of the scores", code("brainfed/evaluation/experiment.py"),
         both(SCORED, below("score_experiment", cohort="demo"))),
    Case("code of the page", code("brainfed/reporting/software.py"), REPORT),
    Case("a template", code("brainfed/reporting/templates/style.css", "\n"), REPORT),
    Case("a caption", code("report/flow.rst", "\nMore.\n"), REPORT),
    Case("code of the check before a run", code("brainfed/checking/finding.py"), NOTHING),
    Case("a comment and a docstring", then(code("brainfed/graphs/similarity.py", "\n# A comment.\n"),
         lambda project: project.edit("brainfed/training/ridge.py", '"""', '"""Reworded. ')), NOTHING),
    Case("code of logs", code("brainfed/runtime/logs.py"), NOTHING),
    Case("all code touched", touch("workflow/**/*.py"), NOTHING),
    # The run itself.
    Case("another time zone and language", lambda _: None, NOTHING, {"TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    Case("two jobs a device", lambda _: None, NOTHING, {"BRAINFED_JOBS_PER_GPU": "2"}),
    Case("results taken as they are", config(graph={"k": 10}, variants={"quick": {"learning_rate": 0.01}}), REPORT,
         {"BRAINFED_ADOPT": "1"}),
]  # fmt: skip
