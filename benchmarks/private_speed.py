"""Seconds of local epochs with privacy and without, on one made-up institution: the price of a gradient a subject.

`--threads 1` measures processor time. Regions, window, channels and strides are those of the networks on region series.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import torch

from brainfed.engines.private import PrivateClients, PrivateCohort
from brainfed.federation import PrivateSchedule
from brainfed.models import MLP, STGCN, LogisticRegression, RegionGNN
from brainfed.runtime import Streams

EPOCHS = 3


def main() -> None:
    given = arguments()
    torch.set_num_threads(given.threads)
    warnings.simplefilter("ignore")
    regions, window, channels = given.regions, given.window, given.channels
    strides = tuple(given.strides)
    features = torch.randn(given.subjects, given.features)
    series, adjacency = torch.randn(given.subjects, window, regions), connectomes(given.subjects, regions)
    networks: dict[str, tuple[Callable[[], torch.nn.Module], tuple[torch.Tensor, ...]]] = {
        "logistic regression": (lambda: LogisticRegression(given.features, 2), (features,)),
        "perceptron": (lambda: MLP(given.features, (64, 32), 2), (features,)),
        "ST-GCN": (lambda: STGCN(regions, 2, channels, 11, strides), (series, adjacency)),
        "region GNN": (lambda: RegionGNN(regions, window, 2), (series, adjacency)),
    }
    print(f"{'network':<20}{'optimiser':>10}{'plain':>9}{'private':>9}{'ratio':>7}  seconds an epoch")
    for name, (network, data) in networks.items():
        for optimiser in ("sgd", "adam"):
            plain, private = (seconds(network(), data, given, optimiser, each) for each in ("none", "classical"))
            print(f"{name:<20}{optimiser:>10}{plain:>9.3f}{private:>9.3f}{private / plain:>7.2f}", flush=True)


def connectomes(subjects: int, regions: int) -> torch.Tensor:
    """(n, R, R) symmetric, with rows of sum near one."""
    drawn = torch.rand(subjects, regions, regions)
    return (drawn + drawn.mT) / regions


def seconds(
    network: torch.nn.Module, data: tuple[torch.Tensor, ...], given: argparse.Namespace, optimiser: str, privacy: str
) -> float:
    """The fastest of a few local epochs."""
    network.start(Streams(0), 0)
    labels = torch.arange(given.subjects)[None, None] % 2
    cohort = PrivateCohort(
        lambda _place, _fold, samples, _moment: tuple(each[samples] for each in data),
        labels,
        [given.subjects],
        (0,),
        2,
        block=given.block,
    )
    schedule = PrivateSchedule(privacy, rounds=EPOCHS + 1, batch=given.batch, optimiser=optimiser, learning_rate=1e-3)
    names = [name.replace("_", "-") for name, _ in network.named_parameters()]
    clients = PrivateClients([[network]], cohort, schedule, Streams(0), names)
    clock = time.process_time if given.threads == 1 else time.perf_counter
    found = []
    for number in range(EPOCHS + 1):
        start = clock()
        clients.fit(number, (0,))
        stop = clock()
        found.append(stop - start)
    return min(found[1:])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--features", type=int, default=19_900)
    parser.add_argument("--regions", type=int, default=111)
    parser.add_argument("--window", type=int, default=128)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--strides", type=int, nargs="+", default=[4, 2, 1])
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
