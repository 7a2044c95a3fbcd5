"""Whether federated training can beat central ridge on the same folds: a search that never sees a test label.

    python benchmarks/federated_search.py --cohort results/abide [--split NAME] [--repeats 5] [--quick]

For every outer fold f the candidates are trained without the labels of fold f and of fold f + 1 (the last
fold is followed by the first), and the one with the best AUC on fold f + 1, the mean over institutions, is
chosen. It is trained again without the labels of fold f alone and scores fold f. The central linear models
choose among as many penalties in the same way. All outer folds are trained side by side.

Reads the artefacts of the workflow: a split, its participants, shared features and the transductive cut
graph of the default settings. Prints one table; writes every candidate's figures, fold by fold, to a TSV.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from federated_candidates import REFERENCE, Candidate, candidates, hastened
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from brainfed.configuration import ProjectSettings
from brainfed.evaluation import INSTITUTION, auc, compare, score_runs, summarise, test_train_ratio
from brainfed.graphs import GraphSettings
from brainfed.runtime import IntArray, Streams, UserError, read_arrays, restore, write_tsv
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, assemble, check, predictions_table, read_people

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """What a search ends with.

    Attributes:
        inner: (candidates, F) validation AUC.
        chosen: (F,) the candidate of each outer fold.
        outcome: scores (F, n, C) of the chosen ones.
    """

    inner: FloatArray
    chosen: IntArray
    outcome: Outcome


def inner_inputs(inputs: MethodInputs) -> MethodInputs:
    """The same inputs with the labels of fold f + 1 hidden in fold f as well, and f + 1 tested in its place.

    Raises:
        UserError: fewer than three folds, or features or graphs fitted in each fold: they would have
            seen the labels, or the subjects, that choose.
    """
    if inputs.folds < 3:
        raise UserError(f"federated search: expected at least three folds, found {inputs.folds}; use another split.")
    if len(inputs.features) > 1 or len(inputs.graphs) > 1:
        raise UserError(
            "federated search: expected features and graphs shared by all folds, found one a fold; use label-free "
            "features and the transductive protocol."
        )
    following = (np.arange(inputs.folds)[:, None] + 1) % inputs.folds
    return replace(
        inputs,
        fold=(inputs.fold - 1) % inputs.folds,
        labels=np.where(inputs.fold[None, :] == following, -1, inputs.labels),
    )


def validation_auc(inputs: MethodInputs, inner: MethodInputs, outcome: Outcome) -> FloatArray:
    """(F,) AUC on the inner fold of each outer fold, the mean over institutions with both classes.

    NaN where there is none, or the training diverged. The labels are those that outer fold f may use,
    `inputs.labels[f]`.
    """
    values = np.full(inputs.folds, np.nan)
    for fold in range(inputs.folds):
        tested, labels, scores = inner.tested(fold), inputs.labels[fold], outcome.scores[fold, :, 1]
        groups = [tested & (inputs.institution == code) for code in range(len(inputs.institutions))]
        both = [group for group in groups if len(np.unique(labels[group])) == 2]
        if both and np.isfinite(scores[tested]).all():
            values[fold] = np.mean([auc(labels[group], scores[group]) for group in both])
    return values


def search(competing: Sequence[Candidate], inputs: MethodInputs, run: Run) -> Found:
    """Choose a candidate for every fold on its inner fold, then train the chosen ones and score the fold."""
    inner = inner_inputs(inputs)
    figures = np.stack([validation_auc(inputs, inner, one.train(inner, one.settings, run)) for one in competing])
    if not np.isfinite(figures).any(axis=0).all():
        raise UserError(
            "federated search: expected subjects of both diagnoses in every inner fold of an institution and a "
            "training that converges, found a fold without any validation AUC; use fewer folds or institutions."
        )
    chosen = np.nanargmax(figures, axis=0)
    scores = np.full((*inputs.labels.shape, inputs.classes), np.nan)
    for index in np.unique(chosen).tolist():
        outcome = competing[index].train(inputs, competing[index].settings, run)
        scores[chosen == index] = outcome.scores[chosen == index]
    final = Outcome(scores, outcome.kind)
    check(inputs, final)
    return Found(figures, chosen, final)


def search_repeat(
    competing: Sequence[Candidate], inputs: MethodInputs, truth: IntArray, repeat: int, run: Run
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All searches of one repeat.

    Returns:
        Predictions with columns variant and repeat; and repeat, fold, search, candidate, inner_auc,
        chosen, one row a candidate and fold.
    """
    predictions, choices = [], []
    for name in dict.fromkeys(one.search for one in competing):
        own = [one for one in competing if one.search == name]
        found = search(own, inputs, run)
        predictions.append(predictions_table(inputs, found.outcome, truth).assign(variant=name, repeat=repeat))
        choices += [
            (repeat, fold, name, one.name, found.inner[index, fold], bool(found.chosen[fold] == index))
            for fold in range(inputs.folds)
            for index, one in enumerate(own)
        ]
    columns = ["repeat", "fold", "search", "candidate", "inner_auc", "chosen"]
    return pd.concat(predictions, ignore_index=True), pd.DataFrame(choices, columns=columns)


def read_repeat(cohort: Path, split: str, features: str, graph: str, streams: Streams) -> tuple[MethodInputs, IntArray]:
    return assemble(
        split=cohort / "splits" / split / f"repeat-{streams.repeat}.parquet",
        participants=cohort / "cohort" / "participants.parquet",
        features=[cohort / "features" / features / "all.safetensors"],
        graphs=[cohort / "graphs" / graph / f"repeat-{streams.repeat}" / "all.safetensors"],
        labels="true",
        streams=streams,
    )


def only(folder: Path, what: str, fits: Callable[[Path], bool]) -> str:
    """The name of the only subfolder that fits.

    Raises:
        UserError: there is none, or there are several.
    """
    names = sorted(path.name for path in folder.glob("*") if fits(path))
    if len(names) != 1:
        listed = ", ".join(names) or "none"
        raise UserError(f"{folder}: expected one {what}, found {listed}; run the workflow, or name it with --{what}.")
    return names[0]


def is_cut_graph_of(cohort: Path, split: str, folder: Path) -> bool:
    """Whether a folder holds the default graph of the split's first repeat: no edge leaves an institution."""
    path = folder / "repeat-0" / "all.safetensors"
    if not path.exists():
        return False
    file = read_arrays(path, ["row", "column"])
    if restore(GraphSettings, file.metadata["settings"]) != GraphSettings():
        return False
    people = read_people(cohort / "splits" / split / "repeat-0.parquet", cohort / "cohort" / "participants.parquet")
    if tuple(people["subject"]) != file.subjects:
        return False
    home = people["institution"].to_numpy()
    return bool((home[file.arrays["row"]] == home[file.arrays["column"]]).all())


def results_table(predictions: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The table of all searches, means over institutions; and auc and accuracy run by run."""
    runs = score_runs(predictions)
    runs = runs.loc[(runs["scope"] == INSTITUTION) & runs["metric"].isin(["auc", "accuracy"])]
    ratio = test_train_ratio(predictions)
    tests = pd.concat([compare(runs, REFERENCE, metric, INSTITUTION, ratio) for metric in ("auc", "accuracy")])
    kept = ["variant", "metric", "difference", "ci_low", "ci_high", "p_corrected"]
    means = summarise(runs)[["variant", "metric", "mean", "sd", "runs"]]
    return means.merge(tests[kept], on=["variant", "metric"], how="left"), runs


def arguments_of(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cohort", type=Path, required=True, help="a cohort's folder of results")
    parser.add_argument("--split", help="folder under splits/; default: the only one")
    parser.add_argument("--features", help="folder under features/; default: the only one shared by all folds")
    parser.add_argument("--graph", help="folder under graphs/; default: the split's cut graph of default settings")
    parser.add_argument("--repeats", type=int, help="default: all that were drawn")
    parser.add_argument("--seed", type=int, default=ProjectSettings.seed, help="the config's; default: %(default)s")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", type=Path, help="default: tables/federated-search[-quick].tsv of the cohort")
    parser.add_argument("--quick", action="store_true", help="one repeat, a tenth of the rounds: shows that it runs")
    return parser.parse_args(given)


def main(given: Sequence[str]) -> None:
    options = arguments_of(given)
    cohort: Path = options.cohort
    split = options.split or only(cohort / "splits", "split", Path.is_dir)
    shared = "features", lambda path: (path / "all.safetensors").exists()
    features = options.features or only(cohort / "features", *shared)
    graph = options.graph or only(cohort / "graphs", "graph", lambda path: is_cut_graph_of(cohort, split, path))
    drawn = len(list((cohort / "splits" / split).glob("repeat-*.parquet")))
    repeats = 1 if options.quick else options.repeats or drawn
    competing = [hastened(one) if options.quick else one for one in candidates()]
    run = Run(device=options.device, progress=lambda *_, **__: None)
    torch.set_num_threads(options.threads)
    predictions, choices = [], []
    with threadpool_limits(limits=options.threads):
        for repeat in range(repeats):
            inputs, truth = read_repeat(cohort, split, features, graph, Streams(options.seed, repeat))
            scored, chosen = search_repeat(competing, inputs, truth, repeat, run)
            predictions.append(scored)
            choices.append(chosen)
            print(f"repeat {repeat + 1} of {repeats} done", file=sys.stderr)
    table, runs = results_table(pd.concat(predictions, ignore_index=True))
    usual = cohort / "tables" / f"federated-search{'-quick' if options.quick else ''}.tsv"
    report(table, runs, pd.concat(choices, ignore_index=True), options.output or usual)


def report(table: pd.DataFrame, runs: pd.DataFrame, choices: pd.DataFrame, output: Path) -> None:
    """Print the table and how often each candidate was chosen; write all candidates, the chosen with their test."""
    wide = runs.pivot(index=["repeat", "fold", "variant"], columns="metric", values="value").reset_index()
    tested = wide.rename(columns={"variant": "search", "auc": "test_auc", "accuracy": "test_accuracy"})
    written = choices.merge(tested, on=["repeat", "fold", "search"], validate="many_to_one")
    written.loc[~written["chosen"], ["test_auc", "test_accuracy"]] = np.nan
    write_tsv(output, written)
    print(table.to_string(index=False, float_format="{:.3f}".format, na_rep=""))
    often = choices.loc[choices["chosen"]].groupby(["search", "candidate"], sort=False).size()
    print("\n" + often.reset_index(name="folds").to_string(index=False))
    print(f"written: {output}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    try:
        main(sys.argv[1:])
    except UserError as error:
        sys.exit(str(error))
