"""Scores and tests of every experiment, from the predictions alone."""


rule score_experiment:
    input:
        predictions=files_of_variants("predictions.parquet"),
        splits=lambda wc: LAYOUT.splits(wc.cohort, PLAN.experiments[wc.experiment]),
        participants=lambda wc: LAYOUT.labels_beside(
            wc.cohort, PLAN.experiments[wc.experiment]
        ),
    output:
        summary=report(
            table_pattern(),
            caption="../report/summary.rst",
            category="Scores",
            subcategory="{cohort}",
            labels={"experiment": "{experiment}", "table": "mean and deviation"},
        ),
        runs=table_pattern("-runs"),
        tests=report(
            table_pattern("-tests"),
            caption="../report/tests.rst",
            category="Scores",
            subcategory="{cohort}",
            labels={"experiment": "{experiment}", "table": "tests"},
        ),
        gain=table_pattern("-gain"),
        confusion=report(
            table_pattern("-confusion"),
            caption="../report/confusion.rst",
            category="Scores",
            subcategory="{cohort}",
            labels={"experiment": "{experiment}", "table": "confusion matrices"},
        ),
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
            repeats=lambda wc: PLAN.experiments[wc.experiment].repeats,
            reference=lambda wc: PLAN.experiments[wc.experiment].settings.reference,
            twins=lambda wc: twins_of(PLAN.experiments[wc.experiment]),
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
        table=report(
            table_pattern("-clients"),
            caption="../report/institutions.rst",
            category="Scores",
            subcategory="{cohort}",
            labels={"experiment": "{experiment}", "table": "gain of institutions"},
        ),
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
            variants=lambda wc: [
                variant.name
                for variant in clustered_variants(PLAN.experiments[wc.experiment])
            ],
            repeats=lambda wc: PLAN.experiments[wc.experiment].repeats,
            twins=lambda wc: local_counterparts(PLAN.experiments[wc.experiment]),
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
        table=report(
            table_pattern("-audit"),
            caption="../report/audit.rst",
            category="Scores",
            subcategory="{cohort}",
            labels={"experiment": "{experiment}", "table": "attacks on membership"},
        ),
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
            repeats=lambda wc: PLAN.experiments[wc.experiment].repeats,
        ),
    message:
        "Attacking the models of {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/audit_experiment.py"
