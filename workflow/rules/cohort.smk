"""Subjects: ingested, included, split."""


rule ingest_phenotypes:
    input:
        phenotype=lambda wc: LISTINGS[wc.cohort].phenotype,
        confounds=lambda wc: COHORTS[wc.cohort].motion_tables(),
    output:
        participants="results/{cohort}/cohort/participants.parquet",
    log:
        "logs/{cohort}/ingest_phenotypes.log",
    benchmark:
        "results/{cohort}/benchmarks/ingest_phenotypes.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
        shell_exec=JOB_SHELL,
    params:
        given=named(
            code=code_of("scripts/ingest_phenotypes.py"),
            settings=lambda wc: COHORTS[wc.cohort].phenotype_settings(),
            absences=lambda wc: LISTINGS[wc.cohort].absences,
            confounds=lambda wc: LISTINGS[wc.cohort].motion_tables,
        ),
    message:
        "Reading the phenotype table ({wildcards.cohort})"
    script:
        "../scripts/ingest_phenotypes.py"


rule measure_quality:
    input:
        participants="results/{cohort}/cohort/participants.parquet",
        series=lambda wc: COHORTS[wc.cohort].series_files(),
        quality=lambda wc: COHORTS[wc.cohort].shard_files("-quality.parquet"),
        coverage=lambda wc: COHORTS[wc.cohort].shard_files("-coverage.parquet"),
    output:
        measures="results/{cohort}/cohort/quality.parquet",
        crossings="results/{cohort}/cohort/quality-crossings.json",
    log:
        "logs/{cohort}/measure_quality.log",
    benchmark:
        "results/{cohort}/benchmarks/measure_quality.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
        shell_exec=JOB_SHELL,
    params:
        given=named(
            code=code_of("scripts/measure_quality.py"),
            alike=lambda wc: PROJECT.cohorts[wc.cohort].flag.alike,
            min_coverage=lambda wc: PROJECT.cohorts[wc.cohort].min_coverage,
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
        ),
    message:
        "Measuring quality ({wildcards.cohort})"
    script:
        "../scripts/measure_quality.py"


rule include_subjects:
    input:
        participants="results/{cohort}/cohort/participants.parquet",
        measures="results/{cohort}/cohort/quality.parquet",
        quality=lambda wc: COHORTS[wc.cohort].shard_files("-quality.parquet"),
    output:
        included="results/{cohort}/cohort/included.parquet",
        crossings="results/{cohort}/cohort/included-crossings.json",
    log:
        "logs/{cohort}/include_subjects.log",
    benchmark:
        "results/{cohort}/benchmarks/include_subjects.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
        shell_exec=JOB_SHELL,
    params:
        given=named(
            code=code_of("scripts/include_subjects.py"),
            settings=lambda wc: COHORTS[wc.cohort].inclusion_settings(),
        ),
    message:
        "Selecting included subjects ({wildcards.cohort})"
    script:
        "../scripts/include_subjects.py"


rule list_issues:
    input:
        participants="results/{cohort}/cohort/participants.parquet",
        measures="results/{cohort}/cohort/quality.parquet",
        included="results/{cohort}/cohort/included.parquet",
        quality=lambda wc: COHORTS[wc.cohort].shard_files("-quality.parquet"),
        coverage=lambda wc: COHORTS[wc.cohort].shard_files("-coverage.parquet"),
        further=lambda wc: COHORTS[wc.cohort].further_quality(),
    output:
        issues=if_subjects_may_be_shown(
            "results/{cohort}/cohort/issues.tsv",
            caption="../report/issues.rst",
            category="Data and quality",
            subcategory="{cohort}",
            labels={"table": "issues"},
        ),
    log:
        "logs/{cohort}/list_issues.log",
    benchmark:
        "results/{cohort}/benchmarks/list_issues.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
        shell_exec=JOB_SHELL,
    params:
        given=named(
            code=code_of("scripts/list_issues.py"),
            settings=lambda wc: COHORTS[wc.cohort].settings_of(
                "source",
                "codes",
                "min_coverage",
                "exclude",
                "flag",
                "target",
                "classes",
            ),
            strangers=lambda wc: COHORTS[wc.cohort].subjects_not_in_the_table(),
        ),
    message:
        "Listing issues of the data ({wildcards.cohort})"
    script:
        "../scripts/list_issues.py"


rule relate_motion:
    input:
        series=lambda wc: COHORTS[wc.cohort].series_files(),
        participants="results/{cohort}/cohort/participants.parquet",
        measures="results/{cohort}/cohort/quality.parquet",
        included="results/{cohort}/cohort/included.parquet",
    output:
        connections="results/{cohort}/cohort/qc-fc.parquet",
    log:
        "logs/{cohort}/relate_motion.log",
    benchmark:
        "results/{cohort}/benchmarks/relate_motion.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(2000),
        runtime=growing(30),
        shell_exec=JOB_SHELL,
    params:
        given=named(
            code=code_of("scripts/relate_motion.py"),
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
        ),
    message:
        "Relating connectivity to motion ({wildcards.cohort})"
    script:
        "../scripts/relate_motion.py"


rule split_subjects:
    input:
        included="results/{cohort}/cohort/included.parquet",
        participants="results/{cohort}/cohort/participants.parquet",
    output:
        split="results/{cohort}/splits/{split}/repeat-{repeat}.parquet",
    log:
        "logs/{cohort}/split_subjects/{split}.{repeat}.log",
    benchmark:
        "results/{cohort}/benchmarks/split_subjects/{split}.{repeat}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(1000),
        runtime=growing(10),
        shell_exec=JOB_SHELL,
    params:
        given=named(
            code=code_of("scripts/split_subjects.py"),
            settings=lambda wc: split_content(PLAN.splits[wc.split]),
            target=lambda wc: PROJECT.cohorts[wc.cohort].target,
            classes=lambda wc: list(PROJECT.cohorts[wc.cohort].classes),
            sites=list(PROJECT.study.ordered),
            site=PROJECT.study.site,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
        ),
    message:
        "Drawing split {wildcards.split}, repeat {wildcards.repeat} ({wildcards.cohort})"
    script:
        "../scripts/split_subjects.py"
