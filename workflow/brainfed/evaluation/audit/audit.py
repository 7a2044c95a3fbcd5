"""The audit of an experiment: what the scores of every variant reveal of who trained it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from brainfed.evaluation.audit.attacks import likelihood_ratio, loss_threshold
from brainfed.evaluation.audit.shadow_runs import Mask, ShadowRuns, shadow_runs
from brainfed.evaluation.audit.success import Success, success
from brainfed.evaluation.predictions import read_predictions
from brainfed.runtime.artefacts import read_table, write_tsv

LIRA, LOSS, OTHERS = "lira", "loss", "-others"
"""Attacks by name; with the suffix the same attack on people of whom none trained the model."""
PUBLIC = "-public"
"""Suffix of the attacks on training subjects that are public, whose membership is no secret; those without are then on
the private ones."""
COLUMNS = (
    "variant",
    "attack",
    "auc",
    "auc_low",
    "auc_high",
    "tpr",
    "tpr_low",
    "tpr_high",
    "fpr",
    "members",
    "non_members",
    "runs",
)


def audit_experiment(
    runs: Sequence[tuple[str, int]], predictions: Sequence[str], members: Sequence[str], included: str, output: str
) -> None:
    """Write `COLUMNS`, a row a variant and attack; a variant whose method scores no training subject has none.

    Args:
        runs: (variant, repeat) of each file.
        predictions: tables of predictions.
        members: tables of the scores of training subjects, with `public`.
        included: table with `twin_group`.
        output: path of the table.
    """
    people = read_table(included, ["subject", "twin_group"])
    groups = dict(zip(people["subject"], people["twin_group"], strict=True))
    tested, trained = read_predictions(runs, predictions), read_predictions(runs, members, ["public"])
    rows = []
    for variant in dict.fromkeys(name for name, _ in runs):
        own = trained[trained["variant"] == variant]
        if len(own):
            held = tested[tested["variant"] == variant]
            public = own["public"].to_numpy(bool)
            found = list(audit(shadow_runs(held, own[~public], groups)))
            if public.any():
                attacks = audit(shadow_runs(held, own[public], groups))
                found += [(f"{name}{PUBLIC}", each) for name, each in attacks if not name.endswith(OTHERS)]
            rows += [{"variant": variant, "attack": name} | asdict(each) for name, each in found]
    write_tsv(output, pd.DataFrame(rows, columns=list(COLUMNS)))


def audit(runs: ShadowRuns) -> Iterator[tuple[str, Success]]:
    """Name and success of every attack, and of every attack on other people.

    LiRA needs shadow models of another split, and other people need that split. With one repeat, or where all repeats
    hold out the same people together (leave-one-site-out), there is the loss threshold alone: the shadow models of a
    subject would lack its whole site, and LiRA would find the site.
    """
    attacks = {LOSS: loss_threshold(runs)}
    others = other_people(runs)
    split_anew = all(mask.any() for mask in others)
    if split_anew:
        attacks = {LIRA: likelihood_ratio(runs)} | attacks
    for name, statistic in attacks.items():
        yield name, success(statistic, runs.trained, runs.held_out, runs.group)
    for name, statistic in attacks.items():
        if split_anew:
            yield name + OTHERS, success(statistic, *others, runs.group)


def other_people(runs: ShadowRuns) -> tuple[Mask, Mask]:
    """(R, F, n) two groups of people of whom none trained the model: a sound attack has an AUC of 0.5 on them.

    They are parted by the same fold of the next repeat: those who trained there, and those who were held out.
    """
    following = np.roll(np.arange(runs.repeats), -1)
    return runs.held_out & runs.trained[following], runs.held_out & runs.held_out[following]
