"""Download ABIDE I as the Preprocessed Connectomes Project holds it: CC200 series and the phenotype table."""

from brainfed.runtime.job import job

with job(snakemake):
    from pathlib import Path

    from nilearn.datasets import fetch_abide_pcp

    fetch_abide_pcp(
        data_dir=Path(snakemake.params.folder),
        pipeline="cpac",
        band_pass_filtering=True,
        global_signal_regression=True,
        derivatives=["rois_cc200"],
        quality_checked=False,
        verbose=1,
    )
