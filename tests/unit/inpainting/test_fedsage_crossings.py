"""Noise and shared tensors of FedSage+'s training."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from brainfed.federation.privacy.weight_noise import WeightNoise
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.inpainting.fedsage.owner import owners_of
from brainfed.inpainting.fedsage.settings import FedSageSettings
from brainfed.inpainting.fedsage.shared_tensors import RAW_TENSORS, SUMMED_TENSORS
from brainfed.inpainting.settings import InpaintingSettings
from brainfed.methods.fedsage.fedsage_plus import FEDSAGE
from brainfed.runtime.jobs.run import Run
from support.samples.fedsage_inputs import CPU, DOUBLE, QUICK, cohort

NOISY = (FedSageSettings, InpaintingSettings)


def test_the_noise_setting_equals_fednis():
    own, fednis = (next(field for field in fields(kind) if field.name == "noise") for kind in NOISY)
    assert (own.type, own.default, dict(own.metadata)) == (fednis.type, fednis.default, dict(fednis.metadata))


def test_without_noise_nothing_is_drawn_and_no_weight_is_copied(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(WeightNoise, "_copy", refuse)
    fedsage.train(cohort(), replace(QUICK, noise=0.0), Run())
    with pytest.raises(AssertionError):
        fedsage.train(cohort(), QUICK, Run())


def test_noise_is_on_copies_for_other_owners_and_not_on_the_owners_weights(monkeypatch):
    """Drawn once a round and owner; after a round without learning the owner's weights are those of before."""
    drawn = []

    def copy(noise, number, sender, message):
        drawn.append((sender, noise.folds, number))
        found = real(noise, number, sender, message)
        for name, weight in message.tensors.items():
            apart = (found.tensors[name] - weight).detach()
            assert apart.abs().min() > 0
            if apart.numel() > 1000:
                assert float(apart.std()) == pytest.approx(0.01, rel=0.1)
        return found

    real = WeightNoise._copy
    monkeypatch.setattr(WeightNoise, "_copy", copy)
    still = replace(QUICK, learning_rate=0.0)
    trained, start = (fedsage.train(cohort(), settings, Run()).arrays for settings in (still, replace(still, rounds=0)))
    assert {name: value.tobytes() for name, value in trained.items()} == {
        name: value.tobytes() for name, value in start.items()
    }
    assert drawn == [(institution, (-1,), number) for institution in range(3) for number in range(2)]


def test_by_default_only_parameters_and_summed_gradients_cross():
    trained = fedsage.train(cohort(), QUICK, Run())
    rows = {(row["name"], row["direction"]): row for row in trained.crossings}
    assert {name for name, _ in rows} == set(SUMMED_TENSORS)
    sizes = {"first.weight": 256 * 128, "first.bias": 256, "second.weight": 8 * 256, "second.bias": 8}
    sizes |= {"output.weight": 3 * 6 * 8, "output.bias": 3 * 6}
    for kind in ("fgen", "fgen-gradient"):
        for name, size in sizes.items():
            for direction in ("upload", "download"):
                row = rows[f"{kind}.{name}", direction]
                assert row["tensors"] == 2 * 3 * 2
                assert row["bytes"] == 2 * 3 * 2 * size * 4
                assert "subjects" not in str(row["axes"]).split(" x ")


def test_raw_exchange_gives_the_same_generators_and_sends_subjects():
    inputs = cohort()
    summed = fedsage.train(inputs, QUICK, DOUBLE)
    raw = fedsage.train(inputs, replace(QUICK, exchange="raw"), DOUBLE)
    assert raw.arrays.keys() == summed.arrays.keys()
    for name, value in raw.arrays.items():
        np.testing.assert_allclose(value, summed.arrays[name], atol=1e-12, rtol=0)
    rows = {(row["name"], row["direction"]): row for row in raw.crossings}
    assert {name for name, _ in rows} == set(RAW_TENSORS)
    assert all("subjects" in str(row["axes"]).split(" x ") for row in rows.values())
    missed = [len(owner.targeted) for owner in owners_of(inputs, QUICK, CPU, torch.float32)]
    assert rows["embedding", "upload"]["bytes"] == 2 * sum(missed) * 128 * 8
    assert rows["generated-gradient", "upload"]["bytes"] == 2 * 2 * sum(missed) * 3 * 6 * 8


def test_all_shared_tensors_are_declared():
    assert dict(FEDSAGE.shared_tensors) == {**SUMMED_TENSORS, **RAW_TENSORS}
    assert FEDSAGE.settings is FedSageSettings
