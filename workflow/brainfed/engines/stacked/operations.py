"""Number of operations on the features, which are nearly all of a training."""

import numpy as np

from brainfed.engines.batches import local_steps
from brainfed.federation.schedule import FederationSettings, Topology
from brainfed.models.classifier import Classifier
from brainfed.samples.inputs import MethodInputs


def first_layer_operations(
    module: Classifier, inputs: MethodInputs, schedule: FederationSettings, topology: Topology
) -> int:
    """Multiplications and additions on the features, forward and weight gradient, over all steps and folds.

    Where a round draws some institutions, they are assumed to have equal sizes.
    """
    everybody = [np.arange(len(inputs.subjects))]
    groups = everybody if topology == "central" else [inputs.members(m) for m in range(len(inputs.institutions))]
    sizes = [inputs.subjects_among(group) for group in groups]
    steps = local_steps(sizes, schedule, inputs.streams, drawn=topology == "federated")
    columns = sum(module.get_parameter(name).shape[1] for name in module.reads)
    return round(steps / len(sizes) * 2 * 2 * inputs.features[0].size * columns * inputs.folds)
