"""A whole small project as artefacts on disk, without Snakemake: what the report's tests draw and render."""

import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from brainfed.cohort import ClassWords, class_words
from brainfed.cohort.quality import crossings_of_likeness
from brainfed.cohort.settings import FlagSettings
from brainfed.configuration._loading import shipped_settings
from brainfed.configuration._outline import EXPERIMENT_FIGURES
from brainfed.configuration.stages.registry import stage_settings
from brainfed.evaluation import audit_experiment, score_experiment
from brainfed.graphs import GraphSettings
from brainfed.imaging import FeatureSettings, relate_motion, typicality
from brainfed.inpainting import FedSageSettings, FusingSettings, InpaintingSettings
from brainfed.methods import METHODS as KNOWN
from brainfed.papers import BESIDE, PAPERS, PRINTINGS
from brainfed.papers import FIGURES as PAPER_FIGURES
from brainfed.reporting import read_experiment, read_outline, read_variant, write_report
from brainfed.reporting._document import render
from brainfed.reporting._outline import ReportOutline
from brainfed.reporting.charts import draw, draw_cohort, draw_experiment, draw_leakage
from brainfed.reporting.figures import draw_connectivity, draw_graphs
from brainfed.reporting.tables import write_followed
from brainfed.runtime import canonical_json, write_arrays, write_table, write_text, write_tsv
from support.files.quality_tables import crossings_of_checksums, measure
from support.processes.made_once import made_once
from support.reports.report_experiments import crossing, write_fused

CAPTIONS = sorted(str(path) for path in (Path(__file__).parents[3] / "workflow" / "report").glob("*.rst"))
SUBJECTS, REGIONS, FOLDS, REPEATS = 48, 14, 4, 2
SPLIT = {"validation": "folds", "institutions": "random", "folds": FOLDS, "stratify": "label"}
TO = {"upload": "server", "download": "institutions"}
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
POOLED = True
"""Whether a class means the same in all institutions."""
INSTITUTIONS = ("institution-1", "institution-2")
SAGE = KNOWN["fedsage-plus"]
SKILL = {
    "majority": 0.0,
    "ridge-local": 0.6,
    "ridge-central": 1.5,
    "localgcn": 0.3,
    "fedgcn": 0.8,
    "fedgcn-no-noise": 1.0,
    "fedsage-plus": 0.7,
    "fedni": 0.9,
    "fedni-random-nodes": 0.85,
}
"""How far apart a method's scores of patients and controls lie, in standard deviations of the noise."""
FIGURES = {
    "cohort": ("flow", "sites", "ages", "series", "motion", "quality"),
    "connectivity": ("means", "effects", "strongest"),
    "graphs": ("graph", "homophily", "degrees"),
    "experiment": EXPERIMENT_FIGURES,
}
TABLES = ("summary", "runs", "tests", "gain", "confusion", "audit")
COUNTERPARTS = {"fedgcn": "localgcn", "fedgcn-no-noise": "localgcn", "fedsage-plus": "localgcn", "fedni": "localgcn"}
"""Federated variants whose local counterpart is there; no pooled one is, and none of the random nodes."""
METHODS = {
    "majority": ("majority", "Majority class", "baseline", {}),
    "ridge-local": ("ridge", "Ridge", "linear", {"training": "local"}),
    "ridge-central": ("ridge", "Ridge", "linear", {"training": "central"}),
    "localgcn": ("localgcn", "LocalGCN", "graph", {"epochs": 20, "curve_every": 10}),
    "fedgcn": ("fedgcn", "FedGCN", "federated", {"rounds": 10, "local_epochs": 10, "noise": 0.01}),
    "fedgcn-no-noise": ("fedgcn", "FedGCN", "federated", {"rounds": 10, "local_epochs": 10, "noise": 0.0}),
    "fedsage-plus": ("fedsage-plus", "FedSage+", "federated", {"rounds": 10, "local_epochs": 10, "noise": 0.01}),
    "fedni": ("fedni", "FedNI", "federated", {"rounds": 10, "local_epochs": 10, "noise": 0.01}),
    "fedni-random-nodes": ("fedni", "FedNI", "federated", {"rounds": 10, "local_epochs": 10, "noise": 0.01}),
}
FEW = ("majority", "ridge-central", "localgcn", "fedgcn", "fedni")
GENERATORS = {
    "fedsage-plus": {
        "inpainting": asdict(FedSageSettings()),
        "fusing": asdict(FusingSettings(**SAGE.options["fused"])),
    },
    "fedni": {"inpainting": asdict(InpaintingSettings()), "fusing": asdict(FusingSettings())},
    "fedni-random-nodes": {
        "inpainting": asdict(InpaintingSettings()),
        "fusing": asdict(FusingSettings(nodes="random")),
    },
}
"""Settings of the stages of methods that generate nodes."""


def use_few_methods(patch: pytest.MonkeyPatch) -> None:
    """Draw the projects of a test with one method of each kind."""
    for name in ("METHODS", "COUNTERPARTS"):
        patch.setitem(globals(), name, {key: held for key, held in globals()[name].items() if key in FEW})


def subject_ids() -> list[str]:
    return [f"zq-{number:04d}" for number in range(SUBJECTS)]


def write_page(folder: Path, page: Path, *, show_subjects: bool = False) -> Path:
    """Write the report of a project that is drawn, with a second experiment that repeats a figure of the paper."""
    outline = outline_of(folder, show_subjects=show_subjects)
    experiments = outline["cohorts"][0]["experiments"]
    experiments.append(with_figure(experiments[0]))
    write_report(read(outline), CAPTIONS, [], str(page), PAPERS)
    return page


def draw_project(
    folder: Path,
    *,
    show_subjects: bool = False,
    sites: int = 3,
    alone: int = 0,
    classes: Sequence[str] = (),
    predict: Callable[[str, int, Path], pd.DataFrame] | None = None,
    pictures: bool = True,
) -> dict[str, Any]:
    """Write every artefact of a made-up project but its report under `folder`; return its outline.

    Args:
        folder: of the project.
        show_subjects: whether its subjects are shown one by one.
        sites: number of them.
        alone: the last so many subjects have a site each, beside those.
        classes: names of classes; without any, patients and controls.
        predict: makes the predictions of a variant and repeat from the cohort's folder; without it they are drawn.
        pictures: whether its figures are drawn; otherwise each is an empty one.
    """
    cohort = folder / "results" / "toy"
    people = _write_cohort(cohort, sites, alone, len(classes) or 2)
    splits = _write_splits(cohort, people)
    graph = _write_graph(cohort, splits[0])
    for name in METHODS:
        for repeat in range(REPEATS):
            _write_method(cohort, name, repeat, splits[repeat], people)
            if predict is not None:
                folder_of_run = cohort / "methods" / name / f"repeat-{repeat}"
                write_table(folder_of_run / "predictions.parquet", predict(name, repeat, cohort))
    outline = outline_of(folder, show_subjects=show_subjects, classes=classes)
    _draw(outline["cohorts"][0], graph, splits, class_words("diagnosis", classes), pictures)
    return outline


def shared_project() -> Path:
    """Folder of a project of many sites, drawn once for all processes of a test run: to be read only."""
    return made_once("shared-project", partial(draw_project, show_subjects=True, alone=12))


def read(outline: Mapping[str, Any]) -> ReportOutline:
    """An outline as the script of the report reads it."""
    return read_outline(outline, BESIDE)


def page_of(outline: Mapping[str, Any]) -> str:
    """The page of an outline, with the panels of all families."""
    return render(read(outline), CAPTIONS, PAPERS)


def words_of(page: str) -> str:
    """The page's text without pictures, styles and tags."""
    body = re.sub(r"<(style|script|svg)\b.*?</\1>|<[^>]+>", " ", page[page.index("<body") :], flags=re.DOTALL)
    return " ".join(body.split())


def _write_cohort(cohort: Path, sites: int, alone: int, classes: int) -> pd.DataFrame:
    random = np.random.default_rng(1)
    ids = subject_ids()
    site = [number % sites if number < SUBJECTS - alone else number for number in range(SUBJECTS)]
    people = pd.DataFrame(
        {
            "subject": ids,
            "site": [f"SITE_{number}" for number in site],
            "age": [float("nan") if number == 3 else float(random.uniform(8, 40)) for number in range(SUBJECTS)],
            "sex": ["male" if number % 3 else "female" for number in range(SUBJECTS)],
            "diagnosis": pd.array([number % classes for number in range(SUBJECTS)], dtype="Int8"),
            "mean_fd": random.uniform(0.05, 0.4, SUBJECTS),
            "fd_source": "table",
            "has_series": [number != 5 for number in range(SUBJECTS)],
        }
    )
    write_table(cohort / "participants.parquet", people)
    told = {5: "no series", 9: f"Subject {ids[9]}: 20 points"}
    reason = [told.get(number, "") for number in range(SUBJECTS)]
    group = [ids[10] if number == 11 else ids[number] for number in range(SUBJECTS)]
    decided = pd.DataFrame(
        {"subject": ids, "included": [not why for why in reason], "twin_group": group, "reason": reason}
    )
    write_table(cohort / "included.parquet", decided)
    apart = "site SITE_1: mean FD 0.31 mm, elsewhere 0.12 mm, d = 1.40"
    issues = [
        (ids[5], "no series", "no series", "left out"),
        (ids[3], "age missing", "no age", "kept, matches nobody"),
        ("", "site apart in motion", apart, "kept"),
    ]
    write_tsv(cohort / "issues.tsv", pd.DataFrame(issues, columns=["subject", "kind", "detail", "action"]))
    series = {subject: random.standard_normal((60, REGIONS)).astype(np.float32) for subject in ids if subject != ids[5]}
    for number, subject in enumerate(ids):
        if subject in series and number % 2:
            series[subject][:, 1] += 1.5 * series[subject][:, 0]
    regions = [f"{network}-{number:02d}" for network in ("Visual", "Default") for number in range(REGIONS // 2)]
    write_arrays(cohort / "shard.safetensors", series, {"atlas": "toy14", "regions": regions})
    quality = [(subject, 60, 2.0, int(number == 7), 0, f"sum-{subject}", "") for number, subject in enumerate(series)]
    names = ["subject", "timepoints", "tr", "constant_regions", "empty_regions", "checksum", "problem"]
    write_table(cohort / "shard-quality.parquet", pd.DataFrame(quality, columns=names))
    coverage = [(subject, region, 0.9 if region.endswith("03") else 1.0) for subject in series for region in regions]
    seen = pd.DataFrame(coverage, columns=["subject", "region", "coverage"])
    write_table(cohort / "coverage.parquet", seen)
    measures = measure(people, pd.DataFrame(quality, columns=names), seen, 0.5, typicality(series, 0.999))
    write_table(cohort / "quality.parquet", measures)
    moved = people[decided["included"]]
    found = relate_motion({subject: series[subject] for subject in moved["subject"]}, regions, moved)
    write_table(cohort / "qc-fc.parquet", found)
    likeness = crossings_of_likeness(people, list(series), REGIONS)
    for job, rows in {"quality": likeness, "included": crossings_of_checksums(people, list(series))}.items():
        write_text(cohort / f"{job}-crossings.json", canonical_json({"crossings": list(rows)}))
    return people[decided["included"]].reset_index(drop=True)


def _write_splits(cohort: Path, people: pd.DataFrame) -> list[str]:
    paths = []
    for repeat in range(REPEATS):
        order = np.random.default_rng(repeat).permutation(len(people))
        rank = people.assign(place=order).groupby("diagnosis")["place"].rank().astype(int).to_numpy() - 1
        split = pd.DataFrame(
            {
                "subject": people["subject"],
                "institution": [INSTITUTIONS[value % 2] for value in rank],
                "fold": [_fold(value // 2) for value in rank],
            }
        )
        paths.append(str(cohort / f"split-{repeat}.parquet"))
        write_table(paths[-1], split)
    return paths


def _fold(rank: int) -> int:
    """Under `holdout` every third is tested and the others train."""
    return (-1 if rank % 3 else 0) if SPLIT["validation"] == "holdout" else rank % FOLDS


def _write_graph(cohort: Path, split: str) -> str:
    drawn = pd.read_parquet(split)
    institution = drawn["institution"].to_numpy()
    random = np.random.default_rng(2)
    everybody = itertools.combinations(range(len(drawn)), 2)
    pairs = [(i, j) for i, j in everybody if institution[i] == institution[j] and random.random() < 0.2]
    edges = sorted([*pairs, *((j, i) for i, j in pairs), *((i, i) for i in range(len(drawn)))])
    path = str(cohort / "graph.safetensors")
    row, column = np.array(edges, dtype=np.int64).T
    arrays = {
        "row": row,
        "column": column,
        "weight": np.ones(len(edges), dtype=np.float32),
        "embedding": np.zeros((len(drawn), 2), dtype=np.float32),
    }
    settings = {"scope": "local", "shuffle": False}
    write_arrays(path, arrays, {"subjects": list(drawn["subject"]), "settings": settings, "sigma": [1.0]})
    return path


def _write_method(cohort: Path, name: str, repeat: int, split: str, people: pd.DataFrame) -> None:
    folder = cohort / "methods" / name / f"repeat-{repeat}"
    drawn = pd.read_parquet(split).query("fold >= 0").merge(people, on="subject")
    label = drawn["diagnosis"].to_numpy(np.int64)
    random = np.random.default_rng([len(name), repeat])
    margin = SKILL[name] * (label - 0.5) + (random.standard_normal(len(label)) if SKILL[name] else 0.0)
    is_margin = name.startswith("ridge")
    drawn["score"] = margin if is_margin else 1 / (1 + np.exp(-margin))
    drawn["kind"] = "margin" if is_margin else "probability"
    drawn["label"] = label.astype(np.int8)
    write_table(folder / "predictions.parquet", drawn[["subject", "institution", "fold", "score", "kind", "label"]])
    rounds = METHODS[name][3].get("rounds", 2 if "curve_every" in METHODS[name][3] else 0)
    history = [
        (fold, institution, index + 1, 0.7 / (index + 1), 0.7 + 0.02 * index, 0.5 + 0.05 * index)
        for fold in range(FOLDS)
        for institution in INSTITUTIONS
        for index in range(rounds)
    ]
    columns = ["fold", "institution", "round", "training_loss", "test_loss", "test_accuracy"]
    write_table(folder / "history.parquet", pd.DataFrame(history, columns=columns))
    crossings = {
        "ridge-central": [("features", "upload", "subjects x features"), ("labels", "upload", "subjects")],
        "fedgcn": [("weight-0", "upload", "features x hidden-0"), ("weight-0", "download", "features x hidden-0")],
        "fedgcn-no-noise": [("weight-0", "upload", "features x hidden-0")],
        "fedni": [("weight-0", "upload", "features x hidden-0")],
    }.get(name, [])
    rows = [
        crossing(tensor, axes, way, 2048, to=TO[way], shape="91x64", tensors=6, rounds=3)
        for tensor, way, axes in crossings
    ]
    write_text(folder / "cost.json", canonical_json({"counts": {"parameters": 4096}, "crossings": rows}))
    if name in GENERATORS:
        _write_generator(folder, len(people))
    write_text(folder / "timing.json", canonical_json({"seconds": 1.5, "peak_memory_mb": 200.0, "device": "cpu"}))


def _write_members(predictions: str) -> str:
    """Scores of the training subjects, those of the prediction; ridge on pooled data is surer of its own subjects."""
    tested = pd.read_parquet(predictions)
    parts = [tested[tested["fold"] != fold].assign(fold=np.int16(fold)) for fold in sorted(set(tested["fold"]))]
    found = pd.concat(parts, ignore_index=True).assign(public=False)
    if Path(predictions).parts[-3] == "ridge-central" and "score" in found:
        found["score"] += 2.0 * found["label"] - 1.0
    path = str(Path(predictions).with_name("members.parquet"))
    write_table(path, found)
    write_text(Path(predictions).with_name("privacy.json"), "[]\n")
    return path


def with_figure(experiment: Mapping[str, Any]) -> dict[str, Any]:
    """The same experiment as one that repeats a figure of the paper."""
    bars = str(Path(experiment["figures"]["forest"]).with_name("bars.svg"))
    told = {"name": "fig4", "title": "Generated nodes against random ones", "figure": "bars", "paper": "fig4"}
    return {**experiment, **told, "figures": {**experiment["figures"], "bars": bars}}


def generator_files(repeats: Callable[[str, str], list[str]], name: str) -> dict[str, Any]:
    """What a variant that generates nodes names beside its own files."""
    return {
        "fused": repeats(name, "fused.safetensors"),
        "inpainting": {
            "histories": [],
            "costs": repeats(name, "inpainting-cost.json"),
            "timings": repeats(name, "inpainting-timing.json"),
        },
        "preparation": {
            "features": [],
            "graph": repeats(name, "graph-timing.json"),
            "fusing": repeats(name, "fusing-timing.json"),
        },
    }


def _write_generator(folder: Path, subjects: int) -> None:
    """100 generated nodes, and what a generator's training leaves behind."""
    write_fused(folder / "fused.safetensors", 0.35, folder, subjects)
    sent = {"stage": "inpainting", "shape": "91x256", "tensors": 6, "rounds": 30}
    rows = [
        crossing(name, "features x encoder-0", way, 1_000_000, to=to, **sent)
        for name in ("encoder_0.weight", "encoder_0.bias")
        for way, to in TO.items()
    ]
    counts = {"parameters": 81920, "discriminator_parameters": 20480, "rounds": 30, "operations": 2_000_000_000}
    write_text(folder / "inpainting-cost.json", canonical_json({"counts": counts, "crossings": rows}))
    timing = {"peak_memory_mb": 300.0, "device": "cpu"}
    for stage, seconds in {"inpainting": 12.5, "graph": 2.5, "fusing": 4.0}.items():
        write_text(folder / f"{stage}-timing.json", canonical_json({"seconds": seconds, **timing}))


def _stages(name: str, method: str) -> dict[str, Any]:
    read = stage_settings(KNOWN[method])
    usual = {"scope": "global"} if KNOWN[method].topology == "central" else {}
    graph = asdict(GraphSettings(**usual)) if "graph" in read else {}
    features = asdict(FeatureSettings()) if "features" in read else {}
    return {"features": features, "graph": graph, **GENERATORS.get(name, {})}


def counterparts_of(name: str) -> dict[str, Any]:
    """What `configuration._counterparts` would say of a federated variant."""
    if not name.startswith("fed"):
        return {}
    local = {"name": COUNTERPARTS.get(name, ""), "missing": "" if name in COUNTERPARTS else "add localgcn"}
    return {"alone": local, "pooled": {"name": "", "missing": "add centralgcn"}}


def outline_of(folder: Path, *, show_subjects: bool, classes: Sequence[str] = ()) -> dict[str, Any]:
    cohort = folder / "results" / "toy"
    figures = cohort / "figures"

    def repeats(variant: str, name: str) -> list[str]:
        return [str(cohort / "methods" / variant / f"repeat-{repeat}" / name) for repeat in range(REPEATS)]

    experiment = {
        "name": "methods",
        "title": "All methods",
        "protocol": "transductive",
        "labels": "true",
        "reference": "ridge-central",
        "repeats": REPEATS,
        "split": SPLIT,
        "splits": [str(cohort / f"split-{repeat}.parquet") for repeat in range(REPEATS)],
        "pooled": POOLED,
        **({"participants": str(cohort / "participants.parquet")} if SPLIT["validation"] == "holdout" else {}),
        "tables": {name: str(cohort / f"{name}.tsv") for name in TABLES},
        "figures": {name: str(figures / f"{name}.svg") for name in (*FIGURES["experiment"], "leakage")},
        "variants": [
            {
                "name": name,
                "method": method,
                "method_title": title,
                "family": family,
                "topology": settings.get("training", KNOWN[method].topology),
                "counterparts": counterparts_of(name),
                "settings": asdict(KNOWN[method].settings()) | settings,
                "shipped": shipped_settings(KNOWN[method]),
                "stages": _stages(name, method),
                "costs": repeats(name, "cost.json"),
                "timings": repeats(name, "timing.json"),
                "histories": repeats(name, "history.parquet"),
                "privacy": repeats(name, "privacy.json"),
                **(generator_files(repeats, name) if name in GENERATORS else {}),
            }
            for name, (method, title, family, settings) in METHODS.items()
        ],
    }
    shown = [*FIGURES["cohort"], *FIGURES["connectivity"], *FIGURES["graphs"]]
    toy = {
        "name": "toy",
        "classes": list(classes),
        "source": "timeseries",
        "atlas": "toy14",
        "parcellation": "",
        "participants": str(cohort / "participants.parquet"),
        "included": str(cohort / "included.parquet"),
        "issues": str(cohort / "issues.tsv"),
        "connectivity": str(figures / "connectivity.json"),
        "site_trace": str(figures / "site-trace.tsv"),
        "quality": [str(cohort / "shard-quality.parquet")],
        "measures": str(cohort / "quality.parquet"),
        "connections": str(cohort / "qc-fc.parquet"),
        "crossings": [str(cohort / f"{job}-crossings.json") for job in ("quality", "included")],
        "flag": asdict(FlagSettings()),
        "followed": str(cohort / "followed.json") if show_subjects else "",
        "figures": {name: str(figures / f"{name}.svg") for name in shown},
        "experiments": [experiment],
    }
    return {
        "project": "toy",
        "title": "toy",
        "show_subjects": show_subjects,
        "seed": 7,
        "config": {"project": "toy", "cohorts": {"toy": {"source": "timeseries", "alphas": (0.1, 1.0)}}},
        "cohorts": [json.loads(json.dumps(toy))],
    }


def _draw(toy: Mapping[str, Any], graph: str, splits: list[str], words: ClassWords, pictures: bool) -> None:
    cohort = Path(toy["participants"]).parent
    experiment = toy["experiments"][0]
    figures = toy["figures"]
    outputs = {**figures, "summary": toy["connectivity"]}
    draw_connectivity([str(cohort / "shard.safetensors")], toy["participants"], toy["included"], None, outputs, words)
    outputs = {**figures, "table": str(cohort / "figures" / "homophily.tsv"), "site_trace": toy["site_trace"]}
    draw_graphs(["local"], [graph], splits[:1], toy["participants"], outputs, words)
    order = [(name, repeat) for name in METHODS for repeat in range(REPEATS)]
    files = {
        kind: [str(cohort / "methods" / name / f"repeat-{repeat}" / f"{kind}.parquet") for name, repeat in order]
        for kind in ("predictions", "history")
    }
    score_experiment(
        order,
        files["predictions"],
        splits,
        counterparts={name: {"alone": counterpart} for name, counterpart in COUNTERPARTS.items()},
        reference="ridge-central",
        outputs=experiment["tables"],
        participants=experiment.get("participants"),
        pooled=POOLED,
    )
    members = [_write_members(path) for path in files["predictions"]]
    audit_experiment(order, files["predictions"], members, toy["included"], experiment["tables"]["audit"])
    if not pictures:
        for path in (*figures.values(), *experiment["figures"].values()):
            write_text(path, EMPTY)
        return
    described = (toy["participants"], toy["included"], toy["measures"], toy["connections"])
    draw_cohort(*described, [str(cohort / "coverage.parquet")], FlagSettings(), figures, words)
    inputs = {"predictions": files["predictions"], "histories": files["history"]}
    inputs |= {name: [experiment["tables"][name]] for name in ("runs", "tests", "gain")}
    inputs |= {"splits": splits if experiment.get("participants") else []}
    inputs |= {"people": [toy["participants"]], "included": [toy["included"]], "quality": [toy["measures"]]}
    variants = [read_variant(variant, BESIDE) for variant in experiment["variants"]]
    draw_experiment(
        variants, REPEATS, inputs, reference="ridge-central", outputs=experiment["figures"], words=words, pooled=POOLED
    )
    tables = experiment["tables"]
    draw_leakage(variants, tables["summary"], tables["audit"], experiment["figures"]["leakage"])
    if toy["followed"]:
        runs = dict(zip(order, files["predictions"], strict=True))
        write_followed(toy, [str(cohort / "shard.safetensors")], runs, words, toy["followed"])
    drawn = read_experiment({**experiment, "cohort": toy["name"]}, BESIDE)
    draw("bars", drawn, with_figure(experiment)["figures"]["bars"], PAPER_FIGURES, PRINTINGS)
