"""Exchanges between institutions and costs of a method, from the counts and timings of its jobs."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from brainfed.federation import OF_SUBJECTS, STAGES
from brainfed.reporting import ShownVariant, by_family, rounded
from brainfed.runtime import read_json

GPU_MEMORY = "peak_gpu_memory_mb"
"""Key in the `timing.json` of a job on a GPU."""


@dataclass(frozen=True)
class Crossing:
    """One kind of tensor that crossed institutions: a row of the ledger."""

    stage: str
    name: str
    direction: str
    to: str
    axes: str
    shape: str
    tensors: int
    bytes: int

    @property
    def patient_level(self) -> bool:
        """Whether it has entries of single patients: one of each, or those of all their graphs."""
        return not OF_SUBJECTS.isdisjoint(self.axes.split(" x "))


TOGETHER = "together"
"""Stage name of the sum over all stages of a variant."""

RECEIVERS = {"server": "a server", "centre": "one centre", "institutions": "the other institutions"}
"""Receivers of an upload."""


@dataclass(frozen=True)
class Exchange:
    """All crossings of one stage of one variant in one run, in the order recorded.

    Attributes:
        stage: `features`, `graph`, `inpainting` (training of its generator) or `classifier`.
        noise: standard deviation of the noise on uploads; None if the method has no such setting.
    """

    variant: ShownVariant
    stage: str
    crossings: tuple[Crossing, ...]
    noise: float | None

    @property
    def kinds(self) -> list[str]:
        """Names of the crossing tensors, grouped by part: `weight (3 tensors)`, `encoder (4 tensors)`."""
        names = dict.fromkeys(crossing.name for crossing in self.crossings)
        kinds = Counter(re.sub(r"([-_]\d+)?(\.\w+)*$", "", name) for name in names)
        return [kind if count == 1 else f"{kind} ({count} tensors)" for kind, count in kinds.items()]

    @property
    def patient_level(self) -> list[str]:
        """Names of the tensors with entries of single patients."""
        return list(dict.fromkeys(crossing.name for crossing in self.crossings if crossing.patient_level))

    @property
    def to(self) -> str:
        """Receivers of the uploads."""
        receivers = dict.fromkeys(crossing.to for crossing in self.crossings if crossing.direction == "upload")
        return " and ".join(RECEIVERS[receiver] for receiver in receivers)

    def volume(self, direction: str) -> int:
        """Bytes sent in one direction."""
        return sum(crossing.bytes for crossing in self.crossings if crossing.direction == direction)


@dataclass(frozen=True)
class Cost:
    """The cost of one variant, the mean over repeats (memory: the largest).

    Attributes:
        seconds: seconds of one repeat with all its folds.
        memory: peak in MiB over its jobs.
        gpu_memory: peak in MiB of a GPU; NaN without a GPU.
        counts: parameters, first_layer_operations and the like.
        inpainting_seconds: seconds of training the generator of a repeat; NaN without one.
        inpainting_counts: parameters, operations and the like of that generator.
        preparation: seconds a repeat of each earlier stage, by its name: `features`, `graph`, `fusing`.
    """

    variant: ShownVariant
    seconds: float
    memory: float
    gpu_memory: float
    devices: tuple[str, ...]
    counts: Mapping[str, int]
    inpainting_seconds: float
    inpainting_counts: Mapping[str, int]
    preparation: Mapping[str, float]

    @property
    def preparation_seconds(self) -> float:
        """Seconds a repeat of all earlier stages; NaN without any."""
        return sum(self.preparation.values()) if self.preparation else float("nan")

    @property
    def together(self) -> float:
        """Seconds a repeat of all stages."""
        inpainting = self.inpainting_seconds if self.inpainting_counts else 0
        return self.seconds + sum(self.preparation.values()) + inpainting

    @property
    def rounds(self) -> int:
        """Communication rounds of both phases; 0 for a method that does not federate."""
        federated = self.variant.family == "federated"
        return self.counts.get("rounds", 0) + self.inpainting_counts.get("rounds", 0) if federated else 0

    @property
    def operations(self) -> dict[str, int]:
        """Counted floating-point operations of all training steps, by phase."""
        phases = {
            "inpainting": self.inpainting_counts.get("operations"),
            "classifier": self.counts.get("first_layer_operations"),
        }
        return {phase: count for phase, count in phases.items() if count is not None}


def read_exchanges(variants: Sequence[ShownVariant]) -> list[Exchange]:
    """Exchanges of each stage in every variant's first repeat; every variant has a row of its classifier."""
    exchanges = []
    for variant in by_family(variants):
        crossings = read_crossings(variant.costs[0])
        if variant.fused:
            crossings += read_crossings(variant.inpainting["costs"][0])
        noise = {"inpainting": variant.setting("inpainting.noise"), "classifier": variant.settings.get("noise")}
        for stage in STAGES:
            rows = tuple(crossing for crossing in crossings if crossing.stage == stage)
            if rows or stage == "classifier" or (stage == "inpainting" and variant.fused):
                sd = noise.get(stage)
                exchanges.append(Exchange(variant, stage, rows, None if sd is None else float(sd)))
    return exchanges


def with_totals(exchanges: Sequence[Exchange]) -> list[Exchange]:
    """The same with a row `together` below each variant that sends at more than one stage."""
    of_variant: dict[str, list[Exchange]] = {}
    for exchange in exchanges:
        of_variant.setdefault(exchange.variant.name, []).append(exchange)
    for own in of_variant.values():
        if sum(bool(exchange.crossings) for exchange in own) > 1:
            crossings = tuple(crossing for exchange in own for crossing in exchange.crossings)
            own.append(Exchange(own[0].variant, TOGETHER, crossings, None))
    return [exchange for own in of_variant.values() for exchange in own]


def read_crossings(path: str) -> tuple[Crossing, ...]:
    """The ledger rows of a job."""
    names = [field.name for field in fields(Crossing)]
    return tuple(Crossing(*(row[name] for name in names)) for row in read_json(path)["crossings"])


def crossings_of(variant: ShownVariant) -> tuple[Crossing, ...]:
    """All rows of one run: those of the variant and of its generator."""
    ledgers = [*variant.costs[:1], *variant.inpainting.get("costs", [])[:1]]
    return tuple(crossing for path in ledgers for crossing in read_crossings(path))


def read_costs(variants: Sequence[ShownVariant]) -> list[Cost]:
    """Time, memory, device and counts of every variant."""
    costs = []
    for variant in by_family(variants):
        own = [read_json(path) for path in variant.timings]
        shared = [read_json(path) for path in variant.inpainting.get("timings", [])]
        prepared = {name: [read_json(path) for path in files] for name, files in variant.preparation.items() if files}
        everything = [*own, *shared, *(timing for timings in prepared.values() for timing in timings)]
        on_gpu = [float(timing[GPU_MEMORY]) for timing in everything if GPU_MEMORY in timing]
        costs.append(
            Cost(
                variant,
                seconds=_total(own) / len(own),
                memory=max(float(timing["peak_memory_mb"]) for timing in everything),
                gpu_memory=max(on_gpu, default=float("nan")),
                devices=tuple(sorted({str(timing["device"]) for timing in (*own, *shared)})),
                counts=read_json(variant.costs[0]).get("counts", {}),
                inpainting_seconds=_total(shared) / len(own) if shared else float("nan"),
                inpainting_counts=read_json(variant.inpainting["costs"][0]).get("counts", {}) if shared else {},
                preparation={name: _total(timings) / len(own) for name, timings in prepared.items()},
            )
        )
    return costs


def _total(timings: Sequence[Mapping[str, Any]]) -> float:
    return sum(float(timing["seconds"]) for timing in timings)


def readable(count: float, units: Sequence[str] = ("", " k", " M", " G", " T")) -> str:
    """A count with the unit that leaves one to three digits before the point: `474.6 k`."""
    step = 0
    while count >= 1000 and step < len(units) - 1:
        count, step = count / 1000, step + 1
    return f"{rounded(count, 1)}{units[step]}" if step else f"{rounded(count, 0)}{units[0]}"


def readable_bytes(count: int) -> str:
    """`56.7 MB`."""
    return readable(count, (" B", " kB", " MB", " GB", " TB"))


def readable_seconds(seconds: float) -> str:
    """`8.3 s`, `12 min 05 s`, `3 h 20 min`."""
    if seconds < 100:
        return f"{rounded(seconds, 1)} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
