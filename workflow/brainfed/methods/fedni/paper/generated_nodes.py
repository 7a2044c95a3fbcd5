"""Generated nodes: their number, their edges, and their effect on the scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brainfed.reporting.page_tests import PageTests
from brainfed.reporting.rounding import rounded
from brainfed.reporting.scored import significant
from brainfed.reporting.variants import ShownVariant
from brainfed.runtime.artefacts import read_arrays

METRICS = {"accuracy": "accuracy", "auc": "AUC"}
FEDNI, CENTROIDS = "fedni", "fedni-centroids"
WITHOUT = "fedgcn"
"""FedNI's classifier without new nodes."""
CONTROLS = {
    "random": "as many nodes drawn at random",
    "mean": "the institution's mean in place of each node",
    "shuffled": "the same nodes and edges, with features that trade places",
    "true": "the true missing neighbours in their place, an oracle that no federation has",
}
"""`fusing.nodes` -> the replacement of the generated nodes."""


@dataclass(frozen=True)
class GeneratedNodes:
    """Generated nodes of one variant, mean over its fused graphs.

    Attributes:
        variant: the variant with these nodes.
        subjects: subjects of one fused graph.
        generated: generated nodes of one fused graph.
        predicted: predicted number of missing neighbours a subject, before rounding and cap.
        predicted_sd: its standard deviation over subjects.
        neighbours: number of subjects that a generated node is joined to.
        reached: share of the subjects that receive from at least one generated node.
    """

    variant: ShownVariant
    subjects: int
    generated: float
    predicted: float
    predicted_sd: float
    neighbours: float
    reached: float

    @property
    def predicts(self) -> bool:
        """Whether a generator predicts the number of missing neighbours; the number of centroids is given."""
        return self.variant.setting("inpainting.count") is not None

    @property
    def each(self) -> float:
        """Generated nodes a subject."""
        return self.generated / self.subjects


def read_generated(variants: Sequence[ShownVariant]) -> list[GeneratedNodes]:
    """The generated nodes of every variant that is trained on fused graphs."""
    return [_read(variant) for variant in variants if variant.fused]


def _read(variant: ShownVariant) -> GeneratedNodes:
    counted = [_count(path) for path in variant.fused]
    subjects, *means = (float(np.mean(column)) for column in zip(*counted, strict=True))
    return GeneratedNodes(variant, round(subjects), *means)


def _count(path: str) -> tuple[float, ...]:
    arrays = read_arrays(path, ["row", "column", "parent", "count"]).arrays
    subjects, generated = len(arrays["count"]), len(arrays["parent"])
    joined = (arrays["row"] < subjects) & (arrays["column"] >= subjects)
    reached = len(np.unique(arrays["row"][joined])) / subjects
    neighbours = int(joined.sum()) / generated if generated else 0.0
    count = arrays["count"]
    return subjects, generated, float(count.mean()), float(count.std()), neighbours, reached


def count_sentences(generated: Sequence[GeneratedNodes], split: Mapping[str, Any]) -> list[str]:
    """Sentences on variants without generated nodes, with a limit that decides their number, or with too many.

    Args:
        generated: generated nodes of the variants; a control shares the numbers of its generator.
        split: the resolved settings of the experiment's split.
    """
    said = []
    for nodes in generated:
        if nodes.variant.is_control:
            continue
        title, predicted = nodes.variant.title, rounded(nodes.predicted, 2)
        if not nodes.predicts:
            if nodes.generated == 0:
                said.append(f"{title} has no new node: it trains on the population graph as it is.")
        elif nodes.generated == 0:
            said.append(
                f"{title} generates no node: it predicts {predicted} missing neighbours for a subject on average, so "
                "it trains on the population graph as it is."
            )
        elif nodes.each < nodes.predicted / 2:
            said.append(
                f"{title} predicts {predicted} missing neighbours for a subject and generates "
                f"{rounded(nodes.each, 2)}: a limit on the nodes decides their number, the prediction decides who gets "
                "them."
            )
    sites = _sites(split)
    if sites and any(_is_scaled(nodes.variant) for nodes in generated):
        said.append(
            "The predicted numbers of missing neighbours tend to be too high here: they are scaled as if institutions "
            f"were drawn at random, but these are {sites}, whose subjects often have their neighbours inside."
        )
    return said


def _sites(split: Mapping[str, Any]) -> str:
    """Name of institutions that are not drawn at random; empty for random ones."""
    if split["validation"] == "leave_one_site_out" or split["institutions"] == "sites":
        return "sites"
    return "groups of sites" if split["institutions"] == "site_groups" else ""


def _is_scaled(variant: ShownVariant) -> bool:
    """Whether a predicted number is scaled from the masks to the cut (`inpainting.fedni.count_scale`)."""
    return (variant.setting("graph.scope"), variant.setting("inpainting.count")) == ("global_cut", "calibrated")


def effect_sentences(tests: PageTests) -> list[str]:
    """Effect of the generated nodes on the scores, against the same classifier without them and against controls."""
    held = {variant.name: variant for variant in tests.variants}
    others = [name for name in held if name not in (FEDNI, CENTROIDS) and controls_of(name, held)]
    centres = [name for name in (FEDNI, CENTROIDS, *others) if name in held]
    return [sentence for centre in centres for sentence in _effects_of(centre, held, tests)]


def _effects_of(centre: str, held: Mapping[str, ShownVariant], tests: PageTests) -> list[str]:
    roles = {WITHOUT: "the same classifier without them"} if WITHOUT in held else {}
    roles |= controls_of(centre, held)
    if not roles:
        return []
    found = {metric: tests.differences(centre, list(roles), metric) for metric in METRICS}
    said = []
    for other, role in roles.items():
        parts = [
            f"{found[metric][other][0].negated.as_difference()} in {title} ({_judged(found[metric][other][1])})"
            for metric, title in METRICS.items()
        ]
        said.append(f"{held[centre].title} minus {held[other].title}, {role}: {' and '.join(parts)}.")
    counted = tests.counted(centre, list(roles), "auc")
    if not any(np.isfinite(p) for _, p in found["auc"].values()):
        return said
    return [*said, f"p is Holm-corrected {counted}."] if counted else said


def controls_of(centre: str, held: Mapping[str, ShownVariant]) -> dict[str, str]:
    """Variants with a replacement of the nodes of `centre`, all other settings equal -> the replacement.

    In the order of `CONTROLS`; empty for a variant that is a control itself.
    """
    own = held[centre]
    if own.is_control or own.setting("fusing.nodes") is None:
        return {}
    return {
        name: role
        for nodes, role in CONTROLS.items()
        for name, variant in held.items()
        if variant.setting("fusing.nodes") == nodes and _but_for_nodes(variant) == _but_for_nodes(own)
    }


def _but_for_nodes(variant: ShownVariant) -> tuple[object, ...]:
    """Method and settings without the kind of its nodes."""
    stages = {stage: dict(settings) for stage, settings in variant.stages.items()}
    stages.get("fusing", {}).pop("nodes", None)
    return variant.method, dict(variant.settings), stages


def _judged(p: float) -> str:
    if not np.isfinite(p):
        return "too few runs to be tested"
    return "significant" if significant(p) else "not significant"
