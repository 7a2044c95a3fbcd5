"""Subjects: ingested, included, split.

What a start reads of a phenotype table are parameters of its jobs, one file for each set of columns that other jobs
read: no change of a table runs more again than the jobs that read the column.
"""


rule ingest_phenotypes:
    input:
        simulated=lambda wc: COHORTS[wc.cohort].simulated_table(),
        confounds=lambda wc: COHORTS[wc.cohort].motion_tables(columns_of(wc)),
    output:
        participants="results/{cohort}/cohort/participants.parquet",
    log:
        "logs/{cohort}/ingest_phenotypes.log",
    benchmark:
        "results/{cohort}/benchmarks/ingest_phenotypes.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/ingest_phenotypes.py"),
            ingested=lambda wc: COHORTS[wc.cohort].ingested(columns_of(wc)),
        ),
    message:
        "Writing the participants ({wildcards.cohort})"
    script:
        "../scripts/ingest_phenotypes.py"


use rule ingest_phenotypes as ingest_columns with:
    output:
        participants="results/{cohort}/cohort/participants/{columns}.parquet",
    log:
        "logs/{cohort}/ingest_columns/{columns}.log",
    benchmark:
        "results/{cohort}/benchmarks/ingest_columns/{columns}.tsv"
    message:
        "Writing {wildcards.columns} of the participants ({wildcards.cohort})"


rule measure_scans:
    input:
        participants=participants_file("{cohort}", ["site", "labelled", "series"]),
        series=lambda wc: COHORTS[wc.cohort].series_files(),
        quality=lambda wc: COHORTS[wc.cohort].shard_files("-quality.parquet"),
        coverage=lambda wc: COHORTS[wc.cohort].shard_files("-coverage.parquet"),
    output:
        measures="results/{cohort}/cohort/scans.parquet",
        crossings="results/{cohort}/cohort/scans-crossings.json",
    log:
        "logs/{cohort}/measure_scans.log",
    benchmark:
        "results/{cohort}/benchmarks/measure_scans.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=30),
    params:
        given=named(
            code=code_of("scripts/measure_scans.py"),
            alike=lambda wc: PROJECT.cohorts[wc.cohort].flag.alike,
            min_coverage=lambda wc: PROJECT.cohorts[wc.cohort].min_coverage,
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
        ),
    message:
        "Measuring the quality of scans ({wildcards.cohort})"
    script:
        "../scripts/measure_scans.py"


rule measure_quality:
    input:
        participants=participants_file("{cohort}", ["mean_fd"]),
        measures="results/{cohort}/cohort/scans.parquet",
    output:
        measures="results/{cohort}/cohort/quality.parquet",
    log:
        "logs/{cohort}/measure_quality.log",
    benchmark:
        "results/{cohort}/benchmarks/measure_quality.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/measure_quality.py"),
        ),
    message:
        "Joining quality and motion ({wildcards.cohort})"
    script:
        "../scripts/measure_quality.py"


rule include_subjects:
    input:
        participants=participants_file("{cohort}", ["site", "labelled", "series"]),
        measures=lambda wc: COHORTS[wc.cohort].inclusion_measures(),
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
    resources:
        **job_needs(mem_mb=1000, runtime=10),
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
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/list_issues.py"),
            settings=lambda wc: COHORTS[wc.cohort].settings_of(
                "source", "codes", "min_coverage", "exclude", "flag", "target", "classes"
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
        participants=participants_file("{cohort}", ["site", "labelled", "series"]),
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
    resources:
        **job_needs(mem_mb=2000, runtime=30),
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
        participants=participants_file("{cohort}", ["site", "diagnosis"]),
    output:
        split="results/{cohort}/splits/{split}/repeat-{repeat}.parquet",
    log:
        "logs/{cohort}/split_subjects/{split}.{repeat}.log",
    benchmark:
        "results/{cohort}/benchmarks/split_subjects/{split}.{repeat}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/split_subjects.py"),
            settings=lambda wc: split_content(PLAN.splits[wc.split]),
            agree=lambda wc: PROJECT.cohorts[wc.cohort].refuses_contradictions,
            **CLASSES,
            sites=list(PROJECT.study.ordered),
            site=PROJECT.study.site,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
        ),
    message:
        "Drawing split {wildcards.split}, repeat {wildcards.repeat} ({wildcards.cohort})"
    script:
        "../scripts/split_subjects.py"
