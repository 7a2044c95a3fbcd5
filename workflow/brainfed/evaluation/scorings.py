"""Two scorings of clustered federations, institution by institution (Xie et al. 2021, Tables 3 and 4).

`last model` is the test accuracy of the last round. `paper scoring` is what the authors' code does with GCFL and GCFL+:
it keeps the model of a cluster when the cluster is cut, with the accuracies of the round before, and all models of the
last round; an institution has the best test accuracy of the models that it was kept in. The choice reads the test data,
so the last model alone is ranked. Without clusters both are one.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from brainfed.evaluation.scores import institution_scope
from brainfed.runtime.artefacts import read_table, write_tsv
from brainfed.runtime.errors import UserError

LAST, PAPER = "last model", "paper scoring"
SCORINGS = (LAST, PAPER)
COLUMNS = (
    "variant", "scoring", "accuracy", "sd", "institution_sd", "runs", "twin", "min_gain", "improved", "equal",
    "institutions",
)  # fmt: skip
EXACT = 12
"""Decimals of a gain that do not depend on the order of a sum."""
HISTORY = ("fold", "institution", "round", "test_accuracy")
RUN = ["repeat", "fold"]
ONE = [*RUN, "institution"]


def score_institutions(
    runs: str, histories: Mapping[str, Sequence[str]], twins: Mapping[str, str], output: str
) -> None:
    """Write `institution_table`.

    Args:
        runs: table of all runs.
        histories: variant with clusters -> its histories of all repeats, in order.
        twins: federated variant -> the same model trained in every institution alone.
        output: path.
    """
    write_tsv(output, institution_table(pd.read_csv(runs, sep="\t"), read_histories(histories), twins))


def institution_table(
    runs: pd.DataFrame, histories: Mapping[str, pd.DataFrame], twins: Mapping[str, str]
) -> pd.DataFrame:
    """Accuracy and gain over local training of every variant by both scorings.

    Args:
        runs: `scores.RUN_COLUMNS`; the accuracies of single institutions are the last models'.
        histories: variant with clusters -> `HISTORY`, cluster and repeat.
        twins: federated variant -> the same model trained in every institution alone.

    Returns:
        `COLUMNS`: mean over institutions of the accuracy, its mean and sd over runs; institution_sd, mean over
        institutions of an institution's sd over runs, the paper's spread; min_gain, the smallest mean gain of an
        institution over its twin's last model, improved and equal, the numbers of institutions with a gain above 0 and
        of 0. The gain is the mean over runs of paired differences; empty without a twin.

    Raises:
        UserError: the last round of a history is not what the runs score.
    """
    prefix = institution_scope("")
    single = runs[(runs["metric"] == "accuracy") & runs["scope"].str.startswith(prefix)].dropna(subset=["value"])
    single = single.assign(institution=single["scope"].str.removeprefix(prefix))
    last = {str(name): own[[*ONE, "value"]] for name, own in single.groupby("variant", sort=False)}
    scored = last | {name: best_of_kept(name, last[name], history) for name, history in histories.items()}
    rows = [
        {
            "variant": name,
            "scoring": scoring,
            **_averages(values[name]),
            "twin": twins.get(name, ""),
            **_gains(values[name], last.get(twins.get(name, ""))),
        }
        for name in last
        for scoring, values in ((LAST, last), (PAPER, scored))
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"improved": "Int64", "equal": "Int64"})


def best_of_kept(variant: str, last: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """The best test accuracy of the kept models of every institution and run.

    Args:
        variant: its name, for messages.
        last: repeat, fold, institution, value of the last model.
        history: of the variant, `HISTORY`, cluster (null without) and repeat.

    Returns:
        As `last`, with the paper's scoring as value.

    Raises:
        UserError: the last round of the history is not what `last` holds.
    """
    found = {}
    for run, own in history.groupby(RUN):
        accuracy = own.pivot(index="round", columns="institution", values="test_accuracy").sort_index()
        clusters = own.pivot(index="round", columns="institution", values="cluster").loc[accuracy.index]
        kept = kept_models(clusters.fillna(0).to_numpy(np.int64))
        found[run] = pd.DataFrame({"best": accuracy.where(kept).max(), "end": accuracy.iloc[-1]})
    both = last.merge(pd.concat(found, names=ONE).reset_index(), on=ONE, how="left", validate="one_to_one")
    if not np.allclose(both["value"], both["end"]):
        raise UserError(
            f"{variant}: expected the accuracies of its predictions in the last round of its history, found others; "
            "delete the variant's folder and run again."
        )
    return both[[*ONE, "best"]].rename(columns={"best": "value"})


def kept_models(clusters: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(T, M) whether an institution's model after a round is kept: its cluster is cut next, or the round is the last.

    Args:
        clusters: (T, M) number of each institution's cluster after every round; clusters are cut and never joined.
    """
    kept = np.zeros(clusters.shape, dtype=bool)
    kept[-1] = True
    for number, (before, after) in enumerate(pairwise(clusters)):
        for cluster in np.unique(before[before != after]):
            kept[number, before == cluster] = True
    return kept


def read_histories(files: Mapping[str, Sequence[str]]) -> dict[str, pd.DataFrame]:
    """Histories of all repeats, from variant -> their files in order; a file without clusters has null ones."""
    return {
        variant: pd.concat(
            [_with_clusters(read_table(path, HISTORY)).assign(repeat=repeat) for repeat, path in enumerate(paths)],
            ignore_index=True,
        )
        for variant, paths in files.items()
    }


def _with_clusters(history: pd.DataFrame) -> pd.DataFrame:
    return history if "cluster" in history else history.assign(cluster=pd.array([None] * len(history), dtype="Int32"))


def _averages(values: pd.DataFrame) -> dict[str, float | int]:
    of_runs = values.groupby(RUN)["value"].mean()
    spread = values.groupby("institution")["value"].std(ddof=1)
    return {
        "accuracy": float(of_runs.mean()),
        "sd": float(of_runs.std(ddof=1)),
        "institution_sd": float(spread.mean()),
        "runs": len(of_runs),
    }


def _gains(values: pd.DataFrame, twin: pd.DataFrame | None) -> dict[str, float | int | None]:
    if twin is None:
        return {"min_gain": np.nan, "improved": None, "equal": None, "institutions": values["institution"].nunique()}
    paired = values.merge(twin, on=ONE, suffixes=("", "_twin"), validate="one_to_one")
    gain = (paired["value"] - paired["value_twin"]).groupby(paired["institution"]).mean().round(EXACT)
    return {
        "min_gain": float(gain.min()),
        "improved": int((gain > 0).sum()),
        "equal": int((gain == 0).sum()),
        "institutions": len(gain),
    }
