"""Generated nodes: their number, their edges, and their effect on the scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from brainfed.reporting import Interval, PageTests, ShownVariant, rounded, significant
from brainfed.reporting.charts import over_people, sure
from brainfed.runtime import read_arrays, read_json

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
    nodes = []
    for variant in variants:
        if variant.fused:
            counted = [_count(path) for path in variant.fused]
            subjects, *means = (float(np.mean(column)) for column in zip(*counted, strict=True))
            nodes.append(GeneratedNodes(variant, round(subjects), *means))
    return nodes


def _count(path: str) -> tuple[float, ...]:
    """The numbers of `GeneratedNodes` of one fused graph, in its order."""
    arrays = read_arrays(path, ["row", "column", "parent", "count"]).arrays
    count, generated = arrays["count"], len(arrays["parent"])
    subjects = len(count)
    joined = (arrays["row"] < subjects) & (arrays["column"] >= subjects)
    reached = len(np.unique(arrays["row"][joined])) / subjects
    neighbours = int(joined.sum()) / generated if generated else 0.0
    return subjects, generated, float(count.mean()), float(count.std()), neighbours, reached


def count_sentences(generated: Sequence[GeneratedNodes], split: Mapping[str, Any]) -> list[str]:
    """Sentences on variants without generated nodes, with a limit that decides their number, or with too many."""
    said = []
    for nodes in generated:
        if nodes.variant.is_control:  # It shares the numbers of its generator.
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
    by_site = split["validation"] == "leave_one_site_out" or split["institutions"] == "sites"
    by_group = split["institutions"] == "site_groups"
    sites = "sites" if by_site else "groups of sites" if by_group else ""
    if sites and any(_is_scaled(nodes.variant) for nodes in generated):
        said.append(
            "The predicted numbers of missing neighbours tend to be too high here: they are scaled as if institutions "
            f"were drawn at random, but these are {sites}, whose subjects often have their neighbours inside."
        )
    return said


def _is_scaled(variant: ShownVariant) -> bool:
    """Whether a predicted number is scaled from the masks to the cut (`inpainting.fedni.drawing`)."""
    return (variant.setting("graph.scope"), variant.setting("inpainting.count")) == ("global_cut", "calibrated")


def effect_sentences(tests: PageTests) -> list[str]:
    """Effect of the generated nodes on the scores, against the same classifier without them and against controls."""
    by_name = {variant.name: variant for variant in tests.variants}
    others = [name for name in by_name if name not in (FEDNI, CENTROIDS) and controls_of(name, by_name)]
    centres = [name for name in (FEDNI, CENTROIDS, *others) if name in by_name]
    return [sentence for centre in centres for sentence in _effects_of(centre, by_name, tests)]


def _effects_of(centre: str, by_name: Mapping[str, ShownVariant], tests: PageTests) -> list[str]:
    roles = {WITHOUT: "the same classifier without them"} if WITHOUT in by_name else {}
    roles |= controls_of(centre, by_name)
    if not roles:
        return []
    by_metric = {metric: tests.differences(centre, list(roles), metric) for metric in METRICS}
    said = []
    for other, role in roles.items():
        parts = [
            f"{by_metric[metric][other][0].negated.as_difference()} in {title} ({_judged(by_metric[metric][other][1])})"
            for metric, title in METRICS.items()
        ]
        said.append(f"{by_name[centre].title} minus {by_name[other].title}, {role}: {' and '.join(parts)}.")
    counted = tests.counted(centre, list(roles), "auc")
    tested = any(np.isfinite(p) for _, p in by_metric["auc"].values())
    return [*said, f"p is Holm-corrected {counted}."] if tested and counted else said


def controls_of(centre: str, by_name: Mapping[str, ShownVariant]) -> dict[str, str]:
    """Variants with a replacement of the nodes of `centre`, all other settings equal -> the replacement.

    In the order of `CONTROLS`; empty for a variant that is a control itself.
    """
    own = by_name[centre]
    if own.is_control or own.setting("fusing.nodes") is None:
        return {}
    return {
        name: role
        for nodes, role in CONTROLS.items()
        for name, variant in by_name.items()
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


# Generated neighbours against the true ones that the cut removed, mean over repeats, with baselines.
#
# `inpainting._fidelity` defines the numbers. The true neighbours are known after a cut alone.

NORMAL_95 = 1.96
GENERATED_ROW = {"generated": "generated nodes"}
COSINES = GENERATED_ROW | {
    "mean_neighbour": "mean of the visible neighbours",
    "institution_mean": "mean of the institution",
    "parent": "the subject itself",
}
AGREEMENTS = GENERATED_ROW | {"parent": "the subject itself", "chance": "chance"}
EDGES = GENERATED_ROW | {"visible_neighbours": "the visible neighbours", "random": "drawn at random"}
MEASURES = {"cosine": COSINES, "centred": COSINES, "sex": AGREEMENTS, "age": AGREEMENTS, "edges": EDGES}
"""Measure -> what it is known of: the generated nodes, and baselines that know less, in words."""


@dataclass(frozen=True)
class ShownFidelity:
    """One variant's fidelity; intervals are of 95 %, from the standard error over subjects.

    Attributes:
        variant: whose.
        calibration: of the first repeat: (predicted number, true number) of subjects with about the same prediction.
        predicted, true, generated: mean number of missing neighbours a subject: predicted, true, and after the cap.
        ratio_predicted, ratio_generated: sum of predicted (generated) over the sum of true numbers.
        correlation: Spearman's correlation of predicted with true numbers.
        degree_correlation: the same for the number of visible neighbours, a baseline.
        parents: subjects with a generated neighbour, minimum over repeats.
        gain: generated minus the mean of the visible neighbours, centred cosine, paired by parent.
        measures: measure and row of `MEASURES` -> mean cosine with all true missing neighbours (`cosine`, `centred`),
            share that agrees (`sex`, `age`), or F1 without an interval (`edges`).
    """

    variant: ShownVariant
    calibration: tuple[tuple[float, Interval], ...]
    predicted: float
    true: float
    generated: float
    ratio_predicted: float
    ratio_generated: float
    correlation: float
    degree_correlation: float
    parents: int
    gain: Interval
    measures: Mapping[str, Mapping[str, Interval]]


@dataclass(frozen=True)
class FidelityRow:
    """One measure of one variant: generated nodes and baselines.

    Attributes:
        measure: name of the measure; higher is better.
        variant: the variant with the generated nodes.
        generated: value of the generated nodes.
        baselines: name -> value.
    """

    measure: str
    variant: ShownVariant
    generated: float
    baselines: dict[str, float]

    @property
    def verdict(self) -> str:
        """The strongest baseline with a mean as good or better, if any; a dash without a comparison."""
        if not np.isfinite(self.generated) or not any(np.isfinite(value) for value in self.baselines.values()):
            return "\u2013"
        above = {name: value for name, value in self.baselines.items() if value >= self.generated}
        if not above:
            return "above every baseline"
        return f"no better than: {max(above, key=lambda name: above[name])}"


def fidelity_rows(shown: Sequence[ShownFidelity]) -> list[FidelityRow]:
    """Every measure, inside it every variant."""
    counts, visible = "number missing: rank correlation", "number of visible neighbours"
    rows = [FidelityRow(counts, each.variant, each.correlation, {visible: each.degree_correlation}) for each in shown]
    for measure, title in (
        ("cosine", "features: cosine"),
        ("centred", "features: centred cosine"),
        ("sex", "sex that agrees (share)"),
        ("age", "age that agrees (share)"),
        ("edges", "recovered edges: F1"),
    ):
        for fidelity in shown:
            means = {row: each.mean for row, each in fidelity.measures[measure].items()}
            generated = means.pop("generated")
            known = {MEASURES[measure][row]: mean for row, mean in means.items() if np.isfinite(mean)}
            rows.append(FidelityRow(title, fidelity.variant, generated, known))
    return rows


def count_sentence(fidelity: ShownFidelity) -> str:
    """The number of missing neighbours, and the predicted and generated share."""
    return (
        f"{fidelity.variant.title}: of {rounded(fidelity.true, 2)} missing neighbours a subject "
        f"{rounded(fidelity.predicted, 2)} are predicted (ratio {rounded(fidelity.ratio_predicted, 2)}) and "
        f"{rounded(fidelity.generated, 2)} generated, after rounding and cap "
        f"(ratio {rounded(fidelity.ratio_generated, 2)})."
    )


def read_fidelity(variants: Sequence[ShownVariant]) -> list[ShownFidelity]:
    """The fidelity of every variant that has one."""
    return [_read_fidelity(variant) for variant in variants if variant.fidelity]


def _read_fidelity(variant: ShownVariant) -> ShownFidelity:
    repeats = [read_json(path) for path in variant.fidelity]
    counts, features, phenotypes = ([repeat[part] for repeat in repeats] for part in ("count", "feature", "phenotype"))
    measures = {
        **{name: {row: _measured([_cosine(repeat[name], row) for repeat in features]) for row in COSINES}
           for name in ("cosine", "centred")},
        **{name: {row: _measured([repeat[name][row] for repeat in phenotypes]) for row in AGREEMENTS}
           for name in ("sex", "age")},
        "edges": {row: sure(_mean([repeat["edges"][row]["f1"] for repeat in repeats])) for row in EDGES},
    }  # fmt: skip
    return ShownFidelity(
        variant=variant,
        calibration=tuple(
            (float(point["predicted"]), _around(float(point["true"]), _number(point["error"])))
            for point in counts[0]["calibration"]
        ),
        predicted=_mean([count["predicted_mean"] for count in counts]),
        true=_mean([count["true_mean"] for count in counts]),
        generated=_mean([count["generated_mean"] for count in counts]),
        ratio_predicted=_mean([count["ratio_predicted"] for count in counts]),
        ratio_generated=_mean([count["ratio_generated"] for count in counts]),
        correlation=_mean([count["predicted"]["spearman"] for count in counts]),
        degree_correlation=_mean([count["visible_degree"]["spearman"] for count in counts]),
        parents=min(repeat["parents"] for repeat in repeats),
        gain=_measured([repeat["centred"]["gains"]["mean_neighbour"]["to_all"] for repeat in features]),
        measures=measures,
    )


def _cosine(measure: dict[str, Any], row: str) -> dict[str, Any]:
    score = measure["generated"] if row == "generated" else measure["baselines"][row]
    return dict(score["to_all"])


def _measured(estimates: Sequence[dict[str, Any]]) -> Interval:
    """Mean over repeats; its error is the typical error of a repeat, since repeats share their subjects."""
    return _around(_mean([each["mean"] for each in estimates]), _mean([each["error"] for each in estimates]))


def _around(mean: float, error: float) -> Interval:
    return over_people(mean, mean - NORMAL_95 * error, mean + NORMAL_95 * error)


def _mean(values: Sequence[float | None]) -> float:
    """Mean of the defined values; NaN if there is none."""
    known = [number for number in map(_number, values) if np.isfinite(number)]
    return float(np.mean(known)) if known else float("nan")


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)
