"""Copy a kept model into a folder of its own, with a card."""

from brainfed.scripting import job

with job(snakemake) as running:
    from shutil import copyfile

    from brainfed.prediction import card
    from brainfed.prediction.model_file import read_model
    from brainfed.runtime import atomic, read_table, write_text
    from brainfed.samples import read_people

    files = snakemake.input
    people = read_people(files.split, files.participants)
    labelled = people[people["diagnosis"].notna()]
    text = card(read_model(files.model), read_table(files.predictions), labelled, running.params.project)
    with atomic(snakemake.output.model) as temporary:
        copyfile(files.model, temporary)
    write_text(snakemake.output.card, text)
