"""What a generator of missing neighbours can know, and what a classifier makes of it.

    python benchmarks/known_to_a_generator.py [--config config/dose.yaml] [--cohort dose-100]

Reads a finished run of config/dose.yaml, in whose last cohort everybody of a group shares the diagnosis, and puts
other features into the places of FedNI's generated nodes (up to four a subject). Each row is one content with one kind
of edges: those of FedNI, or one to the parent alone, as strong as a real edge is on average. FedGCN is then trained as
the workflow does it. The cosine is that between a node and the mean of the parent's group in other institutions, which
is what the cut took away; the cohort's mean is removed from both.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import Ridge

from brainfed.configuration import load_plan, read_config
from brainfed.graphs import normalised_adjacency
from brainfed.inpainting import FusedGraph
from brainfed.methods.fedni import train as fedni
from brainfed.methods.gcn.declaration import FedGCNSettings
from brainfed.methods.gcn.train import train_fedgcn
from brainfed.runtime import Streams
from brainfed.runtime.jobs import Run
from brainfed.samples import MethodInputs, Outcome, assemble

VARIANT = "fedni-four-nodes"
PENALTY = 3000.0
"""Of the linear prediction; ten times more or less lowers the cosine."""

Features = NDArray[np.float64]


def accuracy(outcome: Outcome, inputs: MethodInputs, truth: NDArray[np.int64]) -> float:
    """Mean over institutions and folds."""
    right = (outcome.scores[..., 1] > 0.5) == truth
    cells = [
        right[fold, inputs.tested(fold) & (inputs.institution == institution)].mean()
        for fold in range(inputs.folds)
        for institution in range(len(inputs.institutions))
    ]
    return float(np.mean(cells))


def to_parents(inputs: MethodInputs, fused: FusedGraph) -> FusedGraph:
    """The same nodes, each joined to its parent alone."""
    graph, count = inputs.graphs[0], len(inputs.subjects)
    weight = graph.weight[graph.row != graph.column].mean()
    new = count + np.arange(len(fused.parent))
    row = np.concatenate([graph.row, new, fused.parent, new])
    column = np.concatenate([graph.column, fused.parent, new, new])
    edges = np.full(2 * len(new), weight)
    weights = np.concatenate([graph.weight, edges, np.ones(len(new))]).astype(np.float32)
    order = np.lexsort((column, row))
    return replace(fused, row=row[order], column=column[order], weight=weights[order])


def elsewhere(inputs: MethodInputs, group: NDArray[np.int64], subject: int) -> NDArray[np.int64]:
    """Positions of the subject's group in other institutions."""
    return np.flatnonzero((group == group[subject]) & (inputs.institution != inputs.institution[subject]))


def heard(inputs: MethodInputs, x: Features) -> Features:
    """(n, d) features as a graph convolution averages them over a subject and its visible neighbours."""
    graph = inputs.graphs[0]
    row, column, weight = normalised_adjacency(graph)
    return np.asarray(sparse.csr_matrix((weight, (row, column)), shape=(graph.nodes, graph.nodes)) @ x)


def contents(
    inputs: MethodInputs, fused: FusedGraph, group: NDArray[np.int64], random: np.random.Generator
) -> dict[str, Features]:
    """What stands in the generated nodes' places: name -> (g, d) centred features."""
    x = inputs.features[0] - inputs.features[0].mean(axis=0)
    graph, parent = inputs.graphs[0], fused.parent
    near = heard(inputs, x)
    known = graph.row != graph.column
    linear = Ridge(alpha=PENALTY).fit(x[graph.row[known]], x[graph.column[known]]).predict(near)
    patterns = np.stack([x[group == number].mean(axis=0) for number in np.unique(group)])
    unit = patterns / np.linalg.norm(patterns, axis=1, keepdims=True)
    alike = patterns[(near @ unit.T).argmax(axis=1)]
    away = [elsewhere(inputs, group, subject) for subject in range(len(group))]
    shared = np.stack([x[found].mean(axis=0) if len(found) else 0 * x[0] for found in away])
    one = np.array([random.choice(away[subject]) if len(away[subject]) else subject for subject in parent])
    foreign = [random.choice(np.flatnonzero(inputs.institution != inputs.institution[subject])) for subject in parent]
    return {
        "what FedNI generates": fused.features - inputs.features[0].mean(axis=0),
        "the parent and its visible neighbours, averaged": near[parent],
        "best linear guess of a neighbour, from all institutions": linear[parent],
        "pattern of the group that they resemble most": alike[parent],
        "mean of the parent's group elsewhere": shared[parent],
        "a member of the parent's group elsewhere": x[one],
        "anybody elsewhere": x[np.array(foreign)],
    }


def cosine(one: Features, other: Features) -> float:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    held = lengths > 0
    return float(((one * other).sum(axis=1)[held] / lengths[held]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="config/dose.yaml")
    parser.add_argument("--cohort", default="dose-100")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    plan = load_plan(read_config(Path(arguments.config)))
    experiment, folder = plan.experiments["dose"], Path("results") / arguments.cohort
    variant = plan.variant(experiment.regime.name, VARIANT)
    truth_file = json.loads((folder / "simulated" / "truth.json").read_text())
    group_of = {subject: number for number, held in enumerate(truth_file["groups"]) for subject in held}
    run = Run()
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    facts = []
    for repeat in range(experiment.repeats):
        part = f"repeat-{repeat}/all.safetensors"

        def read(graphs: list[Path], fused: list[Path], repeat: int = repeat) -> tuple[MethodInputs, NDArray[np.int64]]:
            return assemble(
                split=folder / "splits" / experiment.regime.split / f"repeat-{repeat}.parquet",
                participants=folder / "cohort" / "participants.parquet",
                features=[folder / "features" / variant.stages["features"].name / "all.safetensors"],
                graphs=graphs, fused=fused, labels="true", streams=Streams(plan.project.seed, repeat),
            )  # fmt: skip

        inputs, truth = read([folder / "graphs" / variant.stages["graph"].name / part], [])
        fused = read([], [folder / "fused" / variant.stages["fused"].name / part])[0].fused[0]
        group = np.array([group_of[subject] for subject in inputs.subjects])
        made = contents(inputs, fused, group, np.random.default_rng(repeat))
        target = made["mean of the parent's group elsewhere"]
        cut = accuracy(train_fedgcn(inputs, FedGCNSettings(), run), inputs, truth)
        rows.setdefault(("no new node (FedGCN)", ""), []).append((cut, np.nan))
        for name, features in made.items():
            for edges, shape in (("as FedNI", fused), ("parent", to_parents(inputs, fused))):
                whole = (features + inputs.features[0].mean(axis=0)).astype(np.float32)
                filled = replace(inputs, graphs=(), fused=(replace(shape, features=whole),))
                score = accuracy(fedni.train(filled, FedGCNSettings(), run), inputs, truth)
                rows.setdefault((name, edges), []).append((score, cosine(features, target)))
        facts.append(about(inputs, fused, group))
    print(f"{'content':56} {'edges':9} {'accuracy':>8} {'cosine':>7}")
    for (name, edges), found in rows.items():
        score, alike = np.mean(found, axis=0)
        print(f"{name:56} {edges:9} {score:8.3f} {'' if np.isnan(alike) else f'{alike:.2f}':>7}")
    for name in facts[0]:
        print(f"{name}: {np.mean([fact[name] for fact in facts]):.2f}")


def about(inputs: MethodInputs, fused: FusedGraph, group: NDArray[np.int64]) -> dict[str, float]:
    """Whom the generated nodes are, and whom they are joined to."""
    count, parent, phenotypes = len(group), fused.parent, inputs.phenotypes
    new = (fused.row >= count) & (fused.column < count)
    owner, other = parent[fused.row[new] - count], fused.column[new]
    others = owner != other
    graph = inputs.graphs[0]
    real = graph.row != graph.column
    x = inputs.features[0] - inputs.features[0].mean(axis=0)
    near = heard(inputs, x)
    away = [elsewhere(inputs, group, subject) for subject in range(count)]
    target = np.stack([x[found].mean(axis=0) if len(found) else 0 * x[0] for found in away])
    return {
        "generated nodes a subject": len(parent) / count,
        "visible neighbours a subject": real.sum() / count,
        "cosine of a subject itself": cosine(x, target),
        "cosine of a subject averaged with its visible neighbours": cosine(near, target),
        "nodes of their parent's sex": float((fused.sex == phenotypes.sex[parent]).mean()),
        "nodes within two years of their parent": float((np.abs(fused.age - phenotypes.age[parent]) <= 2).mean()),
        "other subjects that a node is joined to, of its group": float((group[owner] == group[other])[others].mean()),
        "real edges inside a group": float((group[graph.row] == group[graph.column])[real].mean()),
    }


if __name__ == "__main__":
    main()
