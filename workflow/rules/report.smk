"""Figures, and the report that holds them all in one file."""


rule draw_cohort:
    input:
        participants="results/{cohort}/cohort/participants.parquet",
        included="results/{cohort}/cohort/included.parquet",
        measures="results/{cohort}/cohort/quality.parquet",
        connections="results/{cohort}/cohort/qc-fc.parquet",
        coverage=lambda wc: COHORTS[wc.cohort].shard_files("-coverage.parquet"),
    output:
        flow=drawn("flow", "Data and quality", "who is analysed"),
        sites=drawn("sites", "Data and quality", "sites"),
        ages=drawn("ages", "Data and quality", "age"),
        series=drawn("series", "Data and quality", "scans"),
        motion=drawn("motion", "Data and quality", "motion"),
        quality=drawn("quality", "Data and quality", "signal and coverage"),
    log:
        "logs/{cohort}/draw_cohort.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_cohort.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/draw_cohort.py"),
            flag=lambda wc: asdict(PROJECT.cohorts[wc.cohort].flag),
            **CLASSES,
        ),
    message:
        "Drawing subjects and scans ({wildcards.cohort})"
    script:
        "../scripts/draw_cohort.py"


rule draw_connectivity:
    input:
        series=lambda wc: COHORTS[wc.cohort].shard_files(".safetensors"),
        participants=participants_file("{cohort}", ["site", "diagnosis"]),
        included="results/{cohort}/cohort/included.parquet",
        parcellation=lambda wc: COHORTS[wc.cohort].atlas_file("parcellation"),
        labels=lambda wc: COHORTS[wc.cohort].atlas_file("labels"),
    output:
        means=drawn("means", "Connectivity", "mean matrices"),
        effects=drawn("effects", "Connectivity", "effect sizes"),
        strongest=drawn("strongest", "Connectivity", "strongest differences"),
        summary="results/{cohort}/figures/connectivity.json",
    log:
        "logs/{cohort}/draw_connectivity.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_connectivity.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=3000, runtime=20),
    params:
        given=named(
            code=code_of("scripts/draw_connectivity.py"),
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
            **CLASSES,
        ),
    message:
        "Drawing connectivity ({wildcards.cohort})"
    script:
        "../scripts/draw_connectivity.py"


rule draw_measures:
    input:
        measures="results/{cohort}/morphometry/measures.safetensors",
        participants=participants_file("{cohort}", ["site", "diagnosis"]),
        included="results/{cohort}/cohort/included.parquet",
    output:
        measures=drawn("measures", "Measures", "effect sizes"),
        summary="results/{cohort}/figures/measures.json",
    log:
        "logs/{cohort}/draw_measures.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_measures.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/draw_measures.py"),
            **CLASSES,
        ),
    message:
        "Drawing FreeSurfer measures ({wildcards.cohort})"
    script:
        "../scripts/draw_measures.py"


rule draw_graphs:
    input:
        graphs=lambda wc: [graph for _, graph, _ in drawn_graphs(LAYOUT, wc.cohort)],
        splits=lambda wc: [split for _, _, split in drawn_graphs(LAYOUT, wc.cohort)],
        participants=participants_file("{cohort}", ["site", "age", "sex", "diagnosis"]),
    output:
        graph=drawn("graph", "Graphs", "one institution"),
        homophily=drawn("homophily", "Graphs", "homophily"),
        degrees=drawn("degrees", "Graphs", "degrees"),
        table="results/{cohort}/figures/homophily.tsv",
        site_trace="results/{cohort}/figures/site-trace.tsv",
    log:
        "logs/{cohort}/draw_graphs.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_graphs.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=20),
    params:
        given=named(
            code=code_of("scripts/draw_graphs.py"),
            **CLASSES,
            stages=lambda wc: [stage for stage, _, _ in drawn_graphs(LAYOUT, wc.cohort)],
        ),
    message:
        "Drawing population graphs ({wildcards.cohort})"
    script:
        "../scripts/draw_graphs.py"


rule draw_scopes:
    input:
        unpack(lambda wc: scope_inputs(LAYOUT, experiment_of(wc), wc.cohort)),
    output:
        scopes=drawn_scores("scopes", "cut and own graphs", category="Graphs"),
    log:
        "logs/{cohort}/draw_scopes/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_scopes/{experiment}.tsv"
    wildcard_constraints:
        experiment=either(experiments_with(PLAN, cuts)),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/draw_scopes.py"),
        ),
    message:
        "Drawing the scopes of graphs, {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/draw_scopes.py"


rule draw_experiment:
    input:
        predictions=files_of_variants("predictions.parquet"),
        splits=lambda wc: (
            LAYOUT.splits(wc.cohort, experiment_of(wc)) if experiment_of(wc).split.trains_untested else []
        ),
        people="results/{cohort}/cohort/participants.parquet",
        included="results/{cohort}/cohort/included.parquet",
        quality="results/{cohort}/cohort/quality.parquet",
        ledgers=lambda wc: outline_files(ledgers_of(wc)),
        histories=files_of_variants("history.parquet"),
        runs=table_pattern("-runs"),
        tests=table_pattern("-tests"),
        gain=table_pattern("-gain"),
    output:
        headline=drawn_scores("headline", "the answer"),
        forest=drawn_scores("forest", "all methods"),
        differences=drawn_scores("differences", "differences"),
        roc=drawn_scores("roc", "ROC"),
        calibration=drawn_scores("calibration", "calibration"),
        confusion=drawn_scores("confusion", "confusion matrices"),
        operating=drawn_scores("operating", "sensitivity at a fixed specificity"),
        subgroups=drawn_scores("subgroups", "sex, age, motion and site"),
        traffic=drawn_scores("traffic", "AUC against bytes"),
        gain=drawn_scores("gain", "federated minus its counterparts"),
        learning=drawn_scores("learning", "curves", category="Learning"),
    log:
        "logs/{cohort}/draw_experiment/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_experiment/{experiment}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=20),
    params:
        given=named(
            code=code_of("scripts/draw_experiment.py"),
            **CLASSES,
            pooled=lambda wc: PROJECT.cohorts[wc.cohort].one_task,
            variants=ledgers_of,
            repeats=lambda wc: experiment_of(wc).repeats,
            reference=lambda wc: experiment_of(wc).settings.reference,
        ),
    message:
        "Drawing experiment {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/draw_experiment.py"


rule draw_leakage:
    input:
        summary=table_pattern(),
        audit=table_pattern("-audit"),
        ledgers=lambda wc: outline_files(ledgers_of(wc)),
    output:
        leakage=drawn_scores("leakage", "score, leakage and traffic"),
    log:
        "logs/{cohort}/draw_leakage/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_leakage/{experiment}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/draw_leakage.py"),
            **CLASSES,
            variants=ledgers_of,
        ),
    message:
        "Drawing what models reveal, {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/draw_leakage.py"


rule draw_clusters:
    input:
        histories=files_of_variants("history.parquet", clustered_variants, repeats=1),
    output:
        clusters=drawn_scores("clusters", "clusters", category="Learning"),
    log:
        "logs/{cohort}/draw_clusters/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_clusters/{experiment}.tsv"
    wildcard_constraints:
        experiment=either(experiments_with(PLAN, clustered_variants)),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/draw_clusters.py"),
            variants=lambda wc: [
                shown_variant(variant, experiment_of(wc)) for variant in clustered_variants(experiment_of(wc))
            ],
        ),
    message:
        "Drawing clusters, {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/draw_clusters.py"


rule draw_patterns:
    input:
        patterns=files_of_variants("patterns.safetensors", explained_variants),
        predictions=files_of_variants("predictions.parquet", explained_variants),
        parcellation=lambda wc: COHORTS[wc.cohort].atlas_file("parcellation"),
        labels=lambda wc: COHORTS[wc.cohort].atlas_file("labels"),
        truth=lambda wc: truth_file(wc.cohort, PROJECT.cohorts[wc.cohort]),
    output:
        patterns=drawn_scores("patterns", "what drives the prediction"),
        table=shown_table("-patterns", "patterns", "strongest connections"),
        planted=table_pattern("-planted"),
        views=table_pattern("-views"),
    log:
        "logs/{cohort}/draw_patterns/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/draw_patterns/{experiment}.tsv"
    wildcard_constraints:
        experiment=either(experiments_with(PLAN, explained_variants)),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=20),
    params:
        given=named(
            code=code_of("scripts/draw_patterns.py"),
            seed=PROJECT.seed,
            **CLASSES,
            variants=lambda wc: [
                shown_variant(variant, experiment_of(wc)) for variant in explained_variants(experiment_of(wc))
            ],
        ),
    message:
        "Drawing what drives the prediction, {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/draw_patterns.py"


rule follow_subjects:
    input:
        participants="results/{cohort}/cohort/participants.parquet",
        included="results/{cohort}/cohort/included.parquet",
        measures="results/{cohort}/cohort/quality.parquet",
        issues="results/{cohort}/cohort/issues.tsv",
        series=lambda wc: COHORTS[wc.cohort].series_files(),
        predictions=files_of_variants("predictions.parquet"),
    output:
        subjects="results/{cohort}/tables/{experiment}-subjects.json",
    log:
        "logs/{cohort}/follow_subjects/{experiment}.log",
    benchmark:
        "results/{cohort}/benchmarks/follow_subjects/{experiment}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=3000, runtime=20),
    params:
        given=named(
            code=code_of("scripts/follow_subjects.py"),
            by_run=lambda wc: COHORTS[wc.cohort].averages_runs(),
            **CLASSES,
            variants=names_of_variants,
            repeats=lambda wc: experiment_of(wc).repeats,
        ),
    message:
        "Following the subjects of issues, {wildcards.experiment} ({wildcards.cohort})"
    script:
        "../scripts/follow_subjects.py"


for kind, title in PAPER_FIGURES.items():

    rule:
        name:
            f"draw_{kind}"
        input:
            results=lambda wc: outline_files(figure_outline(LAYOUT, wc.cohort, wc.experiment)),
        output:
            figure=drawn_scores(kind, title, "The paper's figures"),
        log:
            f"logs/{{cohort}}/draw_{kind}/{{experiment}}.log",
        benchmark:
            f"results/{{cohort}}/benchmarks/draw_{kind}/{{experiment}}.tsv"
        wildcard_constraints:
            experiment=either(groups_drawn_as(PLAN, kind)),
        conda:
            "../envs/brainfed.yaml"
        resources:
            **job_needs(mem_mb=3000, runtime=20),
        params:
            given=named(
                code=code_of("scripts/draw_paper_figure.py"),
                kind=kind,
                experiment=lambda wc: figure_outline(LAYOUT, wc.cohort, wc.experiment),
            ),
        message:
            f"Drawing {title}, {{wildcards.experiment}} ({{wildcards.cohort}})"
        script:
            "../scripts/draw_paper_figure.py"


rule write_report:
    input:
        results=lambda wc: [] if FETCHING else report_files(outline_of(wc)),
        captions=files_of_the_workflow("report", "*.rst"),
        templates=files_of_the_workflow("brainfed", "reporting/templates/**/*.*", "papers/templates/*/*"),
    output:
        report=report(
            "results/reports/{page}.html",
            caption="../report/report.rst",
            category="Provenance",
            labels={"report": "{page}, the whole report as one page"},
        ),
    log:
        "logs/write_report/{page}.log",
    benchmark:
        "results/reports/benchmarks/write_report/{page}.tsv"
    wildcard_constraints:
        page=either(REPORTS),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/write_report.py"),
            outline=outline_of,
        ),
    message:
        "Writing the report {wildcards.page}"
    script:
        "../scripts/write_report.py"
