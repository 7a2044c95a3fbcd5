"""Tangent features from their formulas: one subject after the other, matrix functions of scipy."""

import numpy as np
from scipy.linalg import expm, inv, logm, sqrtm
from sklearn.covariance import LedoitWolf


def correlation(series):
    """Ledoit and Wolf's estimate for z-scored series (time, R); regions that do not vary have no correlation."""
    regions = series.shape[1]
    varying = [region for region in range(regions) if np.ptp(np.nan_to_num(series[:, region])) > 0]
    matrix = np.eye(regions)
    if varying:
        chosen = series[:, varying].astype(np.float64)
        matrix[np.ix_(varying, varying)] = LedoitWolf().fit((chosen - chosen.mean(0)) / chosen.std(0)).covariance_
    return matrix


def covariance(series, shrinkage):
    """S = (1 - s) C + s I."""
    return (1 - shrinkage) * correlation(series) + shrinkage * np.eye(series.shape[1])


def reference(covariances):
    """R = expm(mean log S)."""
    return expm(sum(logm(matrix) for matrix in covariances) / len(covariances))


def tangent_vector(matrix, at):
    """Upper triangle of log(R^-1/2 S R^-1/2), off-diagonals times sqrt(2)."""
    whitening = inv(sqrtm(at))
    tangent = logm(whitening @ matrix @ whitening)
    regions = len(matrix)
    return np.array([tangent[i, j] * (1 if i == j else np.sqrt(2)) for i in range(regions) for j in range(i, regions)])


def tangent_features(series, institution, training, group, shrinkage):
    """(n, R (R + 1) / 2) features of a list of series; `group`: `institution`, `training`, `all` or `identity`."""
    matrices = [covariance(values, shrinkage) for values in series]
    rows = []
    for own, matrix in zip(institution, matrices, strict=True):
        if group == "identity":
            rows.append(tangent_vector(matrix, np.eye(len(matrix))))
            continue
        members = [i for i in range(len(series)) if training[i] or group == "all"]
        here = [i for i in members if institution[i] == own]
        chosen = here if group == "institution" and here else members
        rows.append(tangent_vector(matrix, reference([matrices[i] for i in chosen])))
    return np.array(rows)
