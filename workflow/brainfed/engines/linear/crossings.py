"""Sums that a federation exchanges once to scale its features: see `samples.view_scaling`."""

from brainfed.engines.stacked.crossings import sizes_of
from brainfed.federation.ledger import Ledger
from brainfed.federation.sharing import record_downloads, record_uploads
from brainfed.samples.inputs import MethodInputs
from brainfed.samples.view_scaling import Scaling

SUM_BYTES = 8
"""A sum, float64."""

SCALING = ("view-counts", "feature-sums", "site-counts", "site-sums", "squared-deviations", "squared-norms")
"""Names, whose axes the method declares; those with an empty axis are not sent."""


def scaling_axes(scaling: Scaling) -> dict[str, int]:
    """Sizes of the axes."""
    by_site = [own for own in scaling.views if own.view.centre == "site"]
    return {
        "views": len(scaling.views),
        "sites": max((len(own.means) - 1 for own in by_site), default=0),
        "site-features": sum(own.means.shape[1] for own in by_site),
        "standardised-features": sum(own.means.shape[1] for own in scaling.views if own.view.standardise),
    }


def record_scaling(inputs: MethodInputs, fold: int, ledger: Ledger) -> None:
    """Record the sums that all institutions with training subjects send, and that all institutions receive."""
    if len(inputs.institutions) == 1:
        return
    shapes = {name: tuple(ledger.axes[axis] for axis in ledger.declared[name]) for name in SCALING}
    content = {name: (shape, SUM_BYTES) for name, shape in shapes.items() if all(shape)}
    sizes = sizes_of(inputs.institution)
    trained = sizes_of(inputs.institution[inputs.training(fold)])
    record_uploads(ledger, {code: sizes[code] for code in trained}, content)
    record_downloads(ledger, sizes, content)
