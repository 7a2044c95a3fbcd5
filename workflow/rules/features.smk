"""Region series and what is computed from them; FreeSurfer measures."""

# The files of one shard of region series, whatever rule writes them.
SHARD = {
    "series": "results/{cohort}/timeseries/{atlas}/{shard}.safetensors",
    "quality": "results/{cohort}/timeseries/{atlas}/{shard}-quality.parquet",
    "coverage": "results/{cohort}/timeseries/{atlas}/{shard}-coverage.parquet",
}


rule extract_series:
    input:
        images=lambda wc: COHORTS[wc.cohort].images(wc.shard),
        confounds=lambda wc: COHORTS[wc.cohort].confounds(wc.shard),
        parcellation=lambda wc: LISTINGS[wc.cohort].parcellation,
        labels=lambda wc: LISTINGS[wc.cohort].labels or [],
    output:
        **SHARD,
    log:
        "logs/{cohort}/extract_series/{atlas}.{shard}.log",
    benchmark:
        "results/{cohort}/benchmarks/extract_series/{atlas}.{shard}.tsv"
    wildcard_constraints:
        cohort=either(cohorts_from(PROJECT.cohorts, "simulate", "nifti")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=120),
    params:
        given=named(
            code=code_of("scripts/extract_series.py"),
            subjects=lambda wc: COHORTS[wc.cohort].shard_subjects(wc.shard),
            settings=lambda wc: COHORTS[wc.cohort].settings_of(
                "atlas", "extraction", "confound_columns", "min_timepoints", "on_invalid"
            ),
        ),
    message:
        "Extracting region series, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/extract_series.py"


rule extract_runs:
    input:
        images=lambda wc: COHORTS[wc.cohort].run_files(wc.shard, "image"),
        masks=lambda wc: COHORTS[wc.cohort].run_files(wc.shard, "mask"),
        confounds=lambda wc: COHORTS[wc.cohort].run_files(wc.shard, "confounds"),
        components=lambda wc: COHORTS[wc.cohort].run_files(wc.shard, "components"),
        sidecars=lambda wc: COHORTS[wc.cohort].sidecars(wc.shard),
        parcellation=lambda wc: LISTINGS[wc.cohort].parcellation,
        labels=lambda wc: LISTINGS[wc.cohort].labels or [],
    output:
        **SHARD,
    log:
        "logs/{cohort}/extract_runs/{atlas}.{shard}.log",
    benchmark:
        "results/{cohort}/benchmarks/extract_runs/{atlas}.{shard}.tsv"
    wildcard_constraints:
        cohort=either(cohorts_from(PROJECT.cohorts, "bids")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=4000, runtime=240),
    params:
        given=named(
            code=code_of("scripts/extract_runs.py"),
            subjects=lambda wc: COHORTS[wc.cohort].shard_runs(wc.shard),
            settings=lambda wc: COHORTS[wc.cohort].extraction_settings(),
        ),
    message:
        "Extracting region series of all runs, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/extract_runs.py"


rule read_series:
    input:
        series=lambda wc: COHORTS[wc.cohort].images(wc.shard),
        labels=lambda wc: LISTINGS[wc.cohort].labels or [],
    output:
        **SHARD,
    log:
        "logs/{cohort}/read_series/{atlas}.{shard}.log",
    benchmark:
        "results/{cohort}/benchmarks/read_series/{atlas}.{shard}.tsv"
    wildcard_constraints:
        cohort=either(cohorts_from(PROJECT.cohorts, "timeseries")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/read_series.py"),
            subjects=lambda wc: COHORTS[wc.cohort].shard_subjects(wc.shard),
            settings=lambda wc: COHORTS[wc.cohort].settings_of(
                "atlas", "labels", "regions", "header", "transposed", "variable", "min_timepoints", "on_invalid"
            ),
        ),
    message:
        "Reading region series, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/read_series.py"


rule read_measures:
    input:
        stats=lambda wc: COHORTS[wc.cohort].stats_files(),
    output:
        measures="results/{cohort}/morphometry/measures.safetensors",
        quality="results/{cohort}/morphometry/measures-quality.parquet",
        coverage="results/{cohort}/morphometry/measures-coverage.parquet",
    log:
        "logs/{cohort}/read_measures.log",
    benchmark:
        "results/{cohort}/benchmarks/read_measures.tsv"
    wildcard_constraints:
        cohort=either(cohorts_yielding(PROJECT.cohorts, "morphometry")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=30),
    params:
        given=named(
            code=code_of("scripts/read_measures.py"),
            subjects=lambda wc: COHORTS[wc.cohort].measured_subjects(),
            settings=lambda wc: COHORTS[wc.cohort].measure_settings(),
        ),
    message:
        "Reading FreeSurfer measures ({wildcards.cohort})"
    script:
        "../scripts/read_measures.py"


rule compute_morphometry:
    input:
        measures="results/{cohort}/morphometry/measures.safetensors",
    output:
        features=stage_pattern("features", part="all", repeat=""),
    log:
        "logs/{cohort}/compute_morphometry/{features}.log",
    benchmark:
        "results/{cohort}/benchmarks/compute_morphometry/{features}.tsv"
    wildcard_constraints:
        features=r"morphometry-[^/]+",
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/compute_morphometry.py"),
            settings=lambda wc: stage_of(wc, "features").values,
        ),
    message:
        "Preparing {wildcards.features} ({wildcards.cohort})"
    script:
        "../scripts/compute_morphometry.py"


rule compute_connectivity:
    input:
        series=lambda wc: COHORTS[wc.cohort].shard_files(".safetensors"),
        quality=lambda wc: COHORTS[wc.cohort].shard_files("-quality.parquet"),
    output:
        features=stage_pattern("features", part="all", repeat=""),
    log:
        "logs/{cohort}/compute_connectivity/{features}.log",
    benchmark:
        "results/{cohort}/benchmarks/compute_connectivity/{features}.tsv"
    wildcard_constraints:
        features=r"(pearson|partial)-[^/]+",
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=3000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/compute_connectivity.py"),
            settings=lambda wc: stage_of(wc, "features").values,
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
        ),
    message:
        "Computing {wildcards.features} ({wildcards.cohort})"
    script:
        "../scripts/compute_connectivity.py"


rule compute_covariances:
    input:
        series=lambda wc: COHORTS[wc.cohort].shard_file(wc.shard, ".safetensors"),
    output:
        covariances=covariance_pattern(),
    log:
        "logs/{cohort}/compute_covariances/{shrinkage}.{shard}.log",
    benchmark:
        "results/{cohort}/benchmarks/compute_covariances/{shrinkage}.{shard}.tsv"
    wildcard_constraints:
        shrinkage=r"[0-9.e-]+",
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        **job_needs(mem_mb=2000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/compute_covariances.py"),
            shrinkage=lambda wc: float(wc.shrinkage),
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
        ),
    message:
        "Computing covariances, shrinkage {wildcards.shrinkage}, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/compute_covariances.py"


rule compute_tangent:
    input:
        covariances=lambda wc: LAYOUT.covariance_files(stage_of(wc, "features"), wc.cohort),
        included="results/{cohort}/cohort/included.parquet",
    output:
        features=stage_pattern("features", part="all", repeat=""),
    log:
        "logs/{cohort}/compute_tangent/{features}.log",
    benchmark:
        "results/{cohort}/benchmarks/compute_tangent/{features}.tsv"
    wildcard_constraints:
        features=r"tangent-[^/]+",
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        **job_needs(mem_mb=4000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/compute_tangent.py"),
            settings=lambda wc: stage_of(wc, "features").values,
            **joint(lambda wc: is_joint(stage_of(wc, "features"))),
        ),
    message:
        "Computing {wildcards.features} ({wildcards.cohort})"
    script:
        "../scripts/compute_tangent.py"


rule fit_connectivity:
    input:
        unpack(lambda wc: LAYOUT.fitting_inputs(stage_of(wc, "features"), wc.cohort, wc.repeat, wc.fold)),
    output:
        features=stage_pattern("features", part="fold-{fold}"),
        timing=timing_of(stage_pattern("features", part="fold-{fold}")),
    log:
        "logs/{cohort}/fit_connectivity/{features}.{repeat}.{fold}.log",
    benchmark:
        "results/{cohort}/benchmarks/fit_connectivity/{features}.{repeat}.{fold}.tsv"
    wildcard_constraints:
        features=r"(?!views-)[^/]+",
    conda:
        "../envs/brainfed.yaml"
    threads: lambda wc: 1 if stage_of(wc, "features").parents else PROJECT.threads
    resources:
        **job_needs(mem_mb=4000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/fit_connectivity.py"),
            settings=lambda wc: stage_of(wc, "features").values,
            fold=lambda wc: int(wc.fold),
            **joint(lambda wc: is_joint(stage_of(wc, "features"))),
        ),
    message:
        "Fitting {wildcards.features}, repeat {wildcards.repeat}, fold {wildcards.fold} ({wildcards.cohort})"
    script:
        "../scripts/fit_connectivity.py"


rule join_views:
    input:
        views=lambda wc: LAYOUT.view_inputs(stage_of(wc, "features"), wc.cohort),
    output:
        features=stage_pattern("features", part="all", repeat=""),
    log:
        "logs/{cohort}/join_views/{features}.log",
    benchmark:
        "results/{cohort}/benchmarks/join_views/{features}.tsv"
    wildcard_constraints:
        features=r"views-[^/]+",
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/join_views.py"),
            settings=lambda wc: stage_of(wc, "features").values,
        ),
    message:
        "Joining {wildcards.features} ({wildcards.cohort})"
    script:
        "../scripts/join_views.py"


use rule join_views as join_fitted_views with:
    input:
        views=lambda wc: LAYOUT.view_inputs(stage_of(wc, "features"), wc.cohort, wc.repeat, f"fold-{wc.fold}"),
    output:
        features=stage_pattern("features", part="fold-{fold}"),
        timing=timing_of(stage_pattern("features", part="fold-{fold}")),
    log:
        "logs/{cohort}/join_fitted_views/{features}.{repeat}.{fold}.log",
    benchmark:
        "results/{cohort}/benchmarks/join_fitted_views/{features}.{repeat}.{fold}.tsv"
    message:
        "Joining {wildcards.features}, repeat {wildcards.repeat}, fold {wildcards.fold} ({wildcards.cohort})"


rule export_cohort:
    input:
        series=lambda wc: COHORTS[wc.cohort].shard_files(".safetensors"),
        quality=lambda wc: COHORTS[wc.cohort].shard_files("-quality.parquet"),
        coverage=lambda wc: COHORTS[wc.cohort].shard_files("-coverage.parquet"),
    output:
        folder=directory("results/{cohort}/bids"),
    log:
        "logs/{cohort}/export_cohort.log",
    benchmark:
        "results/{cohort}/benchmarks/export_cohort.tsv"
    wildcard_constraints:
        cohort=either(cohorts_from(PROJECT.cohorts, "bids")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/export_cohort.py"),
            atlas=lambda wc: PROJECT.cohorts[wc.cohort].atlas,
            images=lambda wc: COHORTS[wc.cohort].images_of_runs(),
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
        ),
    message:
        "Writing series and correlations as BIDS files ({wildcards.cohort})"
    script:
        "../scripts/export_cohort.py"


rule export_bids:
    input:
        folders=some(
            "export_bids",
            exported_folders(PROJECT.cohorts),
            "expected a cohort of `source: bids`, found none; only images of BIDS are written as BIDS files.",
        ),
