"""What gradients of single subjects cost beside the gradient of their mean, for FGLBC's networks.

    python benchmarks/per_sample_gradients.py [--regions 200] [--window 64] [--channels 8] [--strides 4,2,2]
        [--kernel 11] [--subjects 32] [--runs 9] [--threads 1] [--device cpu] [--no-importance]

A row a network and way: `plain` is forward and backward of the mean loss, `hooks` Opacus' GradSampleModule, `vmap`
torch.func.vmap(grad(functional_call)); `clipped` adds to `vmap` the norms of the subjects' gradients and the sum of
the clipped ones, which is all that private training needs of them. Milliseconds are the fastest of the runs, of the
processor with one CPU thread, else of the wall, and `times` their ratio to `plain`. MFLOP counts the products of
`plain` for one subject, and GFLOP/s is this work over each way's time. `apart` is the largest difference of the mean
of the subjects' gradients from that of `plain`, by the largest entry of a weight. Numbers are made up.
"""

import argparse
import warnings
from collections.abc import Callable
from functools import partial

import torch
from matrix_rate import clock_of, synchronise
from torch import Tensor
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from brainfed.models import STGCN, RegionGNN
from brainfed.runtime import Streams

Gradients = dict[str, Tensor]
CLIP = 1.0


def subjects(count: int, window: int, regions: int, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Windows, normalised adjacencies and labels."""
    generator = torch.Generator().manual_seed(0)
    series = torch.randn(count, window, regions, generator=generator)
    half = torch.rand(count, regions, regions, generator=generator)
    joined = half + half.mT
    scale = joined.sum(dim=2).rsqrt()
    labels = torch.randint(2, (count,), generator=generator)
    return series.to(device), (scale[:, :, None] * joined * scale[:, None]).to(device), labels.to(device)


def plain(network: torch.nn.Module, windows: Tensor, adjacency: Tensor, labels: Tensor) -> Gradients:
    """Of the mean loss."""
    weights = dict(network.named_parameters())
    loss = cross_entropy(network(windows, adjacency), labels)
    return dict(zip(weights, torch.autograd.grad(loss, list(weights.values())), strict=True))


def by_vmap(network: torch.nn.Module) -> Callable[[Tensor, Tensor, Tensor], Gradients]:
    """Of every subject's loss, (B, ...)."""
    weights = {name: weight.detach() for name, weight in network.named_parameters()}

    def loss(weights: Gradients, window: Tensor, adjacency: Tensor, label: Tensor) -> Tensor:
        logits = functional_call(network, weights, (window[None], adjacency[None]))
        return cross_entropy(logits, label[None])

    every = vmap(grad(loss), (None, 0, 0, 0))
    return lambda windows, adjacency, labels: every(weights, windows, adjacency, labels)


def by_hooks(network: torch.nn.Module) -> Callable[[Tensor, Tensor, Tensor], Gradients]:
    """The same by Opacus."""
    from opacus.grad_sample import GradSampleModule

    hooked = GradSampleModule(network, loss_reduction="mean")

    def gradients(windows: Tensor, adjacency: Tensor, labels: Tensor) -> Gradients:
        hooked.zero_grad()
        cross_entropy(hooked(windows, adjacency), labels).backward()
        return {name: weight.grad_sample for name, weight in network.named_parameters()}

    return gradients


def clipped_mean(every: Gradients) -> Gradients:
    """Mean of the subjects' gradients, each with a norm of at most `CLIP`."""
    norms = sum(each.flatten(1).square().sum(dim=1) for each in every.values()).sqrt()
    factors = (CLIP / norms.clamp(min=CLIP)) / len(norms)
    return {name: torch.tensordot(factors, each, dims=1) for name, each in every.items()}


def fastest(work: Callable[[], Gradients], runs: int, device: torch.device) -> tuple[float, Gradients]:
    """Milliseconds, and the gradients."""
    clock, laps, found = clock_of(device), [], work()
    for _ in range(runs):
        synchronise(device)
        since = clock()
        found = work()
        synchronise(device)
        laps.append(clock() - since)
    return 1e3 * min(laps), found


def apart(one: Gradients, other: Gradients) -> float:
    """Largest difference of an entry, by the largest entry of its weight."""
    return max(float((one[name] - other[name]).abs().max() / other[name].abs().max()) for name in one)


def measure(title: str, network: torch.nn.Module, arguments: argparse.Namespace) -> None:
    device = torch.device(arguments.device)
    network.start(Streams(0), 0)
    network.to(device)
    batch = subjects(arguments.subjects, arguments.window, arguments.regions, device)
    with FlopCounterMode(display=False) as counted:
        expected = plain(network, *batch)
    rate = counted.get_total_flops() / arguments.subjects / 1e6
    weights = sum(weight.numel() for weight in network.parameters())
    vmapped, basis = by_vmap(network), 0.0
    # Opacus' hooks last: they stay on the network.
    for way, gradients in {
        "plain": partial(plain, network),
        "vmap": vmapped,
        "clipped": lambda *batch: clipped_mean(vmapped(*batch)),
        "hooks": by_hooks,
    }.items():
        work = partial(gradients(network) if way == "hooks" else gradients, *batch)
        milliseconds, found = fastest(work, arguments.runs, device)
        basis = basis or milliseconds
        difference = ""
        if way in ("vmap", "hooks"):
            difference = f"{apart({name: each.mean(dim=0) for name, each in found.items()}, expected):.0e}"
        row = (title, f"{weights:,}", f"{rate:.1f}", way, f"{milliseconds:.1f}", f"{milliseconds / basis:.2f}")
        print(" | ".join((*row, f"{rate * arguments.subjects / milliseconds:.0f}", difference)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"regions": 200, "window": 64, "channels": 8, "kernel": 11, "subjects": 32, "runs": 9}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--strides", default="4,2,2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--no-importance", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.filterwarnings("ignore", message="Full backward hook")
    learnt, regions, channels = not arguments.no_importance, arguments.regions, arguments.channels
    strides = tuple(int(stride) for stride in arguments.strides.split(","))
    print("network | weights | MFLOP | way | ms | times | GFLOP/s | apart")
    network = STGCN(regions, 2, channels, arguments.kernel, strides, edge_importance=learnt)
    measure("ST-GCN", network, arguments)
    measure("RegionGNN", RegionGNN(regions, arguments.window, 2, channels, edge_importance=learnt), arguments)


if __name__ == "__main__":
    main()
