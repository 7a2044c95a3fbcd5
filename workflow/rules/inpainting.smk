"""Generators of missing neighbours, and the graphs that they complete.

Neither is given a diagnosis. What they are made of may have been chosen with one: under RFE the features, or the columns
that compare subjects, come from the training labels of the fold.
"""


rule train_generator:
    input:
        unpack(stage_inputs("inpainting")),
    output:
        generator=stage_pattern("inpainting"),
        history=stage_pattern("inpainting", name="history.parquet"),
        cost=stage_pattern("inpainting", name="cost.json"),
        timing=stage_pattern("inpainting", name="timing.json"),
    log:
        "logs/{cohort}/inpainting/{inpainting}/repeat-{repeat}/{part}.log",
    benchmark:
        "results/{cohort}/benchmarks/train_generator/{inpainting}.{repeat}.{part}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        **job_needs(mem_mb=8000, runtime=240),
        gpu=gpus(1),
    params:
        given=named(
            code=lambda wc: code_of(
                "scripts/train_generator.py",
                stage_of(wc, "inpainting").maker.train,
                settings_class_of(stage_of(wc, "inpainting")),
            ),
            entry=lambda wc: stage_of(wc, "inpainting").maker.train,
            settings_class=lambda wc: settings_class_of(stage_of(wc, "inpainting")),
            settings=lambda wc: stage_of(wc, "inpainting").values,
            graph=lambda wc: stage_of(wc, "inpainting").parent("graph").values,
            correlations=correlations_of("inpainting"),
            protocol=lambda wc: stage_of(wc, "inpainting").protocol,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
            threads=PROJECT.threads,
            **joint(lambda wc: is_joint(stage_of(wc, "inpainting"))),
        ),
    message:
        "Training generator {wildcards.inpainting}, repeat {wildcards.repeat}, {wildcards.part} ({wildcards.cohort})"
    script:
        "../scripts/train_generator.py"


rule fuse_graph:
    input:
        unpack(stage_inputs("fused")),
    output:
        fused=stage_pattern("fused"),
        timing=timing_of(stage_pattern("fused")),
    log:
        "logs/{cohort}/fused/{fused}/repeat-{repeat}/{part}.log",
    benchmark:
        "results/{cohort}/benchmarks/fuse_graph/{fused}.{repeat}.{part}.tsv"
    conda:
        "../envs/brainfed.yaml"
    threads: PROJECT.threads
    resources:
        **job_needs(mem_mb=6000, runtime=60),
        gpu=gpus(1),
    params:
        given=named(
            code=lambda wc: code_of(
                "scripts/fuse_graph.py",
                fused_generator(wc).maker.load,
                settings_class_of(fused_generator(wc)),
            ),
            entry=lambda wc: fused_generator(wc).maker.load,
            settings_class=lambda wc: settings_class_of(fused_generator(wc)),
            inpainting=lambda wc: fused_generator(wc).values,
            settings=lambda wc: stage_of(wc, "fused").values,
            max_generated=lambda wc: max_generated(fused_generator(wc)),
            random_institutions=lambda wc: PLAN.splits[stage_of(wc, "fused").split].draws_institutions,
            graph=lambda wc: stage_of(wc, "fused").parent("graph").values,
            correlations=correlations_of("fused"),
            protocol=lambda wc: stage_of(wc, "fused").protocol,
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
            threads=PROJECT.threads,
            **joint(lambda wc: is_joint(stage_of(wc, "fused"))),
        ),
    message:
        "Fusing graph {wildcards.fused}, repeat {wildcards.repeat}, {wildcards.part} ({wildcards.cohort})"
    script:
        "../scripts/fuse_graph.py"


rule score_fidelity:
    input:
        unpack(lambda wc: LAYOUT.fidelity_inputs(stage_of(wc, "fused"), wc.cohort, wc.repeat)),
    output:
        fidelity="results/{cohort}/fidelity/{fused}/repeat-{repeat}.json",
    log:
        "logs/{cohort}/score_fidelity/{fused}.{repeat}.log",
    benchmark:
        "results/{cohort}/benchmarks/score_fidelity/{fused}.{repeat}.tsv"
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=4000, runtime=60),
    params:
        given=named(
            code=code_of("scripts/score_fidelity.py"),
            graph=lambda wc: stage_of(wc, "fused").parent("graph").values,
            correlations=correlations_of("fused"),
            protocol=lambda wc: stage_of(wc, "fused").protocol,
            part=lambda wc: "fold-0" if stage_of(wc, "fused").by_fold else "all",
            seed=PROJECT.seed,
            repeat=lambda wc: int(wc.repeat),
        ),
    message:
        "Comparing {wildcards.fused} with true neighbours, repeat {wildcards.repeat} ({wildcards.cohort})"
    script:
        "../scripts/score_fidelity.py"
