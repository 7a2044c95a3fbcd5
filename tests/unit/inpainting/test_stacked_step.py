"""All institutions in one step against one after the other."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from brainfed.inpainting import InpaintingSettings
from brainfed.inpainting.fedni import _stacked_training as stacked_training
from brainfed.inpainting.fedni.training import InpaintingClients
from brainfed.runtime.jobs import Run
from support.samples.inpainting_inputs import inpainting_inputs


@pytest.fixture
def steps(monkeypatch):
    """The masks of every stacked step."""
    taken, plain = [], stacked_training.StackedStep.__call__

    def call(self, masks):
        taken.append(masks)
        return plain(self, masks)

    monkeypatch.setattr(stacked_training.StackedStep, "__call__", call)
    return taken


def rounds(inputs, settings, *, together, after=None):
    """Clients after all rounds, or all after those of the state `after`, with weights as everybody's between rounds."""
    clients = InpaintingClients(inputs, settings, Run(precision="float64"))
    clients.together = together
    first = 0
    if after is not None:
        first, state = after
        clients.load(first - 1, state)
    for number in range(first, settings.rounds):
        replies = clients.fit(number, clients.institutions)
        clients.receive(dict.fromkeys(clients.institutions, replies[0]))
    return clients


def compared(one, other):
    """Equal operations and losses; weights up to a ten-thousandth of a step, as Adam divides by gradients near 0."""
    last = len(one.measures) - 1
    expected, found = one.state(last), other.state(last)
    assert found.pop("operations") == expected.pop("operations")
    np.testing.assert_allclose(found.pop("measures"), expected.pop("measures"), rtol=1e-7, atol=1e-10)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=0, atol=1e-7, err_msg=name)


def unequal(**changes):
    """A cohort of which a third of the institutions has half of its subjects in training."""
    fitted = ~((np.arange(120) % 3 == 1) & (np.arange(120) % 2 == 0))
    return inpainting_inputs(subjects=120, fitted=fitted, **changes)


@pytest.mark.parametrize(
    ("phenotypes", "changes"),
    [
        (("sex", "age"), {}),
        (("sex",), {}),
        (("age",), {}),
        ((), {}),
        (("sex",), {"reconstruction": "sum"}),
        (("age",), {"reconstruction": "mean"}),
        ((), {"discriminator": False}),
        (("sex", "age"), {"discriminator": False}),
        (("sex", "age"), {"count": "printed"}),
        (("age",), {"d_interval": 2}),
        (("sex", "age"), {"federated": "both", "alpha": 0.7, "beta": 1.3}),
        (("sex",), {"masking": "random"}),
    ],
)
def test_together_equals_one_after_the_other(steps, phenotypes, changes):
    inputs = unequal(phenotypes=phenotypes)
    settings = InpaintingSettings(rounds=2, local_epochs=3, **changes)
    together = rounds(inputs, settings, together=True)
    assert len(steps) == 6
    compared(rounds(inputs, settings, together=False), together)
    assert len(steps) == 6


@pytest.mark.parametrize(
    ("changes", "of_inputs"),
    [({"pairing": "hungarian"}, {"subjects": 120}), ({}, {"subjects": 9, "k": 1}), ({}, {"institutions": 1})],
)
def test_a_round_that_cannot_be_stacked_goes_one_after_the_other(steps, changes, of_inputs):
    inputs, settings = inpainting_inputs(**of_inputs), InpaintingSettings(rounds=1, local_epochs=2, **changes)
    compared(rounds(inputs, settings, together=False), rounds(inputs, settings, together=True))
    assert not steps


def test_masks_without_a_known_phenotype_or_too_large_are_not_stacked(monkeypatch, steps):
    inputs, settings = unequal(), InpaintingSettings(rounds=1, local_epochs=2)
    unknown = replace(inputs, sex=np.full(120, -1), age=np.full(120, np.nan))
    compared(rounds(unknown, settings, together=False), rounds(unknown, settings, together=True))
    assert not steps
    rounds(inputs, settings, together=True)
    assert len(steps) == 2
    monkeypatch.setattr(stacked_training, "MOST_BYTES", 1000)
    compared(rounds(inputs, settings, together=False), rounds(inputs, settings, together=True))
    assert len(steps) == 2


def test_parents_as_targets_are_trained_together_too(steps):
    settings = InpaintingSettings(rounds=1, local_epochs=1, targets="parent")
    compared(rounds(unequal(), settings, together=False), rounds(unequal(), settings, together=True))
    assert len(steps) == 1


def test_an_institution_may_know_ages_alone(steps):
    inputs = unequal()
    known = replace(inputs, sex=np.where(inputs.institution == 1, -1, inputs.sex))
    settings = InpaintingSettings(rounds=1, local_epochs=3)
    compared(rounds(known, settings, together=False), rounds(known, settings, together=True))
    assert len(steps) == 3


def test_products_in_bfloat16_are_those_one_after_the_other(steps):
    inputs, settings = unequal(), InpaintingSettings(rounds=1, local_epochs=1, precision="bfloat16")
    together = rounds(inputs, settings, together=True).measures
    assert len(steps) == 1
    np.testing.assert_allclose(together, rounds(inputs, settings, together=False).measures, rtol=1e-9)
    exact = rounds(inputs, replace(settings, precision="float32"), together=True).measures
    assert np.nanmax(np.abs(together / exact - 1)) > 1e-6


def test_a_resumed_training_ends_with_the_same_bytes(steps):
    inputs, settings = unequal(), InpaintingSettings(rounds=3, local_epochs=2, d_interval=2)
    whole = rounds(inputs, settings, together=True)
    begun = rounds(inputs, replace(settings, rounds=2), together=True)
    resumed = rounds(inputs, settings, together=True, after=(2, begun.state(1)))
    assert len(steps) == 6 + 4 + 2
    for name, array in whole.state(2).items():
        np.testing.assert_array_equal(resumed.state(2)[name], array, err_msg=name)


@pytest.mark.parametrize("together", [True, False])
def test_a_round_of_nobody_has_no_reply(together):
    clients = InpaintingClients(inpainting_inputs(), InpaintingSettings(rounds=1, local_epochs=2), Run())
    clients.together = together
    assert clients.fit(0, ()) == {}


@pytest.mark.parametrize("chosen", [(0, 2), (1,)])
def test_some_institutions_alone_go_one_after_the_other(chosen):
    settings = InpaintingSettings(rounds=1, local_epochs=2)
    found = []
    for together in (True, False):
        clients = InpaintingClients(inpainting_inputs(), settings, Run(precision="float64"))
        clients.together = together
        assert tuple(clients.fit(0, chosen)) == chosen
        found.append(clients)
    compared(*found)


@pytest.mark.gpu
@pytest.mark.parametrize("discriminator", [True, False])
def test_a_gpu_gives_the_cpus_weights(discriminator):
    if not torch.cuda.is_available():
        pytest.skip("no GPU on this machine")
    inputs, settings = unequal(), InpaintingSettings(rounds=2, local_epochs=3, discriminator=discriminator)
    cpu, gpu = (InpaintingClients(inputs, settings, Run(device, precision="float64")) for device in ("cpu", "cuda:0"))
    for clients in (cpu, gpu):
        for number in range(2):
            clients.fit(number, clients.institutions)
    assert gpu.together
    compared(cpu, gpu)
