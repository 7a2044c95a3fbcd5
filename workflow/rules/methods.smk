"""One job a method, cohort and repeat, with all folds inside."""

# What every training leaves.
TRAINED = {
    name.partition(".")[0]: method_file("{cohort}", "{regime}", "{variant}", "{repeat}", name)
    for name in (
        "predictions.parquet",
        "history.parquet",
        "cost.json",
        "timing.json",
        "patterns.safetensors",
        "members.parquet",
        "privacy.json",
    )
}


rule train_method:
    input:
        unpack(lambda wc: LAYOUT.method_inputs(variant_of(wc), wc.regime, wc.cohort, wc.repeat)),
    output:
        **TRAINED,
    log:
        "logs/{cohort}/methods/{regime}/{variant}/repeat-{repeat}.log",
    benchmark:
        "results/{cohort}/benchmarks/train_method/{regime}.{variant}.{repeat}.tsv"
    wildcard_constraints:
        regime=f"(?!{WITH_MODEL})[^/]+",
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        **job_needs(mem_mb=8000, runtime=240),
        gpu=lambda wc: gpus(int(variant_of(wc).method.capabilities.gpu)),
    params:
        given=named(
            code=lambda wc: code_of(
                "scripts/train_method.py",
                variant_of(wc).method.entry,
                class_path(variant_of(wc).method.settings),
                *entries_of_model(wc),
            ),
            entry=lambda wc: variant_of(wc).method.entry,
            settings_class=lambda wc: class_path(variant_of(wc).method.settings),
            settings=lambda wc: variant_of(wc).settings,
            classes=lambda wc: list(PROJECT.cohorts[wc.cohort].score_names),
            labels=lambda wc: PLAN.regimes[wc.regime].labels,
            folds=lambda wc: LAYOUT.folds(wc.cohort, PLAN.regimes[wc.regime].split),
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
            threads=PROJECT.threads,
            kept=kept_of,
            **joint(lambda wc: trains_jointly(variant_of(wc))),
        ),
    message:
        "Training {wildcards.variant}, repeat {wildcards.repeat} ({wildcards.cohort}, {wildcards.regime})"
    script:
        "../scripts/train_method.py"


use rule train_method as train_kept_method with:
    input:
        unpack(lambda wc: LAYOUT.kept_inputs(variant_of(wc), wc.regime, wc.cohort, wc.repeat)),
    output:
        **TRAINED,
        model="results/{cohort}/methods/{regime}/{variant}/repeat-{repeat}/model.safetensors",
    benchmark:
        "results/{cohort}/benchmarks/train_kept_method/{regime}.{variant}.{repeat}.tsv"
    wildcard_constraints:
        regime=WITH_MODEL,
    message:
        "Training {wildcards.variant} and keeping its models, repeat {wildcards.repeat} ({wildcards.cohort}, {wildcards.regime})"
