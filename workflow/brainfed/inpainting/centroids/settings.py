"""What crosses in place of generated neighbours: means of small groups. Light: a method declares it."""

from collections.abc import Mapping
from dataclasses import dataclass

from brainfed.runtime.settings import setting


@dataclass(frozen=True)
class CentroidSettings:
    """Groups of similar subjects whose mean stands for them elsewhere."""

    min_group: int = setting(
        10,
        "Subjects of a group at least, and subjects whose sex or age is known behind one that is sent. An institution "
        "with fewer sends nothing. A mean hides a person among the others of the group, without a formal guarantee.",
        minimum=2,
    )


CENTROIDS_TENSORS: Mapping[str, tuple[str, ...]] = {
    "centroid": ("features",),
    "centroid-sex": (),
    "centroid-age": (),
}
"""One tensor a group: its mean features, the more frequent sex, the mean age."""
