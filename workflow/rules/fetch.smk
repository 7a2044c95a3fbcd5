"""Downloads, by name alone: public data and atlases. Nothing downloads on a compute node."""


rule fetch_abide:
    log:
        "logs/fetch_abide.log",
    # No output: it runs whenever it is asked for, and brings what is missing.
    localrule: True
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=600),
    params:
        given=named(
            folder="resources/abide",
        ),
    message:
        "Downloading ABIDE I (Preprocessed Connectomes Project, C-PAC, CC200)"
    script:
        "../scripts/fetch_abide.py"


rule fetch_atlases:
    log:
        "logs/fetch_atlases.log",
    # No output, as above: no other rule downloads.
    localrule: True
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=60),
    params:
        given=named(
            names=atlases_to_fetch(PROJECT.cohorts),
            folder=FOLDER,
        ),
    message:
        "Downloading atlases: {params.given[names]}"
    script:
        "../scripts/fetch_atlases.py"


rule fetch_tudatasets:
    log:
        "logs/fetch_tudatasets.log",
    # No output, as above.
    localrule: True
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=60),
    params:
        given=named(
            data_sets=data_sets_to_fetch(PROJECT.cohorts),
        ),
    message:
        "Downloading data sets of graphs (TU Dortmund collection)"
    script:
        "../scripts/fetch_tudatasets.py"
