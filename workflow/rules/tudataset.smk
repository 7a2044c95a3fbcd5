"""Public graphs, as molecules: read, and their sizes drawn."""


rule read_graphs:
    input:
        files=lambda wc: COHORTS[wc.cohort].graph_files(),
    output:
        graphs=graphs_file("{cohort}"),
        quality="results/{cohort}/graphs-read/graphs-quality.parquet",
        coverage="results/{cohort}/graphs-read/graphs-coverage.parquet",
    log:
        "logs/{cohort}/read_graphs.log",
    benchmark:
        "results/{cohort}/benchmarks/read_graphs.tsv"
    wildcard_constraints:
        cohort=either(cohorts_from(PROJECT.cohorts, "tudataset")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=30),
    params:
        given=named(
            code=code_of("scripts/read_graphs.py"),
            folders=lambda wc: COHORTS[wc.cohort].graph_folders(),
            subjects=lambda wc: COHORTS[wc.cohort].graphs_of_data_sets(),
        ),
    message:
        "Reading graphs ({wildcards.cohort})"
    script:
        "../scripts/read_graphs.py"


rule draw_graph_sizes:
    input:
        graphs=graphs_file("{cohort}"),
        participants=participants_file("{cohort}", ["site", "diagnosis"]),
        included="results/{cohort}/cohort/included.parquet",
    output:
        sizes=drawn("sizes", "Data and quality", "sizes of graphs"),
        summary="results/{cohort}/figures/graphs.json",
    log:
        "logs/{cohort}/draw_graph_sizes.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_graph_sizes.tsv"
    wildcard_constraints:
        cohort=either(cohorts_from(PROJECT.cohorts, "tudataset")),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/draw_graph_sizes.py"),
            classes=lambda wc: list(PROJECT.cohorts[wc.cohort].classes),
        ),
    message:
        "Drawing the sizes of graphs ({wildcards.cohort})"
    script:
        "../scripts/draw_graph_sizes.py"
