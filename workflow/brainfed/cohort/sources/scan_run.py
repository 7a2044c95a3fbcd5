"""The files of one run of a subject in a BIDS derivative."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BidsRun:
    """One preprocessed image and what belongs to it.

    Attributes:
        name: its entities, `sub-01_ses-a_task-rest_run-1_space-T1w`.
        image: path of the 4D image.
        confounds: path of its table of confounds, None where there is none.
        components: path of the json beside that table, which tells what its CompCor columns are; None where there is
            none or the strategy needs none.
        mask: path of its brain mask, None where there is none or none is used.
        sidecars: paths of the json files that hold for the image, the nearest last (BIDS inheritance principle).
    """

    name: str
    image: str
    confounds: str | None = None
    mask: str | None = None
    sidecars: tuple[str, ...] = ()
    components: str | None = None
