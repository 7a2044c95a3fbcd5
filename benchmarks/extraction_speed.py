"""How fast region series are extracted, beside a bare nilearn loop, and how much memory it takes.

    python benchmarks/extraction_speed.py [--images 3] [--volumes 150] [--voxel-size 3] [--regions 200]
        [--atlas FILE] [--kind float32]

Makes images of a made-up brain in MNI space (61 x 73 x 61 voxels at 3 mm), gzipped, and extracts them in turn with our
extraction and with NiftiLabelsMasker, under the same cleaning, in one process and one thread: image, loop, image, loop.
The seconds are CPU seconds, the best of the images; reading is what both spend on decompression. Our extraction
also checks every voxel, measures coverage and looks at the image's space. The series are compared. `--atlas` takes a
parcellation of your own; without it the brain is cut into compact regions. Memory is the peak of a process of its own
that extracts all images.
"""

import argparse
import gzip
import multiprocessing
import resource
import sys
import tempfile
import time
import warnings
from pathlib import Path

import nibabel as nib
import numpy as np
from nibabel.affines import apply_affine, from_matvec
from nilearn.maskers import NiftiLabelsMasker

from brainfed.cohort.settings import ExtractionSettings
from brainfed.imaging.extraction import ScanFiles, extract
from brainfed.imaging.scans import load_atlas

TR = 2.0
BOX = np.array([180.0, 216.0, 180.0])
CORNER = np.array([-90.0, -126.0, -72.0])
SETTINGS = ExtractionSettings()


def grid(size: float) -> tuple[np.ndarray, tuple[int, ...]]:
    return from_matvec(np.diag([size] * 3), CORNER), tuple((BOX / size).astype(int) + 1)


def write_atlas(path: Path, regions: int) -> None:
    """Compact regions of a brain-sized ellipsoid at 3 mm: each voxel belongs to the nearest of random centres."""
    affine, shape = grid(3.0)
    places = apply_affine(affine, np.argwhere(np.ones(shape, dtype=bool)))
    inside = (((places - (0, -18, 12)) / (68, 86, 62)) ** 2).sum(axis=1) <= 1
    centres = places[np.random.default_rng(0).choice(np.flatnonzero(inside), regions, replace=False)]
    labels = np.zeros(len(places), dtype=np.int16)
    for part in np.array_split(np.flatnonzero(inside), 50):
        labels[part] = 1 + ((places[part, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    nib.save(nib.Nifti1Image(labels.reshape(shape), affine), path)


def write_image(path: Path, size: float, volumes: int, kind: str, seed: int) -> None:
    """A masked brain of noise on a baseline."""
    affine, shape = grid(size)
    random = np.random.default_rng(seed)
    places = apply_affine(affine, np.argwhere(np.ones(shape, dtype=bool)))
    inside = ((((places - (0, -18, 12)) / (70, 88, 64)) ** 2).sum(axis=1) <= 1).reshape(shape)
    voxels = np.zeros((*shape, volumes), dtype=kind, order="F")
    for volume in range(volumes):
        voxels[inside, volume] = random.normal(1000, 20, int(inside.sum()))
    image = nib.Nifti1Image(voxels, affine)
    image.header.set_xyzt_units("mm", "sec")
    image.header["pixdim"][4] = TR
    path.write_bytes(gzip.compress(image.to_bytes(), compresslevel=1))


def ours(atlas: Path, image: Path) -> np.ndarray:
    return extract("subject", ScanFiles(str(image)), load_atlas("atlas", atlas), SETTINGS).series


def masker_of(atlas: Path) -> NiftiLabelsMasker:
    """Nilearn's masker with the cleaning of our defaults."""
    return NiftiLabelsMasker(
        atlas, standardize="zscore_sample", detrend=True, low_pass=SETTINGS.low_pass, high_pass=SETTINGS.high_pass,
        t_r=TR, resampling_target="data", reports=False,
    )  # fmt: skip


def bare(atlas: Path, image: Path) -> np.ndarray:
    return np.asarray(masker_of(atlas).fit_transform(image))


def peak(atlas: Path, images: list[Path]) -> float:
    """MiB at most that a process of its own holds."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (atlas, images))


def _peak(atlas: Path, images: list[Path]) -> float:
    for image in images:
        ours(atlas, image)
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    # Not ru_maxrss, which on Linux starts at what the parent held when it forked.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=3)
    parser.add_argument("--volumes", type=int, default=150)
    parser.add_argument("--voxel-size", type=float, default=3.0)
    parser.add_argument("--regions", type=int, default=200)
    parser.add_argument("--atlas", type=Path)
    parser.add_argument("--kind", default="float32", choices=["float32", "int16"])
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory() as folder:
        atlas = arguments.atlas or Path(folder) / "atlas.nii.gz"
        if arguments.atlas is None:
            write_atlas(atlas, arguments.regions)
        images = [Path(folder) / f"{number}.nii.gz" for number in range(arguments.images)]
        for number, image in enumerate(images):
            write_image(image, arguments.voxel_size, arguments.volumes, arguments.kind, number)
        seconds: dict[str, list[float]] = {"reading": [], "nilearn": [], "brainfed": []}
        difference = 0.0
        for image in images:
            results = {}
            for name, work in (
                ("reading", lambda _, path: np.asanyarray(nib.load(path).dataobj)),
                ("nilearn", bare),
                ("brainfed", ours),
            ):
                start = time.process_time()
                results[name] = work(atlas, image)
                seconds[name].append(time.process_time() - start)
            found = results["brainfed"][:, ~np.isnan(results["brainfed"]).all(axis=0)]
            difference = max(difference, float(np.abs(found - results["nilearn"]).max()))
        memory = peak(atlas, images)
    size = " x ".join(map(str, (*grid(arguments.voxel_size)[1], arguments.volumes)))
    best = {name: min(values) for name, values in seconds.items()}
    print(f"{arguments.images} images of {size}, {arguments.kind}, one thread, CPU seconds an image")
    names = ("reading", "nilearn", "brainfed", "times as fast", "largest difference", "peak MiB")
    print(" ".join(f"{name:>{width}}" for name, width in zip(names, (8, 8, 9, 14, 19, 9), strict=True)))
    print(
        f"{best['reading']:8.2f} {best['nilearn']:8.2f} {best['brainfed']:9.2f} "
        f"{best['nilearn'] / best['brainfed']:14.1f} {difference:19.1e} {memory:9.0f}"
    )


if __name__ == "__main__":
    main()
