"""A job's way to the other sites of a study, and its samples among those of all sites; none outside a study."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Protocol, TypeVar

from brainfed.federation import TOGETHER, Link
from brainfed.runtime import resolve

Samples = TypeVar("Samples")


class JointJob(Protocol):
    """What a job needs to train with other sites."""

    @property
    def link(self) -> Link:
        """The way to the other institutions."""

    @property
    def sites(self) -> Sequence[str]:
        """All sites of the study, in order; empty where all institutions are in one place."""

    def placed(self, samples: Samples, digest: str) -> Samples:
        """The samples in their place among those of all sites.

        Args:
            samples: of this site, or of all.
            digest: of the job's parameters and inputs. Protective noise is keyed by it too: two jobs with one noise
                would show their difference, and a job that goes on needs its own noise again.
        """


@dataclass(frozen=True)
class _Simulated:
    """A job whose institutions are all in this process."""

    link: Link = TOGETHER
    sites: Sequence[str] = ()

    def placed(self, samples: Samples, digest: str) -> Samples:
        """The samples."""
        del digest
        return samples


def site_code(params: SimpleNamespace) -> dict[str, str]:
    """The digest of the code that reaches the other sites, of a joint job: a part of the digest of its training.

    Another code may send other numbers: they must not carry the noise of the earlier ones, nor go on from their state.
    """
    study = vars(params).get("study")
    return {"site_code": study["code"]} if study else {}


def joint_job(params: SimpleNamespace, output: str, device: str = "cpu") -> JointJob:
    """A job's link to the other sites; that of a job that is not joint leads nowhere.

    Args:
        params: of the job; `study` says which site this is and which code reaches the others, and is empty for a job
            that is not joint.
        output: its first file, which names the job alike at all sites.
        device: where it computes.

    Raises:
        UserError: the job is joint, and `brainfed join` did not start it.
    """
    study = vars(params).get("study")
    job: JointJob = resolve(study["entry"])(study, output, device) if study else _Simulated()
    return job
