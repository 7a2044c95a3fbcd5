"""Small trainings of a study whose sites are clients in threads."""

from functools import cache

import numpy as np

from brainfed.methods import FederatedClassifierSettings
from brainfed.methods.fedtangent.declaration import FederatedRidgeSettings
from brainfed.methods.fedtangent.train import train_ridge_federated
from brainfed.methods.mlp.train import train_fedmlp
from brainfed.runtime.jobs import Checkpoint, Run
from support.samples.method_inputs import method_inputs
from support.sites.apart_sites import only_nodes
from support.sites.sites_in_threads import NAMES, Site

ROUNDS = 6
INPUTS = method_inputs(45, 12, folds=2)


def mlp(inputs, checkpoint=Checkpoint(None, ""), **changes):
    """Sites keep the state of their optimisers: one that comes back needs its own."""
    settings = FederatedClassifierSettings(rounds=ROUNDS, local_epochs=1, optimiser_state="keep", **changes)
    return train_fedmlp(inputs, settings, Run(checkpoint=checkpoint))


def resumable_in(folder):
    """The same with a checkpoint of each site in a folder."""

    def train(inputs):
        return mlp(inputs, Checkpoint(folder / f".{inputs.institution[0]}.parquet.0123456789abcdef.checkpoint", "key"))

    return train


def ridge(inputs):
    """A training of sums, each of which needs all sites."""
    return train_ridge_federated(inputs, FederatedRidgeSettings(alphas=(10.0,), tolerance=0.01), Run())


def started(clients, train, codes=NAMES, secure=False):
    """Sites that have begun to train, by code."""
    sites = {code: Site(clients, INPUTS, code, train, only_nodes, secure) for code in codes}
    for site in sites.values():
        site.start()
    return sites


def ended(sites):
    """Their outcomes, when they have left."""
    for site in sites.values():
        site.join(60)
    return {code: site.outcome for code, site in sites.items()}


@cache
def simulated(train):
    """Scores of the institutions together."""
    return train(INPUTS).scores


def same(outcomes, train, atol=0.0):
    """Scores are those of a simulation, to the bit or nearly."""
    for code, outcome in outcomes.items():
        np.testing.assert_allclose(outcome.scores, simulated(train)[:, INPUTS.members(code)], rtol=0, atol=atol)
