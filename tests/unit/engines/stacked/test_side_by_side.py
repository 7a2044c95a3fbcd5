"""Folds that train in parallel: what fits, and the same at all sites of a study."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from brainfed.engines.stacked import side_by_side
from brainfed.engines.stacked.side_by_side import stacks_of_folds
from brainfed.models.mlp import MLP
from support.samples.method_inputs import method_inputs

FEATURES, FOLDS = 50, 6


def stacks(subjects, *, apart):
    inputs = method_inputs(subjects, FEATURES, folds=FOLDS)
    by_fold = replace(inputs, features=np.repeat(inputs.features[:1], FOLDS, axis=0))
    placed = replace(by_fold, link=SimpleNamespace(apart=apart))
    return stacks_of_folds(MLP(FEATURES, (8, 4), 2), placed, torch.float32, pooled=False)


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    monkeypatch.setattr(side_by_side, "STACK_BYTES", 120_000)


def test_groups_of_folds_are_smaller_where_there_are_more_subjects():
    assert len(stacks(60, apart=False)) < len(stacks(600, apart=False))


def test_sites_of_different_sizes_have_the_same_groups():
    """Their initial tensors have a fold's axis, and the coordinator refuses a site whose shapes differ."""
    assert stacks(60, apart=True) == stacks(600, apart=True)
    assert len(stacks(60, apart=True)) > 1
