"""Region series from images: nilearn's `NiftiLabelsMasker` and `imaging.extraction`, under the same cleaning.

Both sides read the atlas once. Ours also checks every voxel, measures coverage and looks at the image's space.
`extraction_speed.py` has more sizes.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
from extraction_speed import SETTINGS, masker_of, write_atlas, write_image

from brainfed.imaging.extraction import ScanFiles, extract
from brainfed.imaging.scans import load_atlas
from peers.comparison import Comparison, Result, compared, named, timed

TOLERANCE = 1e-4
"""Of z-scored series, which ours gives as float32."""


def extraction(quick: bool) -> Comparison:
    """Series of two made-up images."""
    volumes, regions, size = (40, 10, 6.0) if quick else (150, 122, 3.0)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        atlas, images = Path(folder) / "atlas.nii.gz", [Path(folder) / f"{number}.nii.gz" for number in range(2)]
        write_atlas(atlas, regions)
        for number, image in enumerate(images):
            write_image(image, size, volumes, "float32", number)
        masker, known = masker_of(atlas).fit(), load_atlas("atlas", atlas)

        def theirs() -> Result:
            return np.stack([masker.transform(image) for image in images])

        def ours() -> Result:
            return np.stack([extract("subject", ScanFiles(str(image)), known, SETTINGS).series for image in images])

        shape = f"{len(images)} images of {volumes} volumes at {size:g} mm, {regions} regions"
        return compared(
            "extraction", f"{named('nilearn')} (NiftiLabelsMasker)", f"{shape}: z-scored series",
            timed(theirs), timed(ours), TOLERANCE,
        )  # fmt: skip
