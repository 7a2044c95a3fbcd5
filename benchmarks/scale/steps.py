"""Connectivity, population graph and training, as the workflow's jobs run them.

Each step imports what it needs, notes what the process costs so far, and works on the files of a folder.
"""

import runpy
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import brainfed
from brainfed.runtime import read_arrays
from scale.process import Costs, before_work
from scale.work import Work

SCRIPTS = Path(brainfed.__file__).parents[1] / "scripts"


def compute_connectivity(folder: Path, work: Work) -> Costs:
    """Pearson correlations of the made-up series."""
    from brainfed.imaging import connectivity  # noqa: F401

    found = before_work()
    files = {"series": [str(folder / "series.safetensors")], "quality": [str(folder / "quality.parquet")]}
    given = {"settings": {}, "by_run": False, "threads": work.threads}
    _run("compute_connectivity", files, given, {"features": str(folder / "features.safetensors")})
    return found


def build_graph(folder: Path, work: Work) -> Costs:
    """The population graph; also its number of edges, in both directions."""
    from brainfed.cohort.splits import training_labels  # noqa: F401
    from brainfed.graphs import build_graph, known_phenotypes  # noqa: F401

    found = before_work()
    files = {name: str(folder / f"{name}.parquet") for name in ("split", "participants")}
    given = {
        "settings": {"scope": work.scope}, "protocol": work.protocol, "seed": 0, "repeat": 0,
        "fold": 0 if work.protocol == "inductive" else -1, "threads": work.threads,
    }  # fmt: skip
    graph = folder / "graph.safetensors"
    _run(
        "build_graph",
        {"features": str(folder / "features.safetensors"), **files},
        given,
        {"graph": str(graph), "timing": str(folder / "timing.json")},
    )
    return found | {"edges": float(len(read_arrays(graph, ["row"]).arrays["row"]))}


def train(folder: Path, work: Work) -> Costs:
    """FedGCN on the edges inside institutions; also the GFLOP of its first layer and the CPU seconds of training."""
    import torch

    from brainfed.methods.gcn.declaration import FedGCNSettings
    from brainfed.methods.gcn.train import train_fedgcn
    from brainfed.runtime import Streams
    from brainfed.runtime.jobs import Run
    from brainfed.samples import assemble

    torch.set_num_threads(work.threads)
    found = before_work()
    inputs, _ = assemble(
        split=folder / "split.parquet",
        participants=folder / "participants.parquet",
        features=[folder / "features.safetensors"],
        graphs=[folder / "graph.safetensors"],
        labels="true",
        streams=Streams(0),
    )
    start = time.process_time()
    settings = FedGCNSettings(rounds=work.rounds, local_epochs=work.local_epochs)
    outcome = train_fedgcn(inputs, settings, Run(progress=lambda *_, **__: None))
    spent = time.process_time() - start
    return found | {"GFLOP": outcome.counts["first_layer_operations"] / 1e9, "training CPU seconds": spent}


def _run(script: str, files: Mapping[str, Any], given: Mapping[str, Any], output: Mapping[str, str]) -> None:
    """Run a script of the workflow as Snakemake does."""
    from snakemake.iocontainers import Namedlist

    named = {"input": Namedlist(fromdict=files), "output": Namedlist(fromdict=output)}
    params, resources = Namedlist(fromdict={"given": given}), Namedlist(fromdict={})
    job = SimpleNamespace(**named, params=params, resources=resources, log=[], scriptdir=str(SCRIPTS))
    runpy.run_path(str(SCRIPTS / f"{script}.py"), init_globals={"snakemake": job})


STEPS: Mapping[str, Callable[[Path, Work], Costs]] = {
    "connectivity": compute_connectivity,
    "graph": build_graph,
    "training": train,
}
