"""Three methods that nobody needs, in a copy of the workflow: for kinds of samples that no other run has."""

from pathlib import Path

from workflow.project import SIMULATE, Project, new_project

COHORT = "made-up.1"
"""A name that is more than letters."""
VARIANTS = {
    "both": {
        "method": "ridge",
        "features": {"views": {"connectome": {}, "thickness": {"kind": "morphometry", "standardise": True}}},
    },
    "fitted": {"method": "centroids", "features": {"connectivity": "tangent", "reference": "training"}},
    "half": {"method": "share", "weight": 0.5},
}
COMPARED = ["ridge-central", "quick", "centroids", "lags", "share", *VARIANTS]
QUICK = {"quick": {"method": "fedgcn", "rounds": 2, "local_epochs": 2}}
HEAD = """
from dataclasses import dataclass

from brainfed.methods import Method
from brainfed.runtime import setting
"""
DECLARATION = """

@dataclass(frozen=True)
class {title}Settings:
    \"\"\"Settings of a factor.\"\"\"

    weight: float = setting(1.0, "Factor of all margins.")


{title} = Method(
    name="{name}", title="{title}", settings={title}Settings,
    entry="brainfed.methods.throwaway.train_{name}:train", family="baseline", topology="central", needs={needs},
    variants={{"{name}": {{}}}},
)
"""
NEEDS = {"centroids": ("connectomes",), "lags": ("series",), "share": ("series", "public")}
IMPORTS = """
import numpy as np

from brainfed.graphs import correlation_adjacency
from brainfed.samples import Outcome, of_two_classes, test_offsets, training_offset, window, wrapped
"""
CENTRES = """

def by_centres(inputs, features, fold):
    ones, noughts = (features[inputs.labels[fold] == label].mean(axis=0) for label in (1, 0))
    return ((features - (ones + noughts) / 2) @ (ones - noughts))[inputs.tested(fold)]
"""
TRAINING = {
    "centroids": """
def train(inputs, settings, run):
    scores = np.full(inputs.labels.shape, np.nan)
    for fold in range(inputs.folds):
        graphs = inputs.fold_graphs(fold)
        graph = np.repeat(np.arange(len(graphs)), np.diff(graphs.edge_start))
        strength = np.zeros((len(graphs), int(np.diff(graphs.node_start).max())))
        np.add.at(strength, (graph, graphs.target), graphs.weight)
        scores[fold, inputs.tested(fold)] = by_centres(inputs, strength, fold)
    return Outcome(of_two_classes(scores, "margin"), "margin")
""",
    "lags": """
def train(inputs, settings, run):
    scores = np.full(inputs.labels.shape, np.nan)
    rows = []
    for number, subject in enumerate(inputs.subjects):
        series = inputs.subject(number)
        offset = training_offset(inputs.streams, len(series), 64, subject)
        windows = [window(series, 64, start) for start in (offset, *test_offsets(len(series), 64))]
        rows.append(np.mean([correlation_adjacency(held).ravel() for held in windows], axis=0))
    for fold in range(inputs.folds):
        scores[fold, inputs.tested(fold)] = by_centres(inputs, np.stack(rows), fold)
    return Outcome(of_two_classes(scores, "margin"), "margin", counts={"wrapped": wrapped(inputs.lengths, 64)})
""",
    "share": """
def train(inputs, settings, run):
    scores = np.full(inputs.labels.shape, np.nan)
    counts = {}
    for fold in range(inputs.folds):
        public = inputs.public_training(fold)
        scores[fold, inputs.tested(fold)] = settings.weight * inputs.labels[fold, public].mean()
        counts[f"public-{fold}"] = len(public)
        for code in range(len(inputs.institutions)):
            counts[f"private-{fold}-{code}"] = len(inputs.private_training(fold, code))
    return Outcome(of_two_classes(scores, "margin"), "margin", counts=counts)
""",
}


def with_added_methods(folder: Path) -> Project:
    """A project of a simulated cohort with the three methods, not yet run."""
    project = new_project(folder, subjects=0)
    project.own_workflow()
    room = project.folder / "workflow/brainfed/methods/throwaway"
    room.mkdir()
    (room / "__init__.py").touch()
    declared = [DECLARATION.format(name=name, title=name.title(), needs=needs) for name, needs in NEEDS.items()]
    (room / "declaration.py").write_text(HEAD + "".join(declared))
    for name in NEEDS:
        (room / f"train_{name}.py").write_text(IMPORTS + CENTRES + TRAINING[name])
    configure(project)
    return project


def configure(project: Project, *, ratio: float = 0.3, subjects: int = 24, **settings: object) -> None:
    """All variants; `ratio` of public subjects is that of `share`, and `half` has the default."""
    simulated = SIMULATE | {"subjects": subjects, "thickness_regions": 10}
    project.configure(
        cohorts={COHORT: {"source": "simulate", "atlas": "twenty", "shards": 2, "simulate": simulated}},
        variants=QUICK | VARIANTS | {"share": {"method": "share", "public": {"ratio": ratio}}},
        experiments={"methods": {"variants": COMPARED, "reference": "ridge-central"}},
        **settings,
    )
