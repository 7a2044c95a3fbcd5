"""Rounds of FedMLP and FedGCN in Flower's simulation engine, and ours, on one fold.

The clients are those of the loop of PyTorch and PyG, on workers of Ray that keep their data from round to round, one
thread a worker and as many workers as threads. Flower's seconds are those of its strategy, after Ray has started and
the workers have loaded and scaled their data; ours have the scaling in them. Flower's clients also score their test
subjects in every round, as ours do; the probabilities of the last model are compared.
"""

import logging
import os
import pickle
import tempfile
import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch

from brainfed.samples import UNTESTED, MethodInputs
from peers.classifiers import EXACT, TOLERANCE, by_brainfed, cohort, settings_of
from peers.comparison import TIMES, Comparison, Result, agreed, compared, named, timed
from peers.institution import Institution, State, TorchGCN, TorchMLP, institution_of, network_of

# Read when the two are imported.
os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

client = ClientApp()


def flower(quick: bool, threads: int, *, graph: bool) -> Comparison:
    """One fold by Flower and by ours."""
    inputs, rounds = cohort(quick)
    inputs = replace(inputs, fold=np.where(inputs.fold == 0, 0, UNTESTED), labels=inputs.labels[:1])
    name = f"{'FedGCN' if graph else 'FedMLP'}, one fold"

    def ours(dtype: torch.dtype = torch.float32) -> Result:
        return by_brainfed(inputs, rounds, graph=graph, dtype=dtype)[-1]

    trained = _simulated(inputs, rounds, threads, graph=graph)
    exact = agreed(f"{name} in float64", trained[torch.float64][0], ours(torch.float64), EXACT)
    shape = f"{len(inputs.subjects)} subjects, {inputs.features[0].shape[1]:,} features"
    work = f"{shape}, {rounds} rounds of {settings_of(rounds, graph=graph).local_epochs} epochs: last probabilities"
    peer = f"{named('flwr', 'ray')} (simulation, without its start)"
    found = compared(name, peer, work, lambda: trained[torch.float32], timed(ours), TOLERANCE, exact)
    # Its memory is in Ray's processes.
    return replace(found, their_peak=float("nan"))


def _simulated(
    inputs: MethodInputs, rounds: int, threads: int, *, graph: bool
) -> dict[torch.dtype, tuple[Result, float]]:
    """By number format, (1, n) probabilities of the last model and the least seconds of all rounds."""
    logging.getLogger("flwr").setLevel(logging.ERROR)
    trained: dict[torch.dtype, tuple[State, float]] = {}
    server = ServerApp()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.pickle"
        path.write_bytes(pickle.dumps(inputs))

        @server.main()
        def main(grid: Grid, _context: Context) -> None:
            # The workers import and load in the first rounds, which do not count.
            for dtype, times in ((torch.float64, 1), (torch.float32, 1 + TIMES)):
                runs = [_rounds(grid, path, inputs, rounds, graph=graph, dtype=dtype) for _ in range(times)]
                trained[dtype] = runs[-1][0], min(seconds for _, seconds in runs)

        backend = {
            "init_args": {"num_cpus": threads, "logging_level": logging.ERROR, "log_to_driver": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        }
        run_simulation(server, client, len(inputs.institutions), backend_config=backend)
    return {
        dtype: (_scores(state, inputs, graph=graph, dtype=dtype), seconds)
        for dtype, (state, seconds) in trained.items()
    }


def _rounds(
    grid: Grid, path: Path, inputs: MethodInputs, rounds: int, *, graph: bool, dtype: torch.dtype
) -> tuple[State, float]:
    """The model after all rounds, and their seconds."""
    settings, everybody = settings_of(rounds, graph=graph), len(inputs.institutions)
    config = {"path": str(path), "graph": graph, "double": dtype == torch.float64}
    config |= {"epochs": settings.local_epochs, "learning-rate": settings.learning_rate}
    begin = ArrayRecord(network_of(inputs, graph=graph, fold=0, dtype=dtype).state_dict())
    strategy = FedAvg(min_train_nodes=everybody, min_evaluate_nodes=everybody, min_available_nodes=everybody)
    records = {"train_config": ConfigRecord(config), "evaluate_config": ConfigRecord(config)}
    start = time.perf_counter()
    result = strategy.start(grid, begin, rounds, **records)
    return result.arrays.to_torch_state_dict(), time.perf_counter() - start


def _scores(state: State, inputs: MethodInputs, *, graph: bool, dtype: torch.dtype) -> Result:
    """(1, n) probabilities of the tested subjects."""
    network, scores = network_of(inputs, graph=graph, fold=0, dtype=dtype), np.full((1, len(inputs.subjects)), np.nan)
    network.load_state_dict(state)
    for code in range(len(inputs.institutions)):
        place = institution_of(inputs, code, 0, graph=graph, dtype=dtype)
        scores[0, place.subjects] = place.probabilities(network)
    return scores


@client.train()
def train(message: Message, context: Context) -> Message:
    """Local epochs from the model that was sent."""
    place, network, config = _held(message, context)
    place.train(network, config["epochs"], config["learning-rate"])
    metrics = MetricRecord({"num-examples": len(place.labels)})
    content = RecordDict({"arrays": ArrayRecord(network.state_dict()), "metrics": metrics})
    return Message(content, reply_to=message)


@client.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Mean probability of the tested subjects under the model that was sent."""
    place, network, _ = _held(message, context)
    found = place.probabilities(network)
    metrics = MetricRecord({"num-examples": len(found), "probability": float(found.mean())})
    return Message(RecordDict({"metrics": metrics}), reply_to=message)


def _held(message: Message, context: Context) -> tuple[Institution, TorchMLP | TorchGCN, ConfigRecord]:
    """What a worker keeps of an institution, with the weights of a message."""
    config = message.content["config"]
    dtype = torch.float64 if config["double"] else torch.float32
    place, network = _loaded(config["path"], context.node_config["partition-id"], config["graph"], dtype)
    network.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return place, network, config


@lru_cache
def _loaded(path: str, code: int, graph: bool, dtype: torch.dtype) -> tuple[Institution, TorchMLP | TorchGCN]:
    inputs = pickle.loads(Path(path).read_bytes())
    network = network_of(inputs, graph=graph, fold=0, dtype=dtype)
    return institution_of(inputs, code, 0, graph=graph, dtype=dtype), network
