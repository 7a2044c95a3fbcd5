"""Memory that runs out, the machine's or a GPU's: the sentence names the setting that shrinks the job."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

import brainfed
from brainfed.runtime.errors import UserError
from brainfed.runtime.jobs.memory import is_out_of_memory, out_of_memory
from brainfed.scripting.remedies import REMEDIES, smaller

TOO_MUCH = 10**15


def message(error: Exception, rule: str, entry: str, *memory: float) -> str:
    return out_of_memory(error, rule, smaller(rule, entry), *memory)


CUDA = torch.OutOfMemoryError(
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.00 GiB is free."
)


def numpy_s() -> Exception:
    with pytest.raises(MemoryError) as raised:
        np.ones(TOO_MUCH)
    return raised.value


def torch_s() -> Exception:
    with pytest.raises(RuntimeError) as raised:
        torch.ones(TOO_MUCH)
    return raised.value


@pytest.mark.parametrize(
    "error",
    [numpy_s, torch_s, lambda: CUDA, MemoryError, lambda: RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED")],
)
def test_memory_that_ran_out_is_recognised_in_every_library(error) -> None:  # type: ignore[no-untyped-def]
    assert is_out_of_memory(error())


@pytest.mark.parametrize("error", [ValueError("shapes"), UserError("sub-01: no age."), RuntimeError("CUDA error: x")])
def test_other_errors_are_not_out_of_memory(error: Exception) -> None:
    assert not is_out_of_memory(error)


def test_on_the_cpu_the_sentence_names_the_memory_held_and_the_remedy() -> None:
    sentence = out_of_memory(
        numpy_s(), "train_method", smaller("train_method", "brainfed.methods.gcn.train:train_fedgcn"), 1234.5
    )
    assert sentence.startswith("train_method: memory has run out (Unable to allocate 7.11 PiB for an array")
    for part in (
        "this job held 1,23",
        "--set-resources train_method:mem_mb=",
        "`hidden`",
        "run the same command again",
    ):
        assert part in sentence


@pytest.mark.parametrize(("peak", "asked", "more"), [(1234.5, 0, 3000), (23_000.0, 24_000, 48_000), (10.0, 0, 2000)])
def test_the_advised_memory_is_more_than_the_job_had(peak: float, asked: int, more: int) -> None:
    sentence = message(numpy_s(), "fuse_graph", "", peak, asked)
    assert f"--set-resources fuse_graph:mem_mb={more})" in sentence


def test_on_a_gpu_the_sentence_offers_the_cpu() -> None:
    sentence = out_of_memory(
        CUDA, "train_generator", smaller("train_generator", "brainfed.inpainting.fedni.training:train"), 1.0
    )
    for part in (
        "(CUDA out of memory, Tried to allocate 2.00 GiB)",
        "`features: ",
        "`split.count`",
        "(BRAINFED_JOBS_PER_GPU)",
        "--resources gpu=0",
    ):
        assert part in sentence
    assert "mem_mb" not in sentence


def test_the_entry_point_decides_where_its_rule_runs_several() -> None:
    sage = out_of_memory(
        CUDA, "train_generator", smaller("train_generator", "brainfed.inpainting.fedsage.training:train"), 1.0
    )
    assert "`inpainting.fgen_width`" in sage and "split.count" not in sage


@pytest.mark.parametrize("rule", ["train_generator", "draw_forest", "write_report", "join_fitted_views"])
def test_a_rule_that_another_workflow_renames_keeps_its_remedy(rule: str) -> None:
    assert smaller(f"brainfed_{rule}_again", "") == smaller(rule, "") != smaller("other", "")


def test_every_rule_has_a_remedy() -> None:
    rules = Path(brainfed.__file__).parents[1] / "rules"
    text = "\n".join(path.read_text() for path in rules.glob("*.smk"))
    named = set(re.findall(r"^(?:rule|use rule \w+ as) (\w+)\b", text, re.MULTILINE))
    small = {
        "simulate_atlas",
        "simulate_participants",
        "simulate_thickness",
        "ingest_phenotypes",
        "ingest_columns",
        "measure_quality",
        "include_subjects",
        "list_issues",
        "models",
        "write_card",
        "split_subjects",
    }
    # Downloads hold one file at a time; export_bids stands for export_cohort of every cohort and has no job.
    rest = named - small - {"fetch_abide", "fetch_atlases", "fetch_tudatasets", "export_bids"}
    assert {rule for rule in rest if not rule.startswith("draw_")} <= set(REMEDIES)
    assert {key.split()[0] for key in REMEDIES} - named == {"simulate_scans", "draw_"}


@pytest.mark.parametrize("text", ["can't start new thread", "Unknown error: Failed to launch worker thread: no"])
def test_a_thread_that_cannot_be_started_is_said(text: str) -> None:
    error = RuntimeError(text)
    assert is_out_of_memory(error)
    sentence = out_of_memory(error, "train_method", "fewer data", 100.0)
    assert sentence.startswith(f"train_method: a thread could not be started ({text})")
    assert "run fewer jobs at once (--cores 1)" in sentence
