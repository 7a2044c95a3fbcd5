"""What population graphs and federated training cost as the number of subjects doubles.

    python benchmarks/scale.py graph [--subjects 3125 6250 12500 25000 50000] [--features 7381] [--threads 2]
        [--scope global] [--protocol transductive] [--plot FILE] [--folder FOLDER]
    python benchmarks/scale.py training [--rounds 2] [--local-epochs 10] [--folds 5] ...

`graph` runs the workflow's own script on files of a made-up cohort: reading, principal components, mean distance, the
k nearest, writing. `training` trains FedGCN on institutions of 500 subjects (`--institution`), whose features are read
from such a file. Every size is measured in a process of its own, from the first
import to the last write. CPU seconds are those of all threads together: other work on the machine lengthens the
seconds, hardly them; the plot shows them. Memory is the largest resident set, the pages of the features' file among it.
The share of the matrix rate is that of the first layer's products in training, set-up included, a CPU second for a CPU
second, against a large square product in the same process.
"""

import argparse
import json
import runpy
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

import brainfed
from brainfed.runtime.artefacts import read_arrays, write_arrays, write_table

SCRIPT = Path(brainfed.__file__).parents[1] / "scripts" / "build_graph.py"
SOURCES = 30
COLUMNS = {"graph": ("edges",), "training": ("GFLOP", "of matrix rate")}


def write_cohort(folder: Path, subjects: int, features: int, folds: int, institution_size: int) -> None:
    """Correlated features in (-1, 1), ages and sexes at random, institutions of equal size, five sites in each."""
    random = np.random.default_rng(0)
    ids = [f"s{number:06d}" for number in range(subjects)]
    sources = random.standard_normal((SOURCES, features), dtype=np.float32) / 10
    rows = np.empty((subjects, features), dtype=np.float32)
    for start in range(0, subjects, institution_size):
        block = rows[start : start + institution_size]
        strengths = random.standard_normal((len(block), SOURCES), dtype=np.float32)
        np.tanh(strengths @ sources + random.standard_normal(block.shape, dtype=np.float32) / 3, out=block)
    write_arrays(folder / "features.safetensors", {"features": rows}, {"subjects": ids})
    institution = np.arange(subjects) // institution_size
    split = {
        "subject": ids,
        "institution": [f"i{code:03d}" for code in institution],
        "fold": np.arange(subjects) % folds,
    }
    write_table(folder / "split.parquet", pd.DataFrame(split))
    people = {
        "subject": ids,
        "site": [f"site-{code}" for code in institution * 5 + np.arange(subjects) % 5],
        "age": np.round(random.uniform(18, 80, subjects), 1),
        "sex": np.where(random.integers(0, 2, subjects), "male", "female"),
        "diagnosis": random.integers(0, 2, subjects),
        "mean_fd": 0.1,
    }
    write_table(folder / "participants.parquet", pd.DataFrame(people))


def named(**values: Any) -> Any:
    """What Snakemake gives a script."""
    from snakemake.iocontainers import Namedlist

    return Namedlist(fromdict=values)


def build(folder: Path, arguments: argparse.Namespace, scope: str) -> int:
    """The graph by the workflow's script; its number of edges."""
    names = {name: str(folder / f"{name}.parquet") for name in ("split", "participants")}
    graph = folder / "graph.safetensors"
    params = {
        "settings": {"scope": scope}, "protocol": arguments.protocol, "seed": 0, "repeat": 0,
        "fold": 0 if arguments.protocol == "inductive" else -1, "threads": arguments.threads,
    }  # fmt: skip
    given = SimpleNamespace(
        input=named(features=str(folder / "features.safetensors"), **names), params=named(given=params),
        output=named(graph=str(graph), timing=str(folder / "timing.json")),
        log=[], resources=named(), scriptdir=str(SCRIPT.parent),
    )  # fmt: skip
    runpy.run_path(str(SCRIPT), init_globals={"snakemake": given})
    return len(read_arrays(graph, ["row"]).arrays["row"])


def train(folder: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """FedGCN as its job runs it; GFLOP of the first layer on the whole graph, and the CPU seconds of training."""
    import torch

    from brainfed.methods.gcn.fedgcn import FedGCNSettings
    from brainfed.methods.gcn.train import train_fedgcn
    from brainfed.runtime.jobs.run import Run
    from brainfed.runtime.streams import Streams
    from brainfed.samples.assemble import assemble

    torch.set_num_threads(arguments.threads)
    inputs, _ = assemble(
        split=folder / "split.parquet",
        participants=folder / "participants.parquet",
        features=[folder / "features.safetensors"],
        graphs=[folder / "graph.safetensors"],
        labels="true",
        streams=Streams(0),
    )
    settings = FedGCNSettings(
        rounds=arguments.rounds,
        local_epochs=arguments.local_epochs,
        batch=arguments.batch,
    )
    start = time.process_time()
    outcome = train_fedgcn(inputs, settings, Run(progress=lambda *_, **__: None))
    return outcome.counts["first_layer_operations"] / 1e9, time.process_time() - start


def matrix_work_a_second(size: int = 4096) -> float:
    """GFLOP of a large square product in a CPU second."""
    import torch

    left, right = (torch.randn(size, size) for _ in range(2))
    seconds = []
    for _ in range(4):
        start = time.process_time()
        torch.mm(left, right)
        seconds.append(time.process_time() - start)
    return 2 * size**3 / min(seconds) / 1e9


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """One size, in this process."""
    start = time.perf_counter()
    if arguments.what == "graph":
        told = {"edges": float(build(arguments.folder, arguments, arguments.scope))}
    else:
        work, cpu = train(arguments.folder, arguments)
        told = {"GFLOP": work}
    told |= {"seconds": time.perf_counter() - start, "CPU seconds": time.process_time(), "peak MiB": peak()}
    if arguments.what == "training":
        told["of matrix rate"] = work / cpu / matrix_work_a_second()
    return told


def peak() -> float:
    """MiB; not ru_maxrss, which starts at what the parent held."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def measured_apart(subjects: int, arguments: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        folder = Path(place)
        write_cohort(folder, subjects, arguments.features, arguments.folds, arguments.institution)
        if arguments.what == "training":
            call(["graph", "--scope", "local"], folder, arguments)
        return call([arguments.what, "--scope", arguments.scope], folder, arguments)


def call(what: list[str], folder: Path, arguments: argparse.Namespace) -> dict[str, float]:
    passed = ("threads", "protocol", "rounds", "local_epochs", "batch")
    options = [word for name in passed for word in (f"--{name.replace('_', '-')}", str(getattr(arguments, name)))]
    command = [sys.executable, __file__, *what, *options, "--folder", str(folder), "--here"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def draw(path: Path, rows: dict[int, dict[str, float]], what: str) -> None:
    """CPU seconds and memory over subjects, all axes logarithmic; a slope of one beside them."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator

    mpl.rcParams["svg.fonttype"] = "none"
    figure = Figure(figsize=(7, 3), layout="constrained")
    subjects = np.array(list(rows))
    for axes, name in zip(figure.subplots(1, 2), ("CPU seconds", "peak MiB"), strict=True):
        values = np.array([row[name] for row in rows.values()])
        axes.plot(subjects, values, marker="o")
        axes.plot(subjects, values[-1] * subjects / subjects[-1], color="grey", linestyle=":", label="proportional")
        axes.set(xscale="log", yscale="log", xlabel="subjects", ylabel=name)
        axes.set_xticks(subjects, [f"{count:,}" for count in subjects], fontsize=7)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.minorticks_off()
        axes.legend(frameon=False)
        axes.grid(alpha=0.3)
    figure.suptitle({"graph": "Population graph", "training": "FedGCN"}[what], fontsize=10)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["graph", "training"])
    parser.add_argument("--subjects", type=int, nargs="+", default=[3125, 6250, 12_500, 25_000, 50_000])
    parser.add_argument("--features", type=int, default=7381)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--scope", default="global", choices=["local", "global", "global_cut"])
    parser.add_argument("--protocol", default="transductive", choices=["transductive", "inductive"])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--local-epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=0)
    parser.add_argument("--institution", type=int, default=500, help="subjects of each")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--folder", type=Path, help="for the made-up files, 4 bytes a feature and subject")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(measure(arguments)))
        return
    names = ("seconds", "CPU seconds", "peak MiB", *COLUMNS[arguments.what])
    print(f"{arguments.what}, d = {arguments.features}, {arguments.threads} thread(s)")
    print(f"{'subjects':>9}", *(f"{name:>15}" for name in names))
    rows = {}
    for subjects in arguments.subjects:
        rows[subjects] = measured_apart(subjects, arguments)
        print(f"{subjects:9d}", *(f"{rows[subjects][name]:15.4g}" for name in names), flush=True)
    if arguments.plot:
        draw(arguments.plot, rows, arguments.what)


if __name__ == "__main__":
    main()
