"""ABIDE as if its global signal had been kept: a shared slow time course is added to every region of a subject.

The preprocessed series have no global signal. Adding one raises the mean correlation of a subject from 0 to 0.4 on
average, with a spread over subjects and sites, as in data that were not regressed on it.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter1d

from brainfed.cohort.settings import SplitSettings
from brainfed.cohort.splits import split
from brainfed.graphs import Graph, GraphSettings, build_graph
from brainfed.runtime import Streams
from brainfed.samples import MethodInputs, Phenotypes, hidden_labels

STRENGTH, SPREAD_OF_SUBJECTS, SPREAD_OF_SITES = 0.8, 0.35, 0.15
"""Median strength of the signal beside a region's own, and standard deviations of its logarithm."""
SPREAD_OF_REGIONS = 0.3
"""Standard deviation of a region's share of the signal around 1: half of it is common to all subjects."""
SLOW = 3.0
"""Width of the smoothing of the time course, in volumes."""

Series = Mapping[str, NDArray[np.float32]]


def read_series(folder: Path) -> tuple[Series, pd.DataFrame]:
    """Series (time, region) by subject, and subject, site, age, sex, diagnosis, in ascending order of subject."""
    names = {"key": "subject", "SITE_ID": "site", "AGE_AT_SCAN": "age", "SEX": "sex", "label_asd": "diagnosis"}
    table = pd.read_csv(folder / "subjects.csv").rename(columns=names)
    people = table[list(names.values())].sort_values("subject", ignore_index=True)
    with np.load(folder / "timeseries.npz") as held:
        return {subject: held[subject] for subject in people["subject"]}, people


def z_scored(series: NDArray[np.float32]) -> NDArray[np.float64]:
    """(time, region) of mean 0 and deviation 1; a constant region is 0."""
    centred = series - series.mean(axis=0, dtype=np.float64)
    deviation = centred.std(axis=0)
    varying = deviation > 1e-6 * np.abs(series).max(initial=1.0)
    return np.asarray(np.where(varying, centred / np.where(varying, deviation, 1.0), 0.0))


def correlations(series: Series, sites: Mapping[str, str] | None = None, seed: int = 0) -> NDArray[np.float32]:
    """(n, R (R - 1) / 2) correlations, with a common signal if `sites` are given."""
    rows = []
    regions = next(iter(series.values())).shape[1]
    common = np.random.default_rng([seed, 0]).standard_normal(regions)
    upper = np.triu_indices(regions, 1)
    for position, subject in enumerate(sorted(series)):
        own = z_scored(series[subject])
        if sites is not None:
            code = sorted(set(sites.values())).index(sites[subject])
            random = np.random.default_rng([seed, 1, position])
            site = np.random.default_rng([seed, 2, code]).standard_normal()
            strength = STRENGTH * np.exp(SPREAD_OF_SUBJECTS * random.standard_normal() + SPREAD_OF_SITES * site)
            shares = 1 + SPREAD_OF_REGIONS * (common + random.standard_normal(regions)) / np.sqrt(2)
            slow = gaussian_filter1d(random.standard_normal(len(own)), SLOW)
            slow = (slow - slow.mean()) / slow.std()
            own = z_scored(np.where(own.any(axis=0), own + slow[:, None] * strength * shares, 0.0).astype(np.float32))
        rows.append((own.T @ own / len(own))[upper].astype(np.float32))
    return np.stack(rows)


def drawn(features: NDArray[np.float32], people: pd.DataFrame, repeat: int, institutions: int = 5) -> MethodInputs:
    """Five random institutions, five folds and a population graph of one repeat; identical subjects stay together."""
    streams = Streams(0, repeat)
    first: dict[bytes, str] = {}
    groups = [first.setdefault(row.tobytes(), name) for row, name in zip(features, people["subject"], strict=True)]
    included = pd.DataFrame({"subject": people["subject"], "included": True, "twin_group": groups, "reason": ""})
    places = split(included, people, SplitSettings(institutions="random", count=institutions), streams)
    places = places.sort_values("subject", ignore_index=True)
    assert list(places["subject"]) == list(people["subject"])
    names = tuple(sorted(places["institution"].unique()))
    fold = places["fold"].to_numpy(np.int64)
    institution = places["institution"].map({name: code for code, name in enumerate(names)}).to_numpy(np.int64)
    site, sex = (pd.factorize(people[column])[0].astype(np.int64) for column in ("site", "sex"))
    age = people["age"].to_numpy(np.float64)
    graph = build_graph(features, institution, site=site, sex=sex, age=age, settings=GraphSettings(), streams=streams)
    return MethodInputs(
        subjects=tuple(people["subject"]),
        institutions=names,
        institution=institution,
        fold=fold,
        labels=hidden_labels(people["diagnosis"].to_numpy(np.int64), fold),
        features=(features,),
        graphs=(Graph(graph.row, graph.column, graph.weight, len(people)),),
        phenotypes=Phenotypes(site, sex, age, np.zeros(len(people))),
        streams=streams,
    )
