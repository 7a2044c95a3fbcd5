"""Region series and what is computed from them."""


rule extract_series:
    input:
        images=lambda wc: [s.series for s in LISTINGS[wc.cohort].members(wc.shard)],
        confounds=lambda wc: [
            s.confounds for s in LISTINGS[wc.cohort].members(wc.shard) if s.confounds
        ],
        parcellation=lambda wc: LISTINGS[wc.cohort].parcellation,
        labels=lambda wc: LISTINGS[wc.cohort].labels,
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
        mem_mb=2000,
        runtime=120,
    params:
        code=code_digest("scripts/extract_series.py", base=BASE),
        subjects=shard_subjects,
        settings=lambda wc: settings_of(
            wc,
            "atlas",
            "extraction",
            "confound_columns",
            "min_timepoints",
            "on_invalid",
        ),
    message:
        "Extracting region series, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/extract_series.py"


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
        mem_mb=2000,
        runtime=60,
    params:
        code=code_digest("scripts/read_series.py", base=BASE),
        subjects=shard_subjects,
        settings=lambda wc: settings_of(
            wc, "atlas", "labels", "regions", "min_timepoints", "on_invalid"
        ),
    message:
        "Reading region series, {wildcards.shard} ({wildcards.cohort})"
    script:
        "../scripts/read_series.py"


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
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=3000,
        runtime=60,
    params:
        code=code_digest("scripts/compute_connectivity.py", base=BASE),
        settings=lambda wc: asdict(PLAN.features[wc.features].settings),
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
            if PLAN.features[wc.features].settings.reads_labels
            else []
        ),
    output:
        features="results/{cohort}/features/{features}/repeat-{repeat}/fold-{fold}.safetensors",
    log:
        "logs/{cohort}/fit_connectivity/{features}.{repeat}.{fold}.log",
    benchmark:
        "results/{cohort}/benchmarks/fit_connectivity/{features}.{repeat}.{fold}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        code=code_digest("scripts/fit_connectivity.py", base=BASE),
        settings=lambda wc: asdict(PLAN.features[wc.features].settings),
        fold=lambda wc: int(wc.fold),
    message:
        "Fitting {wildcards.features}, repeat {wildcards.repeat}, fold {wildcards.fold} ({wildcards.cohort})"
    script:
        "../scripts/fit_connectivity.py"
