"""Shared connectivity of the simulated brains, and its changes by diagnosis, age, sex and chance."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from brainfed.cohort.settings.simulation import SimulateSettings
from brainfed.cohort.sources.simulated.atlas import NETWORKS, SimulatedAtlas
from brainfed.cohort.sources.simulated.phenotype import SimulatedSubject
from brainfed.runtime.streams import Streams

WITHIN_NETWORK = 0.75
SHARED = 0.35
OWN = 0.6
SMALLEST_EIGENVALUE = 0.02

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Connectome:
    """True connectivity of the simulation.

    Attributes:
        loadings: (R, K) loading of each region on each of K latent sources.
        effects: (R, R) symmetric -1, 0, 1 for each of `diagnosis`, `age` and `sex`; the sets are disjoint.
    """

    loadings: Matrix
    effects: dict[str, Matrix]


def simulate_connectome(settings: SimulateSettings, atlas: SimulatedAtlas, streams: Streams) -> Connectome:
    """Draw the shared networks, and the connections that each phenotype moves, half of them up, half down."""
    random = streams.numpy("simulate", "connectome")
    regions = settings.regions
    follows = np.eye(len(NETWORKS))[atlas.network] * random.uniform(0.8, 1.2, (regions, 1))
    loadings = np.hstack([WITHIN_NETWORK * follows, SHARED * random.standard_normal((regions, len(NETWORKS)))])
    row, column = np.triu_indices(regions, 1)
    counts = {
        "diagnosis": settings.effect_connections,
        "age": settings.age_connections,
        "sex": settings.sex_connections,
    }
    free = random.permutation(len(row))
    effects: dict[str, Matrix] = {}
    for name, count in counts.items():
        chosen, free = free[:count], free[count:]
        effect = np.zeros((regions, regions))
        effect[row[chosen], column[chosen]] = np.where(np.arange(len(chosen)) % 2 == 0, 1.0, -1.0)
        effects[name] = effect + effect.T
    return Connectome(loadings, effects)


def subject_correlation(
    settings: SimulateSettings, connectome: Connectome, subject: SimulatedSubject, streams: Streams
) -> Matrix:
    """(R, R) correlation matrix of one subject's signal.

    The shared loadings plus the site's, the group's and the subject's own give a correlation matrix; diagnosis
    (+-effect / 2), age (effect_age a standard deviation) and sex (+-effect_sex / 2) are added to their connections;
    small eigenvalues are raised so that the result is positive definite, with a diagonal of 1.
    """
    random = streams.numpy("simulate", "individual", subject.participant_id)
    scanner = streams.numpy("simulate", "site", subject.site)
    shape = connectome.loadings.shape
    own = settings.individuality * random.standard_normal(shape) + settings.site_spread * scanner.standard_normal(shape)
    if subject.group is not None:
        own = own + settings.group_spread * streams.numpy("simulate", "group", subject.group).standard_normal(shape)
    loadings = connectome.loadings + WITHIN_NETWORK * own
    correlation = _unit_diagonal(loadings @ loadings.T + OWN * np.eye(len(loadings)))
    shifts = {
        "diagnosis": settings.effect * (0.5 if subject.diagnosis == "patient" else -0.5),
        "age": settings.effect_age * (subject.age - settings.age_mean) / max(settings.age_sd, 1e-9),
        "sex": settings.effect_sex * (0.5 if subject.sex == "male" else -0.5),
    }
    for name, shift in shifts.items():
        correlation = correlation + shift * connectome.effects[name]
    values, vectors = np.linalg.eigh(correlation)
    return _unit_diagonal((vectors * np.maximum(values, SMALLEST_EIGENVALUE)) @ vectors.T)


def _unit_diagonal(covariance: Matrix) -> Matrix:
    scale = 1 / np.sqrt(np.diagonal(covariance))
    return covariance * scale * scale[:, None]
