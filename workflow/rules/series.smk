"""Region series of all subjects in one file, for methods whose samples are series."""


rule join_series:
    input:
        series=lambda wc: COHORTS[wc.cohort].shard_files(".safetensors"),
        included="results/{cohort}/cohort/included.parquet",
    output:
        series=stage_pattern("series", part="all", repeat=""),
    log:
        "logs/{cohort}/join_series/{series}.log",
    benchmark:
        "results/{cohort}/benchmarks/join_series/{series}.tsv"
    wildcard_constraints:
        cohort=either(cohorts_yielding(PROJECT.cohorts, "connectivity")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=30),
    params:
        given=named(
            code=code_of("scripts/join_series.py"),
            settings=lambda wc: stage_of(wc, "series").values,
        ),
    message:
        "Joining region series {wildcards.series} ({wildcards.cohort})"
    script:
        "../scripts/join_series.py"
