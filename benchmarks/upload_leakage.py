"""How well a server that keeps the uploads of one institution can say whether one subject is in it.

    python benchmarks/upload_leakage.py [--models logistic st-gcn] [--epsilon 10 2] [--trials 300] [--batch 0]
        [--series ABIDE_FOLDER] [--subjects 24] [--regions 12] [--volumes 48] [--rounds 5] [--clip 1] [--delta 1e-5]
        [--seed 0]

Every trial trains from the same initial model with its own noise and draws, with the subject, with the worst case of
`canary.py` in its place, or without either. The server knows all else. Columns:

- `AUC`, with its interval: of the likelihood ratio at the models that the server sent (exact for `--batch 0`).
- `by means`: AUC of the uploads' product with the difference between the mean uploads of both worlds, over `--pairs`
  own trainings of the server.
- `TPR`: of the likelihood ratio at 1 % false positives; interval of Clopper and Pearson, or bootstrap's where wider.
- `epsilon found`: the trials refute all below, at 95 % confidence; `epsilon`: of the accountant, for these rounds.
- `AUC <=`, `TPR <=`: the largest that this epsilon and delta allow; `Gaussian`: AUC of the worst case by formula.

Before the table: the cosine between the subject's gradient and the difference of two uploads of the first round, with
and without it. Data are made up, or ABIDE's first subjects, every k-th region, first volumes (`timeseries.npz`,
`subjects.csv`).
"""

import argparse
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from canary import CANARIES, SUBJECT, WITHOUT, WORST, Institution, Server, uploads
from common_signal import read_series, z_scored
from graphs_speed import table
from numpy.typing import NDArray
from two_worlds import allowed_area, allowed_true_positives, area, epsilon_bound, gaussian_area, true_positives

from brainfed.federation import PrivateSchedule, epsilon_spent
from brainfed.graphs import correlation_adjacency
from brainfed.models import STGCN, LogisticRegression
from brainfed.runtime import Streams

LOGISTIC, ST_GCN = "logistic", "st-gcn"
RATES = {LOGISTIC: 0.5, ST_GCN: 0.1}
"""Learning rates."""
ST_GCN_SIZE = (4, 5, (4, 2))
"""Channels, kernel and strides."""
COLUMNS = (
    "model", "canary", "privacy", "rounds", "AUC", "by means", "TPR at 1 % FPR", "epsilon found", "epsilon",
    "AUC <=", "TPR <=", "Gaussian",
)  # fmt: skip
PAIR = (WITHOUT, SUBJECT)
WITHOUT_NOISE = 100
"""Most trials without noise, which hardly differ from each other."""
OWN, TRIALS = 1, 2
"""Seeds of the server's own trainings and of the trials, of which each has a repeat of its own."""


def made_up(subjects: int, regions: int, volumes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Z-scored series (n, T, R) with a common slow part a subject, and labels: of 1, the first regions go together."""
    random = np.random.default_rng(0)
    labels = np.arange(subjects) % 2
    mixing = random.standard_normal((6, regions)) / 2
    series = []
    for label in labels:
        own = mixing + 0.5 * random.standard_normal(mixing.shape)
        own[0, : regions // 3] += label
        drive = random.standard_normal((volumes, 6 + regions))
        series.append(z_scored((drive[:, :6] @ own + drive[:, 6:]).astype(np.float32)))
    return np.stack(series).astype(np.float32), labels


def abide(folder: Path, subjects: int, regions: int, volumes: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The same of the first subjects with so many volumes."""
    held, people = read_series(folder)
    series, labels = [], []
    for subject, label in zip(people["subject"], people["diagnosis"], strict=True):
        if len(held[subject]) >= volumes and len(series) < subjects:
            every = held[subject].shape[1] // regions
            series.append(z_scored(held[subject][:volumes, ::every][:, :regions]).astype(np.float32))
            labels.append(int(label))
    return np.stack(series), np.array(labels)


def institution(
    model: str, series: NDArray[np.float32], labels: NDArray[np.int64], schedule: PrivateSchedule
) -> Institution:
    """The institution; its canary has the median norm of the gradients at the start."""
    _, volumes, regions = series.shape
    upper = np.triu_indices(regions, 1)
    rows: tuple[torch.Tensor, ...]
    if model == LOGISTIC:
        rows = (torch.from_numpy(np.stack([(each.T @ each / volumes)[upper] for each in series])),)
    else:
        adjacency = np.stack([correlation_adjacency(each) for each in series])
        rows = (torch.from_numpy(series), torch.from_numpy(adjacency))

    def network() -> torch.nn.Module:
        made = LogisticRegression(len(upper[0]), 2) if model == LOGISTIC else STGCN(regions, 2, *ST_GCN_SIZE)
        made.start(Streams(0), 0)
        return made

    found = Institution(rows, torch.from_numpy(labels), network, schedule, 0)
    return replace(found, canary=found.typical())


def cosine(server: Server) -> float:
    """Between the subject's gradient at the start and the difference of the first uploads with and without it.

    The noise of the two is not the same.
    """
    own = server.institution
    first = [next(uploads(own.clients(world, Streams(OWN, at), server.direction))) for at, world in enumerate(PAIR)]
    gradient = own.gradients()[own.canary].double()
    return float(torch.cosine_similarity(first[1].total - first[0].total, gradient, dim=0))


def rows_of(name: str, server: Server, trials: int, pairs: int, seed: int = 0) -> Iterator[tuple[str, ...]]:
    """The rows of one model and privacy."""
    schedule = server.institution.schedule
    differences = server.mean_differences(pairs, OWN)
    found = {}
    for number, world in enumerate((WITHOUT, *CANARIES)):
        runs = [Streams(TRIALS + seed, number * trials + at) for at in range(trials)]
        found[world] = [
            np.stack(each) for each in zip(*(server.trial(world, one, differences) for one in runs), strict=True)
        ]
    for place, canary in enumerate(CANARIES):
        for rounds in sorted({1, schedule.rounds}):
            exact, means = (
                [found[world][part][:, :rounds, place].sum(axis=1) for world in (WITHOUT, canary)] for part in (0, 1)
            )
            steps = rounds * server.steps
            epsilon = epsilon_spent(server.multiplier, server.rate, steps, schedule.delta)
            auc, tpr = area(*exact), true_positives(*exact)
            known = canary == WORST and server.rate == 1 and server.multiplier
            yield (
                name,
                canary,
                server.institution.privacy,
                str(rounds),
                interval(*auc),
                f"{area(*means)[0]:.3f}",
                interval(*tpr),
                f"{epsilon_bound(*exact, schedule.delta):.2f}",
                f"{epsilon:.2f}",
                f"{allowed_area(epsilon, schedule.delta):.3f}",
                f"{float(allowed_true_positives(epsilon, schedule.delta)):.3f}",
                f"{gaussian_area(steps**0.5 / server.multiplier):.3f}" if known else "",
            )


def interval(value: float, low: float, high: float) -> str:
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(RATES), choices=list(RATES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[10.0, 2.0])
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--series", type=Path)
    parser.add_argument("--subjects", type=int, default=24)
    parser.add_argument("--regions", type=int, default=12)
    parser.add_argument("--volumes", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    size = (arguments.subjects, arguments.regions, arguments.volumes)
    series, labels = abide(arguments.series, *size) if arguments.series else made_up(*size)
    rows: list[tuple[str, ...]] = [COLUMNS]
    for model in arguments.models:
        for epsilon in (None, *arguments.epsilon):
            schedule = PrivateSchedule(
                privacy="none" if epsilon is None else "accountant",
                epsilon=epsilon or 1.0,
                delta=arguments.delta,
                clip=arguments.clip,
                rounds=arguments.rounds,
                batch=arguments.batch,
                learning_rate=RATES[model],
            )
            start = time.process_time()
            server = Server.of(institution(model, series, labels, schedule))
            norms = server.institution.gradients().norm(dim=1)
            print(
                f"{model}, {server.institution.privacy}: cosine {cosine(server):.6f}, gradients of the subject "
                f"{norms[server.institution.canary]:.2f}, of all {norms.min():.2f} to {norms.max():.2f}, noise "
                f"multiplier {server.multiplier:.3f}, rate {server.rate:.2f}, {server.steps} step(s) a round, "
                f"{server.direction.numel()} parameters",
                flush=True,
            )
            trials = arguments.trials if schedule.private else min(arguments.trials, WITHOUT_NOISE)
            for row in rows_of(model, server, trials, arguments.pairs, arguments.seed):
                rows.append(row)
                print(*row, sep=" | ", file=sys.stderr, flush=True)
            print(f"{time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    table(rows)


if __name__ == "__main__":
    main()
