"""Samples of one institution at its own site, in their place among those of all institutions.

Random streams, labels and messages are keyed by the code of an institution, its place in the study's list. The samples
of a site keep that place; the other institutions have no subject here.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from brainfed.cohort.splits.public import require_own
from brainfed.federation.link import Link

Samples = TypeVar("Samples")
"""`LabelledSubjects`, or `InpaintingInputs`; not imported, as each method's code would hold both."""


def at_home(given: Samples, sites: Sequence[str], site: str, link: Link, secret: str = "") -> Samples:
    """The samples of `site` as those of one of the `sites`.

    Args:
        given: samples of one institution.
        sites: names of all, in the order of the study.
        site: its name, one of these.
        link: to the others.
        secret: key of the noise that protects subjects; empty: the study's seed.

    Raises:
        UserError: the samples have subjects of another institution.
    """
    samples: Any = given
    require_own(samples.institutions, site)
    placed: Samples = replace(
        samples,
        institutions=tuple(sites),
        institution=np.full(len(samples.subjects), list(sites).index(site), dtype=np.int64),
        link=link,
        streams=replace(samples.streams, secret=secret),
    )
    return placed
