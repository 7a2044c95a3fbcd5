"""Scaling of features and views by sums over training subjects."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from brainfed.federation import TOGETHER, Ledger, Link, add_up
from brainfed.runtime import BoolArray, Float64, FloatArray, IntArray
from brainfed.samples._inputs import MethodInputs, View

# Z-scores from training subjects only (FedNI spec section 1, `standardise: institution`).


BLOCK_ENTRIES = 1 << 22
"""Largest number of values that are copied at once."""
NARROWEST = 16
"""Smallest number of columns a block: numpy sums a single column in another order."""


def centred_subjects(features: FloatArray) -> FloatArray:
    """Features (n, d) minus the mean of each row."""
    centred: FloatArray = features - features.mean(axis=1, dtype=np.float64, keepdims=True).astype(features.dtype)
    return centred


def training_moments(features: FloatArray, rows: BoolArray) -> tuple[Float64, Float64]:
    """Mean and population standard deviation of every column over the chosen rows, in float64.

    A column that is constant over these rows gets an infinite deviation: its z-score is 0 in all subjects, so that a
    column without variation in training has no effect.

    Args:
        features: (n, d).
        rows: (n,) mask of the training subjects.

    Returns:
        mean (d,) and deviation (d,).

    Raises:
        ValueError: no row is chosen.
    """
    if not rows.any():
        raise ValueError("expected training subjects for the moments of a column, found none")
    columns = features.shape[1]
    mean, deviation = np.empty((2, columns))
    width = max(NARROWEST, BLOCK_ENTRIES // int(rows.sum()))
    edges = np.linspace(0, columns, -(-columns // width) + 1).astype(int)
    for block in map(slice, edges[:-1], edges[1:]):
        chosen = features[rows, block]
        mean[block] = chosen.mean(axis=0, dtype=np.float64)
        deviation[block] = np.where(np.ptp(chosen, axis=0) == 0, np.inf, chosen.std(axis=0, dtype=np.float64))
    return mean, deviation


# Scaling of views: centred, z-scored, clipped and balanced by their trace, from sums over institutions.
#
# Of view v with columns x, over the training subjects that fit it:
#
#     z = clip((x - mean) / sd),        f = sqrt(weight / tau) z,        tau = mean |z|^2
#
# The mean is that of all these subjects, or of those of the subject's site. A site without any takes the mean of all,
# or that of its own subjects in their institution. That mean enters no other subject's features. A subject that lacks
# the view has f = 0, and counts in tau: over the training subjects the mean squared norm of all views side by side is
# the sum of their weights.
#
# Every step is a sum over institutions (`SiteSums`, squares, squared norms), so a federation fits the same scaling with
# three messages of an institution, sent once.

SENT = {
    "view-counts": ("sites-or-none",),
    "feature-sums": ("sites-or-none", "columns"),
    "squared-deviations": ("columns",),
    "squared-norms": (),
}
"""Sums of one view as they are sent: axes by name; `sites-or-none` has an entry for subjects of no site."""
SMALLEST = 1e-10
"""Largest deviation of a constant column, relative to its mean: below that of one float32 digit in one subject."""


@dataclass(frozen=True)
class SiteSums:
    """Training subjects of an institution by site; the last row holds those of an unknown site, or of all sites.

    Attributes:
        count: (S + 1,) number of subjects.
        total: (S + 1, d) sums of their columns.
    """

    count: Float64
    total: Float64

    def __add__(self, other: "SiteSums") -> "SiteSums":
        """The sums of two institutions."""
        return SiteSums(self.count + other.count, self.total + other.total)

    @property
    def known(self) -> BoolArray:
        """(S + 1,) whether the site has training subjects; the last row is no site."""
        return np.append(self.count[:-1] > 0, False)

    def means(self) -> Float64:
        """Means (S + 1, d) of all sites; sites without subjects, and the last row, hold the mean over everybody."""
        everybody = self.total.sum(axis=0) / max(self.count.sum(), 1.0)
        own = self.total / np.maximum(self.count, 1.0)[:, None]
        return np.where(self.known[:, None], own, everybody)


@dataclass(frozen=True)
class ViewScaling:
    """The fitted scaling of one view.

    Attributes:
        means: (S + 1, d) mean of every site, and last that of all; (1, d) if all sites share one.
        known: (S + 1,) or (1,) whether the mean is that of training subjects of the site.
        deviation: (d,) standard deviation of the centred columns; infinite if a column is constant; 1 without
            z-scores.
        scale: sqrt(weight / tau); 0 if no training subject has the view or all are identical.
    """

    view: View
    means: Float64
    known: BoolArray
    deviation: Float64
    scale: float

    def of_subjects(self, inputs: MethodInputs, fold: int) -> Float64:
        """The scaled view (n, d) of all subjects."""
        features, site = inputs.fold_features(fold)[:, self.view.columns], inputs.phenotypes.of("site")
        scaled = self.scale * _standardised(features, site, self.means, self.deviation, self.view.clip)
        for rows in self._at_home(inputs, fold):
            own = features[rows].mean(axis=0, dtype=np.float64, keepdims=True)
            scaled[rows] = self.scale * _standardised(features[rows], site[rows], own, self.deviation, self.view.clip)
        scaled[~self.view.present] = 0.0
        return scaled

    def _at_home(self, inputs: MethodInputs, fold: int) -> Iterator[BoolArray]:
        """Masks (n,) of the subjects of an unseen site in one institution, who are centred by their own mean.

        An institution that trains nothing in the fold is unseen with all of its sites, also where a duplicate of one of
        its subjects trains elsewhere under the same site.
        """
        if self.view.centre == "all" or self.view.unseen_site == "all":
            return
        site, institution = inputs.phenotypes.of("site"), inputs.institution
        trains = np.isin(institution, institution[inputs.training(fold)])
        apart = self.view.present & (site >= 0) & ~(self.known[site] & trains)
        for pair in sorted(set(zip(institution[apart].tolist(), site[apart].tolist(), strict=True))):
            yield apart & (institution == pair[0]) & (site == pair[1])


@dataclass(frozen=True)
class Scaling:
    """The fitted scaling of all views of a fold."""

    views: tuple[ViewScaling, ...]

    def of_subjects(self, inputs: MethodInputs, fold: int) -> Float64:
        """The scaled views (n, d) of all subjects, side by side."""
        return np.concatenate([own.of_subjects(inputs, fold) for own in self.views], axis=1)


def fit_scaling(
    inputs: MethodInputs, fold: int, rows: BoolArray, *, standardise: bool = False, link: Link = TOGETHER
) -> Scaling:
    """Fit the scaling of all views of a fold.

    Features of one view are centred by the mean of all, and divided by the root of their mean squared norm.

    Args:
        rows: (n,) mask of the training subjects that fit it: all, or those of one institution.
        standardise: z-score the columns of features of one view; views have a setting of their own.
        link: to other institutions whose subjects fit it; those of a real site that is left out all lie there.

    Raises:
        ValueError: a row is no training subject of the fold, or there is no row here or elsewhere.
    """
    if not (rows.any() or link.remote) or (rows & ~inputs.training(fold)).any():
        raise ValueError("expected training subjects of the fold for its scaling, found none, or others")
    everybody, columns = np.ones(len(inputs.subjects), dtype=np.bool_), slice(0, inputs.fold_features(fold).shape[1])
    views = inputs.views or (View("features", columns, 1.0, "all", "own", standardise, None, everybody),)
    fitted: list[ViewScaling] = []
    subjects = 0.0
    for view in views:
        own, count = _fit(inputs, fold, rows, view, link, subjects)
        subjects = subjects or count
        fitted.append(own)
    return Scaling(tuple(fitted))


def scaled(inputs: MethodInputs, fold: int, rows: BoolArray) -> Float64:
    """The scaled features (n, d) of all subjects; arguments and errors as of `fit_scaling`."""
    return fit_scaling(inputs, fold, rows).of_subjects(inputs, fold)


def _fit(
    inputs: MethodInputs, fold: int, rows: BoolArray, view: View, link: Link, subjects: float
) -> tuple[ViewScaling, float]:
    """Three sums over institutions: of the columns, of their squared deviations, of the squared norms.

    `subjects` is the number of training subjects of all, 0 for the first view, which counts them: no subject lacks it.
    """
    features, site = inputs.fold_features(fold)[:, view.columns], inputs.phenotypes.of("site")
    sites = int(site.max()) + 1 if view.centre == "site" else 0
    fitting = [rows & view.present & (inputs.institution == code) for code in range(len(inputs.institutions))]
    parts = [(features[own], site[own]) for own in fitting]
    sums = [site_sums(*part, sites) for part in parts]
    here = sum(sums[1:], sums[0])
    ledger = Ledger(SENT, {"sites-or-none": sites + 1, "columns": features.shape[1]})
    total = add_up(link, ledger, len(site), {"view-counts": here.count, "feature-sums": here.total})
    summed = SiteSums(total["view-counts"], total["feature-sums"])
    fitted = subjects or float(summed.count.sum())
    means = summed.means()
    deviation = np.ones(features.shape[1])
    if view.standardise:
        own = np.sum([np.square(_centred(*part, means)).sum(axis=0) for part in parts], axis=0)
        squares = add_up(link, ledger, len(site), {"squared-deviations": own})["squared-deviations"]
        deviation = np.sqrt(squares / max(float(summed.count.sum()), 1.0))
        deviation[deviation <= SMALLEST * np.abs(means).max(axis=0)] = np.inf
    values = [_standardised(*part, means, deviation, view.clip) for part in parts]
    norms = np.array(sum(float(np.einsum("ij,ij->", own, own)) for own in values))
    tau = float(add_up(link, ledger, len(site), {"squared-norms": norms})["squared-norms"]) / fitted
    nothing = 0.0 if view.standardise else float(np.square(SMALLEST * means).sum(axis=1).max())
    scale = float(np.sqrt(view.weight / tau)) if tau > nothing else 0.0
    return ViewScaling(view, means, summed.known, deviation, scale), fitted


def site_sums(features: FloatArray, site: IntArray, sites: int) -> SiteSums:
    """Sums of an institution's training subjects (n, d) by their sites (n,); one row without sites."""
    count, total = np.zeros(sites + 1), np.zeros((sites + 1, features.shape[1]))
    codes = site if sites else np.full_like(site, -1)
    for code in np.unique(codes).tolist():
        members = codes == code
        count[code] = members.sum()
        total[code] = features[members].sum(axis=0, dtype=np.float64)
    return SiteSums(count, total)


def _centred(features: FloatArray, site: IntArray, means: Float64) -> Float64:
    return np.asarray(features - (means[site] if len(means) > 1 else means))


def _standardised(
    features: FloatArray, site: IntArray, means: Float64, deviation: Float64, clip: float | None
) -> Float64:
    values = _centred(features, site, means) / deviation
    return values if clip is None else np.clip(values, -clip, clip)
