"""Population graphs: one a repeat, or one a fold where test subjects may be in no fit."""


rule build_graph:
    input:
        unpack(stage_inputs("graph")),
    output:
        graph=stage_pattern("graph"),
        timing=timing_of(stage_pattern("graph")),
    log:
        "logs/{cohort}/graphs/{graph}/repeat-{repeat}/{part}.log",
    benchmark:
        "results/{cohort}/benchmarks/build_graph/{graph}.{repeat}.{part}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        **job_needs(mem_mb=4000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/build_graph.py"),
            settings=lambda wc: stage_of(wc, "graph").values,
            protocol=lambda wc: stage_of(wc, "graph").protocol,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
            fold=lambda wc: (-1 if wc.part == "all" else int(wc.part.removeprefix("fold-"))),
            threads=PROJECT.threads,
        ),
    message:
        "Building graph {wildcards.graph}, repeat {wildcards.repeat}, {wildcards.part} ({wildcards.cohort})"
    script:
        "../scripts/build_graph.py"
