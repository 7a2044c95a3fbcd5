"""Memory that has run out: how it is recognised, and the settings that make a job smaller.

The kernel's own OOM killer sends SIGKILL, which a job cannot report; SLURM then reports OUT_OF_MEMORY.
"""

import math
import re
from collections.abc import Mapping

from brainfed.runtime.devices.slots import JOBS_PER_GPU

PHRASES = (
    "can't allocate memory",  # torch on the CPU
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Cannot allocate memory",
)
CUDA = re.compile(r"\b(CUDA|CUBLAS|CUDNN)")

FEATURES = "fewer features (`features: {selection: rfe, selected: 2000}`, or an atlas with fewer regions)"
REGIONS = "an atlas with fewer regions"
SHARDS = "more `shards` in the cohort, each with fewer subjects"

SMALLER: Mapping[str, str] = {
    "simulate_scans": "a smaller `simulate.grid`, fewer volumes, or " + SHARDS,
    "extract_series": SHARDS + " (a single long scan needs its own size in any case)",
    "extract_runs": SHARDS + " (a single long scan needs its own size in any case)",
    "read_series": SHARDS,
    "read_measures": "FreeSurfer tables with fewer measures",
    "measure_quality": REGIONS,
    "relate_motion": REGIONS,
    "compute_morphometry": "FreeSurfer tables with fewer measures",
    "compute_connectivity": REGIONS,
    "fit_connectivity": REGIONS + "; `features.selected` does not help, the selection itself reads all features",
    "export_cohort": SHARDS,
    "build_graph": FEATURES + ", or a smaller `graph.embedding_dimensions`",
    "train_generator": FEATURES + ", or fewer institutions (`split.count`), each of which has its own generator",
    "train_generator fedsage": FEATURES + ", a smaller `inpainting.fgen_width` or a smaller `inpainting.targets`",
    "fuse_graph": "a smaller `fusing.cap`, or " + FEATURES,
    "score_fidelity": "a smaller `fusing.cap`, or " + FEATURES,
    "train_method": FEATURES + ", smaller `hidden` layers where the method has them, or fewer institutions",
    "score_experiment": "fewer variants in the experiment, or fewer `split.repeats`",
    "draw_": "fewer variants in the experiment",
    "write_report": "fewer experiments in the config",
}
"""Rule (also with the package of its entry point), or the beginning of its name -> how to make its job smaller."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception means that memory, the machine's or a GPU's, has run out."""
    return isinstance(error, MemoryError) or any(phrase in str(error) for phrase in PHRASES)


def out_of_memory(error: BaseException, rule: str, entry: str, peak: float, asked: int = 0) -> str:
    """The sentence about a job that did not fit.

    Args:
        error: what was raised.
        rule: the rule's name.
        entry: the training entry point that it calls, or empty.
        peak: its largest resident memory, MiB.
        asked: the `mem_mb` that it asked for; 0 where none is known.
    """
    smaller, words = _smaller(rule, entry), _first_words(error)
    if type(error).__name__ == "OutOfMemoryError" or CUDA.search(str(error)):
        return (
            f"{rule}: the GPU's memory has run out ({words}); make the job smaller by {smaller}, "
            f"let fewer jobs share a GPU ({JOBS_PER_GPU}), or run it on the CPU (--resources gpu=0), then run the same "
            "command again: it goes on from what is finished."
        )
    more = math.ceil(2 * max(asked, peak, 1000) / 1000) * 1000
    return (
        f"{rule}: memory has run out ({words}; this job held {peak:,.0f} MiB at most); run fewer jobs at once "
        "(--cores 1, or a limit for all of them together, in MB: --resources gpu=N mem_mb=N), give the job more where "
        f"a cluster limits it (--set-resources {rule}:mem_mb={more}), or make it smaller by {smaller}, then run the "
        "same command again: it goes on from what is finished."
    )


def _smaller(rule: str, entry: str) -> str:
    *_, room, _ = ("", "", *entry.split("."))
    named = SMALLER.get(f"{rule} {room}") or SMALLER.get(rule)
    begins = (remedy for beginning, remedy in SMALLER.items() if rule.startswith(beginning))
    return named or next(begins, "fewer subjects, or " + REGIONS)


def _first_words(error: BaseException) -> str:
    """The library's first two sentences, which name the amount that it asked for."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return ", ".join(first.split(". ")[:2]).rstrip(".")[:200]
