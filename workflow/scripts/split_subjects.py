"""Draw the institutions and folds of one repeat."""

from brainfed.scripting import job

with job(snakemake) as running:
    from brainfed.cohort.settings import SplitSettings
    from brainfed.cohort.splits import require_agreement, require_own, split
    from brainfed.runtime import Streams, read_table, write_table

    included = read_table(snakemake.input.included, ["subject", "included", "twin_group", "reason"])
    participants = read_table(snakemake.input.participants, ["subject", "site", "diagnosis"])
    if running.params.site:
        taken = participants["subject"].isin(included.loc[included["included"], "subject"])
        require_own(sorted(participants.loc[taken, "site"].unique()), running.params.site)
    if running.params.agree:
        used = included[included["included"]].merge(participants, on="subject")
        labels = used["diagnosis"].astype("object").where(used["diagnosis"].notna(), None)
        require_agreement(zip(used["subject"], used["twin_group"], labels, strict=True), running.params.target)
    drawn = split(
        included,
        participants,
        SplitSettings(**running.params.settings),
        Streams(running.params.seed, running.params.repeat),
        running.params.target,
        running.params.classes,
        running.params.sites,
    )
    write_table(snakemake.output.split, drawn)
