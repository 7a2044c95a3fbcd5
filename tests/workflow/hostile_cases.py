"""The edits of a hostile user, and exactly the jobs that must run after each."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import yaml

from brainfed.configuration import TABLE_ENDINGS
from workflow.hostile_acts import (
    ATLAS,
    CONFOUNDS,
    FEATURES,
    FUTURE,
    LABELS,
    METHODS,
    ONE,
    OTHER_CONFOUNDS,
    OTHER_SCAN,
    PAST,
    PREDICTIONS,
    SCAN,
    TABLE,
    TWO,
    add_subject,
    age,
    ahead,
    cell,
    changed,
    code,
    config,
    copy_results,
    damage,
    darker,
    delete,
    delete_records,
    delete_series,
    delete_series_and_records,
    edited_meanwhile,
    empty_metadata,
    find,
    first_name,
    flip_a_byte,
    forget,
    function,
    hold_lock,
    lab,
    link_elsewhere,
    notes,
    of_another_run,
    older,
    one_digit,
    other_version,
    read_as,
    recompress,
    record,
    relabelled,
    relink,
    remove_subject,
    rename_variant,
    reorder_sites,
    rewrite,
    rewrite_record,
    same_time,
    shard,
    then,
    touch,
    trade,
    without,
    without_what_was_made_of,
    write_config,
)
from workflow.hostile_project import QUICK, REFUSED, below, both, everything, ingested, of_tables
from workflow.project import Project


@dataclass(frozen=True)
class Case:
    """One edit of a finished project.

    Attributes:
        name: what is done.
        edit: does it.
        runs: rule -> the number of its jobs that must run.
        environment: of the run after it.
        says: what the run says about it; empty: nothing in particular.
        target: of that run.
    """

    name: str
    edit: Callable[[Project], None]
    runs: "Counter[str]"
    environment: Mapping[str, str] = field(default_factory=dict)
    says: str = ""
    target: str = "all"


NOTHING: "Counter[str]" = Counter()
REPORT = Counter(write_report=1)
SCORED = below("score_experiment")
COMPARED = below("score_experiment", "audit_experiment")
FROM_SPLIT = both(below("split_subjects"), below("split_subjects", cohort="demo"))
EVERYTHING = both(everything(), everything("demo"))
RIDGE = both(below("train_method:ridge-central"), below("train_method:ridge-central", cohort="demo"))
EXTRACTED = below("extract_series:0", "extract_series:1")
EXTRACTED_TWICE = both(EXTRACTED, below("extract_series:0", "extract_series:1", cohort="demo"))
GRAPH_OF_LAB = "results/lab/graphs/*/repeat-0/all.safetensors"
PHENOTYPES = find("lab/cohort/participants.parquet")
SCANS_OF_DEMO = below("simulate_participants", "simulate_scans:0", "simulate_scans:1", cohort="demo")

RECORDLESS = "no record lies beside them"
INPUTS = 52
TRAINED = below("train_method:ridge-central", "train_method:quick", "train_method:nodes")
FROM_GRAPH = below("build_graph", "draw_cohort", "draw_connectivity", "draw_patterns")
DRAWN = below("score_experiment", "audit_experiment", "draw_patterns", "draw_scopes")
SHARD_0, SHARD_1 = (find(f"lab/timeseries/twenty/shard-0{number}.safetensors") for number in (0, 1))
GRAPH = find("lab/graphs/*/repeat-0/all.safetensors")
FUSED = find("lab/fused/*/repeat-0/all.safetensors")
GENERATOR = find("lab/inpainting/*/repeat-0/all/generator.safetensors")
TABLES = find("lab/tables/methods.tsv")
# What the target `tables` does not read. One part, patterns of a method that is not linear, nothing else reads either.
PARTIAL = [
    ("include_subjects", "lab", find("lab/cohort/included.parquet"), ["-crossings.json"]),
    ("build_graph", "lab", GRAPH, ["-timing.json"]),
    ("train_generator", "lab", GENERATOR, ["history.parquet"]),
    ("train_generator", "lab", GENERATOR, ["cost.json", "timing.json"]),
    ("fuse_graph", "lab", FUSED, ["-timing.json"]),
    ("train_method:quick", "lab", PREDICTIONS["quick"], ["timing.json"]),
    ("train_method:quick", "lab", PREDICTIONS["quick"], ["history.parquet", "cost.json"]),
    ("train_method:quick", "lab", PREDICTIONS["quick"], ["patterns.safetensors"]),
    ("train_method:ridge-central", "lab", PREDICTIONS["ridge-central"], ["members.parquet", "privacy.json"]),
    ("train_method:ridge-central", "lab", PREDICTIONS["ridge-central"], ["patterns.safetensors"]),
    ("score_experiment", "lab", TABLES, ["-tests.tsv"]),
    ("score_experiment", "lab", TABLES, ["-runs.tsv", "-gain.tsv", "-confusion.tsv"]),
    ("simulate_participants", "demo", find("demo/simulated/participants.tsv"), ["truth.json"]),
]  # fmt: skip

CASES = [
    # Values that trade places.
    Case("seed and threads trade values", config(seed=1, threads=7), FROM_SPLIT),
    Case("two limits of quality trade values", lab(flag={"alike": 0.95}, min_coverage=0.999), below("measure_scans")),
    Case("another reference", config(experiments={"methods": {"reference": "quick"}}), SCORED),
    Case("rounds and epochs trade values", config(variants={"quick": {"rounds": 3, "local_epochs": 2}}),
         below("train_method:quick")),
    Case("two columns trade meanings", lab(columns={"age": "fd", "mean_fd": "age"}),
         below(*ingested("age", "mean_fd"))),
    Case("two codes trade meanings", lab(codes={"diagnosis": {"patient": "control", "control": "patient"}}),
         below("list_issues", *ingested("diagnosis"))),
    Case("two tables trade places", lab(phenotype=["resources/second.csv", "resources/first.csv"]), REPORT),
    Case("two scans trade names", trade(SCAN, OTHER_SCAN), below(shard(ONE), shard(TWO))),
    Case("two tables of confounds trade names", trade(CONFOUNDS, OTHER_CONFOUNDS), below(shard(ONE), shard(TWO))),
    Case("variants in another order", config(experiments={"methods": {"variants": METHODS["variants"][::-1]}}),
         COMPARED),
    # Settings.
    Case("k", config(graph={"k": 5}), below("build_graph")),
    Case("a learning rate", config(variants={"quick": {"learning_rate": 0.01}}), below("train_method:quick")),
    Case("noise off", config(variants={"quick": {"noise": "off"}}), below("train_method:quick")),
    Case("rounds of the generator", config(variants={"nodes": {"inpainting": {"rounds": 3}}}),
         below("train_generator")),
    Case("a cap on generated nodes", config(variants={"nodes": {"fusing": {"cap": 0.25}}}), below("fuse_graph")),
    Case("another seed", config(seed=8), FROM_SPLIT),
    Case("another number of folds", config(split={"folds": 3}), FROM_SPLIT),
    Case("one more repeat", config(split={"repeats": 2}), FROM_SPLIT - Counter(draw_scopes=1)),
    Case("a rule of exclusion", lab(exclude={"min_volumes": 50}), below("include_subjects")),
    Case("a limit of what is listed", lab(flag={"mean_fd": 0.3}),
         below("list_issues", "draw_cohort")),
    Case("a band", lab(extraction={"high_pass": 0.02}), EXTRACTED),
    Case("a limit of coverage", lab(min_coverage=0.6), below("measure_scans")),
    Case("another number of shards", lab(shards=3),
         below("extract_series:0", "extract_series:1", "extract_series:2")),
    Case("another name of the atlas", lab(atlas="other"), EXTRACTED),
    Case("a title of the report", config(report={"title": "Hostile"}), REPORT),
    Case("ids of subjects in the report", config(report={"show_subjects": True}), REPORT + Counter(follow_subjects=2)),
    Case("a title of an experiment", config(experiments={"methods": {"title": "Three methods"}}), REPORT),
    Case("a variant less", config(experiments={"methods": {"variants": ["ridge-central", "quick"]}}), COMPARED),
    Case("a variant more", config(variants={"slow": {"method": "fedgcn", **QUICK, "rounds": 3}}, experiments={
         "methods": {"variants": [*METHODS["variants"], "slow"]}}), below("train_method:quick")),
    Case("another name of a variant", rename_variant, below("train_method:quick")),
    Case("a stronger simulated effect", config(cohorts={"demo": {"simulate": {"effect": 0.5}}}), SCANS_OF_DEMO),
    Case("a noisier simulated site", config(cohorts={"demo": {"simulate": {"sites": {"a": {"noise": 2.0}}}}}),
         SCANS_OF_DEMO),
    Case("simulated sites in another order", reorder_sites, SCANS_OF_DEMO),
    Case("another seed of the simulation", config(cohorts={"demo": {"simulate": {"seed": 9}}}), everything("demo")),
    Case("keys of the config in another order", write_config(
         lambda text: yaml.safe_dump(yaml.safe_load(text), sort_keys=True)), REPORT),
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
    Case("a table with an older time", older(TABLE, age), below(*ingested("age"))),
    Case("a table of the same size and time", same_time(TABLE, age), below(*ingested("age"))),
    Case("a table with the time of now", changed(TABLE, age), below(*ingested("age"))),
    Case("a site of the table", changed(TABLE, cell("site", "b")), below(*ingested("site"))),
    Case("a sex of the table", changed(TABLE, cell("sex", "")), below(*ingested("sex"))),
    Case("a diagnosis of the table", changed(TABLE, cell("diagnosis")), below(*ingested("diagnosis"))),
    Case("a diagnosis that is not known any more", changed(TABLE, cell("diagnosis", "")),
         below(*ingested("diagnosis", "labelled"))),
    Case("a displacement of the table", changed(TABLE, cell("fd", "0.9")), below(*ingested("mean_fd"))),
    Case("a displacement that decides who stays", then(lab(exclude={"mean_fd": 0.8}),
         changed(TABLE, cell("fd", "0.9"))), below("include_subjects", *ingested("mean_fd"))),
    Case("a column of notes", changed(TABLE, notes), NOTHING),
    Case("a missing code that no cell holds", lab(missing=["-77"]), REPORT),
    Case("other spellings of paths", lab(phenotype=["./resources/first.csv", "resources//second.csv"],
         series="./resources/scans/{subject}.nii.gz", confounds="resources/./confounds/{subject}.tsv",
         parcellation="./resources/atlas.nii.gz", labels="resources//atlas.tsv"), NOTHING),
    Case("a code that no cell holds", lab(codes={"sex": {"male": "male", "female": "female", "m": "male"}}),
         below("list_issues")),
    Case("a folder that points elsewhere", relink(darker), below(shard(ONE))),
    Case("a folder that points to a copy", relink(None), NOTHING),
    Case("a scan touched", touch(f"resources/scans/{ONE}.nii.gz"), NOTHING),
    Case("all inputs touched", touch("resources/**/*"), NOTHING),
    Case("all inputs dated back", touch("resources/**/*", PAST), NOTHING),
    Case("all inputs dated ahead", touch("resources/**/*", FUTURE), NOTHING),
    Case("a scan written again", rewrite(SCAN), NOTHING),
    Case("a table written again", rewrite(TABLE), NOTHING),
    Case("a file that nobody names", lambda project: SCAN(project).with_name("notes.txt").write_text("x"), NOTHING),
    Case("one subject more", add_subject, below(*ingested(), shard("sub-9000"))),
    Case("one subject less", remove_subject, below(*ingested(), shard(ONE))),
    # Results and what is known of them.
    Case("Snakemake's memory deleted", forget, NOTHING),
    Case("Snakemake's memory damaged", empty_metadata, NOTHING),
    Case("its memory deleted, a learning rate changed", then(forget, config(variants={"quick": {
         "learning_rate": 0.01}})), below("train_method:quick")),
    Case("its memory deleted, another reference", then(forget, config(experiments={"methods": {
         "reference": "quick"}})), SCORED),
    Case("its memory deleted, an older scan put in", then(forget, older(SCAN, darker)), below(shard(ONE))),
    Case("its memory deleted, code edited", then(forget,
         function("brainfed/graphs/_neighbours.py", "similarity")), below("build_graph")),
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
    Case("phenotypes deleted", delete(PHENOTYPES), NOTHING),
    Case("phenotypes deleted, two codes trade meanings", then(delete(PHENOTYPES), lab(codes={
         "diagnosis": {"patient": "control", "control": "patient"}})), below("list_issues", *ingested("diagnosis"))),
    Case("phenotypes deleted, an older table put in", then(delete(PHENOTYPES), older(TABLE, age)),
         below(*ingested("age"))),
    Case("all series deleted", delete_series, NOTHING),
    Case("all series deleted, an older scan put in", then(delete_series, older(SCAN, darker)), EXTRACTED),
    Case("all series and their records deleted", delete_series_and_records, EXTRACTED),
    Case("one output of several deleted, an older scan put in", then(delete(find(
         f"lab/timeseries/twenty/shard-0{shard(ONE)[-1]}-coverage.parquet")), older(SCAN, darker)), below(shard(ONE))),
    Case("series and Snakemake's memory deleted, their reader edited", then(delete_series, forget,
         function("brainfed/imaging/scans/_region_means.py", "average_regions")), EXTRACTED_TWICE),
    Case("the report deleted", delete(find("reports/hostile.html")), REPORT),
    Case("the report edited by hand", changed(find("reports/hostile.html"), one_digit), REPORT),
    # Copies with parts missing.
    Case("results sent without the times of trainings", without("lab/methods/*/*/repeat-0/timing.json"), NOTHING),
    Case("results sent without histories", without("*/methods/*/*/repeat-0/history.parquet"), NOTHING),
    Case("results sent without benchmarks and logs", then(without("*/benchmarks"), lambda project: shutil.rmtree(
         project.folder / "logs")), NOTHING),
    Case("results sent without hidden files", then(copy_results, delete_records), EVERYTHING, says=RECORDLESS),
    Case("results sent without features", without("lab/features"), below("compute_connectivity")),
    Case("results sent without predictions", without("lab/methods/*/quick/repeat-0/predictions.parquet"), NOTHING),
    Case("results sent without trainings", without("lab/methods"), TRAINED),
    Case("results sent without graphs and what is below them", without("lab/graphs", "lab/fused", "lab/inpainting",
         "lab/methods/*/quick", "lab/methods/*/nodes", "lab/tables", "lab/figures", "reports"), FROM_GRAPH),
    Case("tables, figures and report sent alone", without("*/cohort", "*/features", "*/fused", "*/graphs",
         "*/inpainting", "*/methods", "*/simulated", "*/splits", "*/timeseries"), EVERYTHING),
    Case("results sent without tables and page", without("lab/tables", "lab/figures/methods", "reports"), DRAWN),
    Case("results sent without tables and times, a learning rate changed", then(without(
         "lab/methods/*/quick/*/timing.json", "lab/tables", "lab/figures/methods", "reports"), config(variants={
         "quick": {"learning_rate": 0.01}})), below("train_method:quick", "draw_patterns", "draw_scopes")),
    *(
        Case(f"sent without {' and '.join(parts)} of {job} and what is below, made by another numpy",
             then(without_what_was_made_of(first, *parts), other_version(first), config(library_versions="rerun")),
             of_tables(below(job, cohort=cohort)), target="tables")
        for job, cohort, first, parts in PARTIAL
    ),
    Case("sent without patterns that nobody reads and what is below, made by another numpy", then(
         without_what_was_made_of(PREDICTIONS["quick"], "patterns.safetensors"), other_version(PREDICTIONS["quick"]),
         config(library_versions="rerun")), below("train_method:quick")),
    Case("sent without times of a training and what is below, nothing changed", without_what_was_made_of(
         PREDICTIONS["quick"], "timing.json"), of_tables(SCORED), target="tables"),
    # Names that collide.
    *(
        Case(f"an experiment gets the name {name}", config(experiments={name: {"variants": ["ridge-central"]}}),
             REFUSED, says=f"experiments.{name}: {words}")
        for name, words in {
            **{f"methods{ending}": f"a name may not end in {ending}" for ending in (*TABLE_ENDINGS, "-quick", ".tsv")},
            **{rule: f"`snakemake {rule}` is another target" for rule in ("train_method", "draw_bars", "tables")},
        }.items()
    ),
    Case("an experiment of other tables gets a similar name", config(experiments={"methods_audit": {
         "variants": ["ridge-central"], "default": False}}), NOTHING),
    # Results over results, and shared results.
    Case("predictions of other settings copied over with their record", of_another_run(PREDICTIONS["quick"],
         flip_a_byte, settings="0" * 16), below("train_method:quick")),
    Case("predictions of another code copied over, Snakemake's memory deleted", then(of_another_run(
         PREDICTIONS["quick"], flip_a_byte, code="0" * 16), forget), below("train_method:quick")),
    Case("features of other data copied over with their record", of_another_run(FEATURES, flip_a_byte),
         below("compute_connectivity") - Counter(compute_connectivity=1)),
    Case("a record alone copied over", rewrite_record(FEATURES, lambda held: held["outputs"].update({
         name: ["0" * 64, 1, 1, 1, 1] for name in held["outputs"]})), below("compute_connectivity")),
    Case("records of two shards trade places", trade(record(SHARD_0), record(SHARD_1)), EXTRACTED, says=RECORDLESS),
    Case("results on another disk", link_elsewhere("results"), NOTHING),
    Case("a cohort on another disk", link_elsewhere("results/lab"), NOTHING),
    Case("series on another disk", link_elsewhere("results/lab/timeseries"), NOTHING),
    Case("results shared with a clone of other settings", then(link_elsewhere("results"), forget, config(
         variants={"quick": {"learning_rate": 0.01}})), below("train_method:quick")),
    Case("shared results in which another clone has just trained", then(of_another_run(PREDICTIONS["quick"],
         flip_a_byte, settings="0" * 16), without_what_was_made_of(PREDICTIONS["quick"], "privacy.json"),
         link_elsewhere("results")), below("train_method:quick")),
    Case("another run holds the results", hold_lock, NOTHING),
    Case("a killed run left its lock", lambda project: (project.folder / "results" / "lab" / ".lock").write_text(
         "on elsewhere: process 1 in /"), NOTHING),
    # What a disk, or an edit during a run, changes.
    Case("a byte flips on the disk, nobody reads it", damage(FEATURES), NOTHING),
    Case("a byte flips on the disk, a training reads it", damage(FEATURES, PREDICTIONS["ridge-central"]),
         below("compute_connectivity"), says="they were changed, or exchanged, after they were made"),
    Case("a byte of a graph flips on the disk, its readers read it", damage(GRAPH, PREDICTIONS["quick"], FUSED),
         below("build_graph")),
    Case("a byte of the atlas flips on the disk before one shard", damage(ATLAS, SHARD_0), below("extract_series:1")),
    Case("a training read other bytes than the disk holds", rewrite_record(PREDICTIONS["ridge-central"], read_as(
         "all.safetensors", "0" * 64)), below("train_method:ridge-central"), says="of their inputs has changed"),
    Case("the atlas changed back after one shard", rewrite_record(SHARD_0, read_as("atlas.nii.gz", "0" * 64)),
         below("extract_series:0")),
    Case("an input changed while its job ran", rewrite_record(SHARD_0, read_as("atlas.tsv", "")),
         below("extract_series:0")),
    Case("a job refused what it was to read", rewrite_record(FEATURES, lambda held: held["outputs"].update({
         name: ["", 0, 0, 0, 0] for name in held["outputs"]})), below("compute_connectivity")),
    # Dates.
    Case("a scan dated an hour ahead", ahead(f"resources/scans/{ONE}.nii.gz", 3600), NOTHING, says=(
         f"1 file is dated after now, the first is resources/scans/{ONE}.nii.gz")),
    Case("all inputs dated a day ahead", ahead("resources/**/*", 86_400), NOTHING, says=f"{INPUTS} files are dated"),
    Case("all inputs some seconds ahead", ahead("resources/**/*", 20), NOTHING),
    Case("a table changed and dated ahead", then(changed(TABLE, age), ahead("resources/first.csv", 3600)),
         below(*ingested("age"))),
    Case("an atlas dated ahead, Snakemake's memory deleted", then(ahead("resources/atlas.nii.gz", 3600), forget),
         NOTHING, says="resources/atlas.nii.gz: expected a date up to"),
    Case("features dated an hour ahead", ahead("results/lab/features/*/*", 3600), NOTHING, says="1 file is dated"),
    Case("results of a machine whose clock is ahead", then(copy_results, ahead("results/**/*", 3600)), NOTHING,
         says="files are dated after now"),
    Case("results dated ahead, k changed", then(ahead("results/**/*", 3600), config(graph={"k": 5})),
         below("build_graph")),
    Case("records dated ahead", ahead("results/**/.*.made", 3600), NOTHING),
    Case("config dated ahead", ahead("config.yaml", 3600), NOTHING),
    # Versions of the libraries.
    Case("a result of another Python", other_version(PREDICTIONS["quick"], "python", "3.12.1"), NOTHING),
    Case("a result of another Python, to be computed again", then(other_version(PREDICTIONS["quick"], "python",
         "3.12.1"), config(library_versions="rerun")), below("train_method:quick")),
    Case("a result of another numpy", other_version(PREDICTIONS["quick"]), NOTHING),
    Case("a result of another numpy, to be computed again", then(other_version(PREDICTIONS["quick"]),
         config(library_versions="rerun")),
         below("train_method:quick")),
    # Code.
    Case("code of graphs", function("brainfed/graphs/_neighbours.py", "similarity"), below("build_graph")),
    Case("code that no job reaches", then(code("brainfed/graphs/_neighbours.py"),
         code("brainfed/runtime/_artefacts.py"),
         code("brainfed/federation/_loop.py", "\ndef added(): ...\n")), NOTHING),
    Case("code of one method", function("brainfed/methods/linear/train.py", "train_ridge"), RIDGE),
    Case("code of generated nodes", function("brainfed/inpainting/fedni/drawing.py", "load"), below("fuse_graph")),
    Case("code of graphs edited while they are built, and put back",
         edited_meanwhile("brainfed/graphs/_neighbours.py", GRAPH_OF_LAB), below("build_graph")),
    Case("a script edited before its job starts, and put back",
         edited_meanwhile("scripts/build_graph.py", GRAPH_OF_LAB), below("build_graph")),
    Case("code of the log edited during a run",
         edited_meanwhile("brainfed/runtime/devices/_lease.py", GRAPH_OF_LAB, "\n"), REPORT),
    Case("code of a script", code("scripts/extract_series.py"), EXTRACTED_TWICE),
    Case("code of the scores", function("brainfed/evaluation/_experiment.py", "score_experiment"),
         both(SCORED, below("score_experiment", cohort="demo"))),
    Case("code of the page", function("brainfed/reporting/_citations.py", "software_of"), REPORT),
    Case("code of a panel that a family brings",
         function("brainfed/papers/_gcfl.py", "read_gains"), REPORT),
    Case("a template of such a panel", code("brainfed/papers/templates/gcfl/gains.html.j2", "\n"), REPORT),
    Case("a template", code("brainfed/reporting/templates/style.css", "\n"), REPORT),
    Case("a caption", code("report/flow.rst", "\nMore.\n"), REPORT),
    Case("code of the check before a run", function("brainfed/checking/_finding.py", "boundary"), NOTHING),
    Case("a comment and a docstring", then(code("brainfed/graphs/_neighbours.py", "\n# A comment.\n"),
         lambda project: project.edit("brainfed/methods/linear/train.py", '"""', '"""Reworded. ')), NOTHING),
    Case("code of logs", function("brainfed/runtime/_logs.py", "configure"), NOTHING),
    Case("all code touched", touch("workflow/**/*.py"), NOTHING),
    # The run itself.
    Case("another time zone and language", lambda _: None, NOTHING, {"TZ": "Asia/Tokyo", "LC_ALL": "C"}),
    Case("two jobs a device", lambda _: None, NOTHING, {"BRAINFED_JOBS_PER_GPU": "2"}),
    Case("another reference, results taken as they are", config(experiments={"methods": {"reference": "quick"}}),
         REPORT, {"BRAINFED_ADOPT": "1"}),
    Case("results taken as they are", config(graph={"k": 10}, variants={"quick": {"learning_rate": 0.01}}), REPORT,
         {"BRAINFED_ADOPT": "1"}),
]  # fmt: skip
