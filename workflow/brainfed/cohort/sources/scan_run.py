"""Files of one run of a subject in a BIDS derivative."""

from dataclasses import dataclass


@dataclass(frozen=True)
class BidsRun:
    """One preprocessed image and its files.

    Attributes:
        name: its entities, `sub-01_ses-a_task-rest_run-1_space-T1w`.
        image: path of the 4D image.
        confounds: path of its table of confounds, None if absent.
        components: path of the json beside that table, which describes its CompCor columns; None if absent or not
            needed.
        mask: path of its brain mask, None if absent or not used.
        sidecars: paths of the json files that apply to the image, the nearest last (BIDS inheritance principle).
        links: paths of those that are links without content, as of a data set that was not fetched.
    """

    name: str
    image: str
    confounds: str | None = None
    mask: str | None = None
    sidecars: tuple[str, ...] = ()
    components: str | None = None
    links: tuple[str, ...] = ()
