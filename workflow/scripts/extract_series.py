"""Extract the region series of one shard's NIfTI images."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import CohortSettings
    from brainfed.imaging.extraction import ScanFiles, extract_shard
    from brainfed.imaging.scans import load_atlas
    from brainfed.imaging.series import ShardFiles
    from brainfed.runtime import restore

    settings = restore(CohortSettings, {"source": "nifti", **running.params.settings})
    extract_shard(
        {subject: ScanFiles(image, confounds, tr) for subject, image, confounds, tr in running.params.subjects},
        load_atlas(settings.atlas, snakemake.input.parcellation, snakemake.input.labels or None),
        settings,
        ShardFiles(snakemake.output.series, snakemake.output.quality, snakemake.output.coverage),
    )
