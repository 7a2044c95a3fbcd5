"""Generators of missing neighbours, and the graphs that they complete.

Neither is given a diagnosis. What they are made of may have been chosen with one: under RFE the features, or the columns
that compare subjects, come from the training labels of the fold.
"""


rule train_generator:
    input:
        split=lambda wc: split_file(wc, PLAN.inpaintings[wc.inpainting].graph.split),
        participants="results/{cohort}/cohort/participants.parquet",
        features=lambda wc: part_of_features(
            wc, PLAN.inpaintings[wc.inpainting].graph.features
        ),
        graph=lambda wc: part_of_graph(wc, PLAN.inpaintings[wc.inpainting].graph),
    output:
        generator="results/{cohort}/inpainting/{inpainting}/repeat-{repeat}/{part}/generator.safetensors",
        history="results/{cohort}/inpainting/{inpainting}/repeat-{repeat}/{part}/history.parquet",
        cost="results/{cohort}/inpainting/{inpainting}/repeat-{repeat}/{part}/cost.json",
        timing="results/{cohort}/inpainting/{inpainting}/repeat-{repeat}/{part}/timing.json",
    log:
        "logs/{cohort}/inpainting/{inpainting}/repeat-{repeat}/{part}.log",
    benchmark:
        "results/{cohort}/benchmarks/train_generator/{inpainting}.{repeat}.{part}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        gpu=gpus(1),
        mem_mb=growing(8000),
        runtime=growing(240),
    params:
        given=named(
            code=lambda wc: code_of(
                "scripts/train_generator.py",
                PLAN.inpaintings[wc.inpainting].inpainter.train,
            ),
            entry=lambda wc: PLAN.inpaintings[wc.inpainting].inpainter.train,
            settings_class=lambda wc: class_path(
                PLAN.inpaintings[wc.inpainting].inpainter.settings
            ),
            settings=lambda wc: PLAN.inpaintings[wc.inpainting].settings,
            graph=lambda wc: asdict(PLAN.inpaintings[wc.inpainting].graph.settings),
            correlations=lambda wc: PLAN.inpaintings[
                wc.inpainting
            ].graph.features.settings.correlations,
            protocol=lambda wc: PLAN.inpaintings[wc.inpainting].graph.protocol,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
            threads=PROJECT.threads,
        ),
    message:
        "Training generator {wildcards.inpainting}, repeat {wildcards.repeat}, {wildcards.part} ({wildcards.cohort})"
    script:
        "../scripts/train_generator.py"


rule fuse_graph:
    input:
        split=lambda wc: split_file(wc, inpainting_of(wc).graph.split),
        participants="results/{cohort}/cohort/participants.parquet",
        features=lambda wc: part_of_features(wc, inpainting_of(wc).graph.features),
        graph=lambda wc: part_of_graph(wc, inpainting_of(wc).graph),
        generator=lambda wc: f"results/{wc.cohort}/inpainting/{inpainting_of(wc).name}/repeat-{wc.repeat}/{wc.part}/generator.safetensors",
    output:
        fused="results/{cohort}/fused/{fused}/repeat-{repeat}/{part}.safetensors",
        timing="results/{cohort}/fused/{fused}/repeat-{repeat}/{part}-timing.json",
    log:
        "logs/{cohort}/fused/{fused}/repeat-{repeat}/{part}.log",
    benchmark:
        "results/{cohort}/benchmarks/fuse_graph/{fused}.{repeat}.{part}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        gpu=gpus(1),
        mem_mb=growing(6000),
        runtime=growing(60),
    params:
        given=named(
            code=lambda wc: code_of(
                "scripts/fuse_graph.py", inpainting_of(wc).inpainter.load
            ),
            entry=lambda wc: inpainting_of(wc).inpainter.load,
            settings_class=lambda wc: class_path(inpainting_of(wc).inpainter.settings),
            inpainting=lambda wc: inpainting_of(wc).settings,
            settings=lambda wc: asdict(PLAN.fused[wc.fused].settings),
            max_generated=lambda wc: inpainting_of(wc).max_generated,
            random_institutions=lambda wc: PLAN.splits[
                PLAN.fused[wc.fused].split
            ].draws_institutions,
            graph=lambda wc: asdict(inpainting_of(wc).graph.settings),
            correlations=lambda wc: inpainting_of(
                wc
            ).graph.features.settings.correlations,
            protocol=lambda wc: inpainting_of(wc).graph.protocol,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
            threads=PROJECT.threads,
        ),
    message:
        "Fusing graph {wildcards.fused}, repeat {wildcards.repeat}, {wildcards.part} ({wildcards.cohort})"
    script:
        "../scripts/fuse_graph.py"


rule score_fidelity:
    input:
        split=lambda wc: split_file(wc, inpainting_of(wc).graph.split),
        participants="results/{cohort}/cohort/participants.parquet",
        features=lambda wc: feature_file(wc, inpainting_of(wc).graph.features, 0),
        graph=lambda wc: graph_files(wc, inpainting_of(wc).graph)[0],
        fused=lambda wc: fused_files(wc, PLAN.fused[wc.fused])[0],
    output:
        fidelity="results/{cohort}/fidelity/{fused}/repeat-{repeat}.json",
    log:
        "logs/{cohort}/score_fidelity/{fused}.{repeat}.log",
    benchmark:
        "results/{cohort}/benchmarks/score_fidelity/{fused}.{repeat}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: 1
    resources:
        mem_mb=growing(4000),
        runtime=growing(60),
    params:
        given=named(
            code=code_of("scripts/score_fidelity.py"),
            graph=lambda wc: asdict(inpainting_of(wc).graph.settings),
            correlations=lambda wc: inpainting_of(
                wc
            ).graph.features.settings.correlations,
            protocol=lambda wc: inpainting_of(wc).graph.protocol,
            part=lambda wc: "fold-0" if PLAN.fused[wc.fused].by_fold else "all",
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
        ),
    message:
        "Comparing {wildcards.fused} with true neighbours, repeat {wildcards.repeat} ({wildcards.cohort})"
    script:
        "../scripts/score_fidelity.py"
