"""Extract the region series of one shard's BIDS images, all runs of each subject."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import CohortSettings
    from brainfed.cohort.sources import BidsRun
    from brainfed.imaging.extraction import SubjectRuns, extract_bids_shard
    from brainfed.imaging.scans import load_atlas
    from brainfed.imaging.series import ShardFiles
    from brainfed.runtime import restore

    settings = restore(CohortSettings, {"source": "bids", **running.params.settings})
    extract_bids_shard(
        {
            subject: SubjectRuns(tuple(restore(BidsRun, run) for run in runs), tr)
            for subject, runs, tr in running.params.subjects
        },
        load_atlas(settings.atlas, snakemake.input.parcellation, snakemake.input.labels or None),
        settings,
        ShardFiles(snakemake.output.series, snakemake.output.quality, snakemake.output.coverage),
    )
