"""Connectomes as graphs of regions, for methods whose samples are whole graphs."""


rule build_connectomes:
    input:
        unpack(lambda wc: LAYOUT.connectome_inputs(stage_of(wc, "connectomes"), wc.cohort)),
    output:
        connectomes=stage_pattern("connectomes", part="all", repeat=""),
    log:
        "logs/{cohort}/build_connectomes/{connectomes}.log",
    benchmark:
        "results/{cohort}/benchmarks/build_connectomes/{connectomes}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=30),
    params:
        given=named(
            code=code_of("scripts/build_connectomes.py"),
            settings=lambda wc: stage_of(wc, "connectomes").values,
        ),
    message:
        "Building connectomes {wildcards.connectomes} ({wildcards.cohort})"
    script:
        "../scripts/build_connectomes.py"


use rule build_connectomes as build_fitted_connectomes with:
    input:
        unpack(
            lambda wc: LAYOUT.connectome_inputs(stage_of(wc, "connectomes"), wc.cohort, wc.repeat, f"fold-{wc.fold}")
        ),
    output:
        connectomes=stage_pattern("connectomes", part="fold-{fold}"),
        timing=timing_of(stage_pattern("connectomes", part="fold-{fold}")),
    log:
        "logs/{cohort}/build_fitted_connectomes/{connectomes}.{repeat}.{fold}.log",
    benchmark:
        "results/{cohort}/benchmarks/build_fitted_connectomes/{connectomes}.{repeat}.{fold}.tsv"
    message:
        "Building connectomes {wildcards.connectomes}, repeat {wildcards.repeat}, fold {wildcards.fold} ({wildcards.cohort})"
