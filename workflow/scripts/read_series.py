"""Read the region series of one shard's text files."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import CohortSettings
    from brainfed.imaging.series import ShardFiles, read_shard
    from brainfed.runtime import restore

    listed = running.params.subjects
    read_shard(
        {subject: path for subject, path, _, _ in listed},
        restore(CohortSettings, {"source": "timeseries", **running.params.settings}),
        ShardFiles(snakemake.output.series, snakemake.output.quality, snakemake.output.coverage),
        {subject: tr for subject, _, _, tr in listed if tr is not None},
    )
