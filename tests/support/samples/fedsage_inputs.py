"""Small inputs, settings and trained generators of FedSage+."""

from dataclasses import replace

import torch

from brainfed.inpainting import FedSageSettings
from brainfed.inpainting.fedsage import training as fedsage
from brainfed.runtime import ArrayFile
from brainfed.runtime.jobs import Run
from support.samples.inpainting_inputs import inpainting_inputs

CPU = torch.device("cpu")
DOUBLE = Run(precision="float64")
QUICK = FedSageSettings(local_epochs=2, rounds=2, targets=3, fgen_width=8, hidden_fraction=0.2, learning_rate=0.01)


def cohort(subjects=45, **options):
    """Fifteen subjects in each of three institutions, six features inside (-1, 1)."""
    return inpainting_inputs(subjects, 6, **options)


def widened(inputs, factor):
    """The same cohort with the first feature multiplied."""
    features = inputs.features.copy()
    features[:, 0] *= factor
    return replace(inputs, features=features, correlations=False)


def loaded(inputs, trained, settings=QUICK, run=Run()):  # noqa: B008
    return fedsage.load(inputs, settings, ArrayFile(trained.arrays, {}), run)
