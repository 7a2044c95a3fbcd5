"""Public subjects of every institution, for methods whose server has data of its own."""


rule choose_public:
    input:
        unpack(stage_inputs("public", "all")),
        included="results/{cohort}/cohort/included.parquet",
    output:
        public=stage_pattern("public", part="all"),
    log:
        "logs/{cohort}/choose_public/{public}.{repeat}.log",
    benchmark:
        "results/{cohort}/benchmarks/choose_public/{public}.{repeat}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/choose_public.py"),
            settings=lambda wc: stage_of(wc, "public").values,
            **CLASSES,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
        ),
    message:
        "Choosing public subjects {wildcards.public}, repeat {wildcards.repeat} ({wildcards.cohort})"
    script:
        "../scripts/choose_public.py"
