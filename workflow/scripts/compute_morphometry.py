"""Write the FreeSurfer measures of every subject that has them as features."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.runtime import read_arrays, write_arrays

    measured = read_arrays(snakemake.input.measures, ["measures"])
    write_arrays(
        snakemake.output.features,
        {"features": measured.arrays["measures"]},
        {**measured.metadata, "settings": running.params.settings, "crossings": []},
    )
