"""A made-up cohort: its people, its atlas and their scans, as files that a lab has."""


rule simulate_atlas:
    output:
        parcellation="results/{cohort}/simulated/atlas.nii.gz",
        labels="results/{cohort}/simulated/atlas.tsv",
    log:
        "logs/{cohort}/simulate_atlas.log",
    benchmark:
        "results/{cohort}/benchmarks/simulate_atlas.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/simulate_atlas.py"),
            settings=lambda wc: COHORTS[wc.cohort].simulated_atlas(),
        ),
    message:
        "Simulating the atlas ({wildcards.cohort})"
    script:
        "../scripts/simulate_atlas.py"


rule simulate_participants:
    output:
        phenotype="results/{cohort}/simulated/participants.tsv",
        truth="results/{cohort}/simulated/truth.json",
    log:
        "logs/{cohort}/simulate_participants.log",
    benchmark:
        "results/{cohort}/benchmarks/simulate_participants.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/simulate_participants.py"),
            settings=lambda wc: COHORTS[wc.cohort].simulation(),
        ),
    message:
        "Simulating participants ({wildcards.cohort})"
    script:
        "../scripts/simulate_participants.py"


rule simulate_thickness:
    output:
        thickness="results/{cohort}/simulated/thickness.tsv",
    log:
        "logs/{cohort}/simulate_thickness.log",
    benchmark:
        "results/{cohort}/benchmarks/simulate_thickness.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=1000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/simulate_thickness.py"),
            settings=lambda wc: COHORTS[wc.cohort].simulation(),
        ),
    message:
        "Simulating cortical thickness ({wildcards.cohort})"
    script:
        "../scripts/simulate_thickness.py"


for cohort in filter(LISTINGS.get, cohorts_from(PROJECT.cohorts, "simulate")):
    for shard in LISTINGS[cohort].shards:

        rule:
            name:
                f"simulate_scans_{cohort}_{shard}"
            output:
                images=[subject.series for subject in LISTINGS[cohort].members(shard)],
            log:
                f"logs/{cohort}/simulate_scans/{shard}.log",
            benchmark:
                f"results/{cohort}/benchmarks/simulate_scans/{shard}.tsv"
            conda:
                "../envs/brainfed.yaml"
            resources:
                **job_needs(mem_mb=1000, runtime=30),
            params:
                given=named(
                    code=code_of("scripts/simulate_scans.py"),
                    subjects=[subject.subject for subject in LISTINGS[cohort].members(shard)],
                    settings=COHORTS[cohort].simulation(shard),
                ),
            message:
                f"Simulating scans, {shard} ({cohort})"
            script:
                "../scripts/simulate_scans.py"
