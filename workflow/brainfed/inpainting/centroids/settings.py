"""Settings and shared tensors of centroids: means of small groups in place of generated neighbours."""

from collections.abc import Mapping
from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class CentroidSettings:
    """Groups of similar subjects; other institutions receive their means."""

    min_group: int = setting(
        10,
        "Minimum subjects of a group, and minimum known values behind a sex or age that is sent. An institution with "
        "fewer subjects sends nothing. A mean of several subjects gives no formal privacy guarantee.",
        minimum=2,
    )


CENTROIDS_TENSORS: Mapping[str, tuple[str, ...]] = {
    "centroid": ("features",),
    "centroid-sex": (),
    "centroid-age": (),
}
"""One tensor a group: its mean features, the more frequent sex, the mean age."""
