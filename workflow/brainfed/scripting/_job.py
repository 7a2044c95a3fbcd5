"""A job of this workflow: the runtime's, with the names and remedies of the rules.

A script reads:

    with job(snakemake, gpu=True) as running:
        from brainfed.methods.gcn.train import train_fedgcn  # torch is imported under the lease
        train_fedgcn(..., **running.params.settings, device=running.device)
        write_text(snakemake.output.timing, json.dumps(running.timing()))
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from brainfed.runtime.jobs import Job, SnakemakeScript, run_job
from brainfed.runtime.records import note_sources

# How to make the job of a rule smaller, for a job whose memory has run out.

FEATURES = "fewer features (`features: {selection: rfe, selected: 2000}`, or an atlas with fewer regions)"
REGIONS = "an atlas with fewer regions"
SHARDS = "more `shards` in the cohort, each with fewer subjects"

REMEDIES: Mapping[str, str] = {
    "simulate_scans": "a smaller `simulate.grid`, fewer volumes, or " + SHARDS,
    "extract_series": SHARDS + " (a single long scan needs its own size in any case)",
    "extract_runs": SHARDS + " (a single long scan needs its own size in any case)",
    "read_series": SHARDS,
    "read_measures": "FreeSurfer tables with fewer measures",
    "measure_scans": REGIONS,
    "relate_motion": REGIONS,
    "compute_morphometry": "FreeSurfer tables with fewer measures",
    "compute_connectivity": REGIONS,
    "compute_covariances": SHARDS,
    "compute_tangent": REGIONS,
    "fit_connectivity": REGIONS + "; `features.selected` does not help, the selection itself reads all features",
    "join_views": "fewer views, or " + REGIONS,
    "join_fitted_views": "fewer views, or " + REGIONS,
    "export_cohort": SHARDS,
    "build_connectomes": REGIONS,
    "build_fitted_connectomes": REGIONS,
    "join_series": REGIONS,
    "choose_public": "fewer subjects in the cohort",
    "read_graphs": "fewer data sets (`tudataset.names`)",
    "build_graph": FEATURES + ", or a smaller `graph.embedding_dimensions`",
    "train_generator": FEATURES + ", or fewer institutions (`split.count`), each of which has its own generator",
    "train_generator fedsage": FEATURES + ", a smaller `inpainting.fgen_width` or a smaller `inpainting.targets`",
    "fuse_graph": "a smaller `fusing.cap`, or " + FEATURES,
    "score_fidelity": "a smaller `fusing.cap`, or " + FEATURES,
    "train_method": FEATURES + ", smaller `hidden` layers where the method has them, or fewer institutions",
    "train_kept_method": FEATURES + ", smaller `hidden` layers where the method has them, or fewer institutions",
    "score_experiment": "fewer variants in the experiment, or fewer `split.repeats`",
    "score_institutions": "fewer variants in the experiment, or fewer `split.repeats`",
    "audit_experiment": "fewer variants in the experiment, or fewer `split.repeats`",
    "draw_": "fewer variants in the experiment",
    "follow_subjects": REGIONS + ", or fewer variants in the experiment",
    "write_report": "fewer experiments in the config",
}
"""Rule (also with the package of its entry point), or the beginning of its name -> how to make its job smaller."""


def smaller(rule: str, entry: str) -> str:
    """The remedy of a rule, or of one of its entry points (`module:function`, or empty).

    A workflow of which this one is a module may put words around the rule's name.
    """
    *_, package, _ = ("", "", *entry.split("."))
    named = [name for name in REMEDIES if name in (f"{rule} {package}", rule)]
    inside = [name for name in REMEDIES if name in f"{rule} {package}" or name in rule]
    name = max(named or inside, key=len, default="")
    return REMEDIES.get(name, "fewer subjects, or " + REGIONS)


note_sources()  # of all modules that follow


NAMING = ("variant", "inpainting", "fused")
"""Wildcards that distinguish the jobs with progress."""


def job(snakemake: SnakemakeScript, *, gpu: bool = False) -> AbstractContextManager[Job]:
    """Run the body as a job of the workflow; see `runtime.jobs.run_job`."""
    return run_job(snakemake, gpu=gpu, name_of=job_name, smaller=smaller)


def job_name(wildcards: Any) -> str:
    """The name of the job with these wildcards in lines of progress: `fedgcn, repeat 0`."""
    name = next((wildcards.get(kind) for kind in NAMING if wildcards.get(kind)), "")
    repeat, part = wildcards.get("repeat"), wildcards.get("part")
    further = [f"repeat {repeat}" if repeat else "", part if part != "all" else ""]
    return ", ".join(word for word in [name, *further] if word) if name else ""
