"""Scores and tests of every experiment, from the predictions alone."""


rule score_experiment:
    input:
        predictions=files_of_variants("predictions.parquet"),
        splits=lambda wc: LAYOUT.splits(wc.cohort, experiment_of(wc)),
        participants=lambda wc: LAYOUT.labels_beside(wc.cohort, experiment_of(wc)),
    output:
        summary=shown_table("", "summary", "mean and deviation"),
        runs=table_pattern("-runs"),
        tests=shown_table("-tests", "tests", "tests"),
        gain=table_pattern("-gain"),
        confusion=shown_table("-confusion", "confusion", "confusion matrices"),
    log:
        "logs/{cohort}/score_experiment/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/score_experiment/{experiment}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=30),
    params:
        given=named(
            code=code_of("scripts/score_experiment.py"),
            variants=names_of_variants,
            repeats=lambda wc: experiment_of(wc).repeats,
            reference=lambda wc: experiment_of(wc).settings.reference,
            counterparts=lambda wc: counterparts_of(experiment_of(wc)),
            pooled=lambda wc: PROJECT.cohorts[wc.cohort].one_task,
        ),
    message:
        "Scoring experiment {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/score_experiment.py"


rule score_institutions:
    input:
        runs=table_pattern("-runs"),
        histories=files_of_variants("history.parquet", clustered_variants),
    output:
        table=shown_table("-clients", "institutions", "gain of institutions"),
    log:
        "logs/{cohort}/score_institutions/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/score_institutions/{experiment}.tsv"
    wildcard_constraints:
        experiment=either(experiments_with(PLAN, clustered_variants)),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/score_institutions.py"),
            variants=lambda wc: [variant.name for variant in clustered_variants(experiment_of(wc))],
            repeats=lambda wc: experiment_of(wc).repeats,
            counterparts=lambda wc: local_counterparts(experiment_of(wc)),
        ),
    message:
        "Scoring institutions, {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/score_institutions.py"


rule audit_experiment:
    input:
        predictions=files_of_variants("predictions.parquet"),
        members=files_of_variants("members.parquet"),
        included="results/{cohort}/cohort/included.parquet",
    output:
        table=shown_table("-audit", "audit", "attacks on membership"),
    log:
        "logs/{cohort}/audit_experiment/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/audit_experiment/{experiment}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=20),
    params:
        given=named(
            code=code_of("scripts/audit_experiment.py"),
            variants=names_of_variants,
            repeats=lambda wc: experiment_of(wc).repeats,
        ),
    message:
        "Attacking the models of {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/audit_experiment.py"
