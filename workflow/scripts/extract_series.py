"""Extract the region series of one shard's NIfTI images."""

from brainfed.scripting.job import job

with job(snakemake) as running:
    from brainfed.cohort.settings.cohort import CohortSettings
    from brainfed.imaging.extraction.bids_extraction import extract_shard
    from brainfed.imaging.extraction.extraction import ScanFiles
    from brainfed.imaging.scans.atlas import load_atlas
    from brainfed.imaging.series.shards import ShardFiles
    from brainfed.runtime.settings import restore

    settings = restore(CohortSettings, {"source": "nifti", **running.params.settings})
    extract_shard(
        {subject: ScanFiles(image, confounds, tr) for subject, image, confounds, tr in running.params.subjects},
        load_atlas(settings.atlas, snakemake.input.parcellation, snakemake.input.labels or None),
        settings,
        ShardFiles(snakemake.output.series, snakemake.output.quality, snakemake.output.coverage),
    )
