"""Models to use on new patients, each with a card."""


rule write_card:
    input:
        model=training_of("model.safetensors"),
        predictions=training_of("predictions.parquet"),
        split=lambda wc: split_file(wc.cohort, model_of(wc).split, REPEAT),
        participants=participants_file("{cohort}", ["site", "age", "sex", "diagnosis"]),
    output:
        model=model_file("{cohort}", "{variant}", "model.safetensors"),
        card=model_file("{cohort}", "{variant}", "card.md"),
    log:
        "logs/{cohort}/write_card/{variant}.log",
    benchmark:
        "results/{cohort}/benchmarks/write_card/{variant}.tsv"
    wildcard_constraints:
        variant=either(PROJECT.models),
    conda:
        "../envs/brainfed.yaml"
    resources:
        **job_needs(mem_mb=2000, runtime=10),
    params:
        given=named(
            code=code_of("scripts/write_card.py"),
            project=PROJECT.project,
        ),
    message:
        "Writing the card of {wildcards.variant} ({wildcards.cohort})"
    script:
        "../scripts/write_card.py"


rule models:
    input:
        cards=some(
            "models",
            [model_file(model.cohort, model.variant.name, "card.md") for model in PLAN.models],
            "expected variants whose models are kept, found none; name some under `models`.",
        ),
