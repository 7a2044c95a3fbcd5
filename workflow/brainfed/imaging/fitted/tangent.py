"""Tangent-space connectivity (Varoquaux et al. 2010), its reference fitted inside each institution."""

import logging
from collections.abc import Mapping, Sequence

import numpy as np
from nilearn.connectome import ConnectivityMeasure
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.covariance import LedoitWolf

from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import record_help
from brainfed.imaging.series.standardise import standardised

logger = logging.getLogger(__name__)

Matrix = NDArray[np.float64]

CROSSES = {"tangent-reference": ("regions", "other-regions")}


def tangent_ledger(regions: int) -> Ledger:
    """Empty ledger for `tangent_features` of series with this number of regions."""
    return Ledger(CROSSES, {"regions": regions, "other-regions": regions}, "features")


def tangent_features(
    series: Mapping[str, NDArray[np.float32]],
    subjects: Sequence[str],
    institution: Sequence[str],
    training: NDArray[np.bool_],
    ledger: Ledger,
) -> NDArray[np.float32]:
    """Deviations of every subject's covariance from its institution's reference.

    The reference is the geometric mean of the institution's training subjects, so no subject's data cross.
    Institutions without training subjects use the mean of the others' references, which cross.
    Covariances are Ledoit-Wolf of the standardised series: a region without signal keeps a positive
    variance and no correlation.

    Args:
        series: subject -> (time, R).
        subjects: n ids, the order of the rows.
        institution: (n,) names.
        training: (n,) mask of the training subjects, which fit the references.
        ledger: of `tangent_ledger`; records the references that institutions receive from others.

    Returns:
        (n, R (R - 1) / 2), the strictly upper triangle of log(S^-1/2 C S^-1/2).

    Raises:
        ValueError: there is no training subject.
    """
    where = np.asarray(institution)
    if not training.any():
        raise ValueError("expected at least one training subject, found none")
    references: dict[str, Matrix] = {}
    for name in sorted(set(where[training])):
        members = np.flatnonzero(training & (where == name))
        references[name] = _reference([standardised(series[subjects[i]]) for i in members.tolist()])
        logger.info("tangent reference of %s from %d subjects", name, len(members))
    _record_help(references, where, ledger)
    elsewhere = np.asarray(np.mean(list(references.values()), axis=0))
    whitening = {name: _inverse_root(references.get(name, elsewhere)) for name in sorted(set(where))}
    upper = np.triu_indices(next(iter(series.values())).shape[1], 1)
    features = np.empty((len(subjects), len(upper[0])), dtype=np.float32)
    for position, subject in enumerate(subjects):
        covariance = LedoitWolf(store_precision=False).fit(standardised(series[subject])).covariance_
        features[position] = displacement(covariance, whitening[where[position]])[upper]
    return features


def displacement(covariance: Matrix, whitening: Matrix) -> Matrix:
    """log(W C W): the (R, R) tangent vector at the reference with the inverse square root W."""
    values, vectors = eigh(whitening @ covariance @ whitening)
    return np.asarray((vectors * np.log(values)) @ vectors.T)


def _record_help(references: Mapping[str, Matrix], where: NDArray[np.str_], ledger: Ledger) -> None:
    """Record the references of others that institutions without a reference receive."""
    names, counts = np.unique(where, return_counts=True)
    sizes = dict(enumerate(counts.tolist()))
    fitted = {code for code, name in enumerate(names.tolist()) if name in references}
    helpers = {code: size for code, size in sizes.items() if code in fitted}
    helped = {code: size for code, size in sizes.items() if code not in fitted}
    reference = next(iter(references.values()))
    record_help(ledger, helpers, helped, {"tangent-reference": (reference.shape, reference.itemsize)})


def _reference(series: list[Matrix]) -> Matrix:
    measure = ConnectivityMeasure(LedoitWolf(store_precision=False), kind="tangent", standardize=False)
    return np.asarray(measure.fit(series).mean_)


def _inverse_root(matrix: Matrix) -> Matrix:
    values, vectors = eigh(matrix)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)
