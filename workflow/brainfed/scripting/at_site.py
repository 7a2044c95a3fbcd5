"""A job at one site of a federation: its samples among those of all sites, and the way to the others."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

from brainfed.deployment.environment import DESK, SECRET
from brainfed.federation.link import TOGETHER, Link
from brainfed.runtime.errors import UserError

Samples = TypeVar("Samples")


def link_of(params: SimpleNamespace, output: str, device: str = "cpu") -> Link:
    """The link of a job to the other sites; of a job that is not joint, to nobody.

    Args:
        params: of the job; `study` says which site this is, and is empty for a job that is not joint.
        output: its first file, which names the job alike at all sites.
        device: where it computes.

    Raises:
        UserError: the job is joint, and `brainfed join` did not start it.
    """
    study = study_of(params)
    if not study:
        return TOGETHER
    if DESK not in os.environ:
        raise UserError(
            f"site {study['site']!r}: expected this job to be started by `brainfed join`, as it trains with the other "
            "sites, found no connection to them; run `brainfed join CONFIG`."
        )
    from brainfed.deployment.desk_client import DeskClient
    from brainfed.federation.apart.home import Home

    _, _, job = output.partition("results/")
    name = job.partition("/")[2]
    place = list(study["sites"]).index(study["site"])
    return Home(place, DeskClient(Path(os.environ[DESK])), name, device, bool(study["secure_sums"]))


def placed(samples: Samples, params: SimpleNamespace, link: Link, digest: str) -> Samples:
    """The samples of a joint job among those of all sites; those of another job as they are.

    Args:
        samples: of this site, or of all.
        params: of the job.
        link: of `link_of`.
        digest: of the job's parameters and inputs. Protective noise is keyed by it too: two jobs with one noise would
            show their difference, and a job that goes on needs its own noise again.
    """
    study = study_of(params)
    if not study:
        return samples
    from brainfed.deployment.at_home import at_home

    return at_home(samples, study["sites"], study["site"], link, _secret(study["noise"], digest))


def study_of(params: SimpleNamespace) -> Mapping[str, Any]:
    """`sites`, `site`, `noise` and `secure_sums` of a joint job; else empty."""
    held: Mapping[str, Any] = vars(params).get("study") or {}
    return held


def _secret(noise: str, digest: str) -> str:
    return f"{Path(os.environ[SECRET]).read_text().strip()}/{digest}" if noise == "secret" else ""
