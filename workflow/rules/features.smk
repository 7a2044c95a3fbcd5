"""Region series and what is computed from them; FreeSurfer measures."""


rule extract_series:
    input:
        images=lambda wc: [s.series for s in LISTINGS[wc.cohort].members(wc.shard)],
        confounds=lambda wc: [
            s.confounds for s in LISTINGS[wc.cohort].members(wc.shard) if s.confounds
        ],
        parcellation=lambda wc: LISTINGS[wc.cohort].parcellation,
        labels=lambda wc: LISTINGS[wc.cohort].labels or [],
    output:
        series="results/{cohort}/timeseries/{atlas}/{shard}.safetensors",
        quality="results/{cohort}/timeseries/{atlas}/{shard}-quality.parquet",
        coverage="results/{cohort}/timeseries/{atlas}/{shard}-coverage.parquet",
    log:
        "logs/{cohort}/extract_series/{atlas}.{shard}.log",
    benchmark:
        "results/{cohort}/benchmarks/extract_series/{atlas}.{shard}.tsv"
    wildcard_constraints:
        cohort=cohorts_from("simulate", "nifti"),
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(120),
    params:
        given=named(
            code=code_of("scripts/extract_series.py"),
            subjects=shard_subjects,
            settings=lambda wc: settings_of(
                wc,
                "atlas",
                "extraction",
                "confound_columns",
                "min_timepoints",
                "on_invalid",
            ),
        ),
    message:
        "Extracting region series, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/extract_series.py"


rule extract_runs:
    input:
        images=lambda wc: run_files(wc, "image"),
        masks=lambda wc: run_files(wc, "mask"),
        confounds=lambda wc: run_files(wc, "confounds"),
        components=lambda wc: run_files(wc, "components"),
        sidecars=sidecars_of,
        parcellation=lambda wc: LISTINGS[wc.cohort].parcellation,
        labels=lambda wc: LISTINGS[wc.cohort].labels or [],
    output:
        series="results/{cohort}/timeseries/{atlas}/{shard}.safetensors",
        quality="results/{cohort}/timeseries/{atlas}/{shard}-quality.parquet",
        coverage="results/{cohort}/timeseries/{atlas}/{shard}-coverage.parquet",
    log:
        "logs/{cohort}/extract_runs/{atlas}.{shard}.log",
    benchmark:
        "results/{cohort}/benchmarks/extract_runs/{atlas}.{shard}.tsv"
    wildcard_constraints:
        cohort=cohorts_from("bids"),
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(240),
    params:
        given=named(
            code=code_of("scripts/extract_runs.py"),
            subjects=shard_runs,
            settings=extraction_settings_of,
        ),
    message:
        "Extracting region series of all runs, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/extract_runs.py"


rule read_series:
    input:
        series=lambda wc: [s.series for s in LISTINGS[wc.cohort].members(wc.shard)],
        labels=lambda wc: LISTINGS[wc.cohort].labels or [],
    output:
        series="results/{cohort}/timeseries/{atlas}/{shard}.safetensors",
        quality="results/{cohort}/timeseries/{atlas}/{shard}-quality.parquet",
        coverage="results/{cohort}/timeseries/{atlas}/{shard}-coverage.parquet",
    log:
        "logs/{cohort}/read_series/{atlas}.{shard}.log",
    benchmark:
        "results/{cohort}/benchmarks/read_series/{atlas}.{shard}.tsv"
    wildcard_constraints:
        cohort=cohorts_from("timeseries"),
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        given=named(
            code=code_of("scripts/read_series.py"),
            subjects=shard_subjects,
            settings=lambda wc: settings_of(
                wc,
                "atlas",
                "labels",
                "regions",
                "header",
                "min_timepoints",
                "on_invalid",
            ),
        ),
    message:
        "Reading region series, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/read_series.py"


rule read_measures:
    input:
        stats=stats_files_of,
    output:
        measures="results/{cohort}/morphometry/measures.safetensors",
        quality="results/{cohort}/morphometry/measures-quality.parquet",
        coverage="results/{cohort}/morphometry/measures-coverage.parquet",
    log:
        "logs/{cohort}/read_measures.log",
    benchmark:
        "results/{cohort}/benchmarks/read_measures.tsv"
    wildcard_constraints:
        cohort=cohorts_yielding("morphometry"),
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
    params:
        given=named(
            code=code_of("scripts/read_measures.py"),
            subjects=measured_subjects,
            settings=lambda wc: settings_of(
                wc, "freesurfer", "columns", "missing", "on_invalid", "target"
            ),
        ),
    message:
        "Reading FreeSurfer measures ({wildcards.cohort})"
    script:
        "../scripts/read_measures.py"


rule compute_morphometry:
    input:
        measures="results/{cohort}/morphometry/measures.safetensors",
    output:
        features="results/{cohort}/features/{features}/all.safetensors",
    log:
        "logs/{cohort}/compute_morphometry/{features}.log",
    benchmark:
        "results/{cohort}/benchmarks/compute_morphometry/{features}.tsv"
    wildcard_constraints:
        cohort=cohorts_yielding("morphometry"),
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
    params:
        given=named(
            code=code_of("scripts/compute_morphometry.py"),
            settings=lambda wc: asdict(PLAN.features[wc.features].settings),
        ),
    message:
        "Preparing {wildcards.features} ({wildcards.cohort})"
    script:
        "../scripts/compute_morphometry.py"


rule compute_connectivity:
    input:
        series=lambda wc: shard_files(wc, ".safetensors"),
        quality=lambda wc: shard_files(wc, "-quality.parquet"),
    output:
        features="results/{cohort}/features/{features}/all.safetensors",
    log:
        "logs/{cohort}/compute_connectivity/{features}.log",
    benchmark:
        "results/{cohort}/benchmarks/compute_connectivity/{features}.tsv"
    wildcard_constraints:
        cohort=cohorts_yielding("connectivity"),
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(3000),
        runtime=growing(60),
    params:
        given=named(
            code=code_of("scripts/compute_connectivity.py"),
            settings=lambda wc: asdict(PLAN.features[wc.features].settings),
            by_run=averages_runs,
        ),
    message:
        "Computing {wildcards.features} ({wildcards.cohort})"
    script:
        "../scripts/compute_connectivity.py"


rule fit_connectivity:
    input:
        series=lambda wc: (
            [] if PLAN.features[wc.features].whole else shard_files(wc, ".safetensors")
        ),
        whole=lambda wc: (
            feature_file(wc, PLAN.features[wc.features].whole, wc.fold)
            if PLAN.features[wc.features].whole
            else []
        ),
        split=lambda wc: split_file(wc, PLAN.features[wc.features].split),
        participants=lambda wc: (
            f"results/{wc.cohort}/cohort/participants.parquet"
            if reads_participants(PLAN.features[wc.features].settings)
            else []
        ),
    output:
        features="results/{cohort}/features/{features}/repeat-{repeat}/fold-{fold}.safetensors",
        timing="results/{cohort}/features/{features}/repeat-{repeat}/fold-{fold}-timing.json",
    log:
        "logs/{cohort}/fit_connectivity/{features}.{repeat}.{fold}.log",
    benchmark:
        "results/{cohort}/benchmarks/fit_connectivity/{features}.{repeat}.{fold}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        given=named(
            code=code_of("scripts/fit_connectivity.py"),
            settings=lambda wc: asdict(PLAN.features[wc.features].settings),
            fold=lambda wc: int(wc.fold),
        ),
    message:
        "Fitting {wildcards.features}, repeat {wildcards.repeat}, fold {wildcards.fold} ({wildcards.cohort})"
    script:
        "../scripts/fit_connectivity.py"


rule export_cohort:
    input:
        series=lambda wc: shard_files(wc, ".safetensors"),
        quality=lambda wc: shard_files(wc, "-quality.parquet"),
        coverage=lambda wc: shard_files(wc, "-coverage.parquet"),
    output:
        folder=directory("results/{cohort}/bids"),
    log:
        "logs/{cohort}/export_cohort.log",
    benchmark:
        "results/{cohort}/benchmarks/export_cohort.tsv"
    wildcard_constraints:
        cohort=cohorts_from("bids"),
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(60),
    params:
        given=named(
            code=code_of("scripts/export_cohort.py"),
            atlas=lambda wc: cohort_of(wc).atlas,
            images=images_of_runs,
            by_run=averages_runs,
        ),
    message:
        "Writing series and correlations as BIDS files ({wildcards.cohort})"
    script:
        "../scripts/export_cohort.py"


rule export_bids:
    input:
        folders=exported_folders(),
