"""What the settings of a cohort and its listing say to the rules that read scans, series and phenotypes."""


def cohorts_from(*sources):
    """A wildcard pattern for the cohorts of these sources; one that matches nothing where there are none."""
    names = [
        name for name, cohort in PROJECT.cohorts.items() if cohort.source in sources
    ]
    return either(names) if names else "no-such-cohort"


def cohort_of(wildcards):
    return PROJECT.cohorts[wildcards.cohort]


def shard_files(wildcards, suffix):
    """The time series artefacts of all shards of a cohort."""
    listing = LISTINGS[wildcards.cohort]
    return [
        f"results/{wildcards.cohort}/timeseries/{listing.atlas}/{shard}{suffix}"
        for shard in listing.shards
    ]


def settings_of(wildcards, *names):
    """The part of a cohort's settings that a rule uses."""
    settings = asdict(cohort_of(wildcards))
    return {name: settings[name] for name in names}


def shard_subjects(wildcards):
    """Subject, series file, confound file (or none) and site's TR (or none) of a shard, in order."""
    tr = cohort_of(wildcards).tr
    return [
        [subject.subject, subject.series, subject.confounds, tr.get(subject.site)]
        for subject in LISTINGS[wildcards.cohort].members(wildcards.shard)
    ]


def phenotype_settings_of(wildcards):
    """What decides how a phenotype table is read; a simulated one has columns and codes of its own."""
    if cohort_of(wildcards).source == "simulate":
        return settings_of(wildcards, "source")
    return settings_of(wildcards, "source", "columns", "codes", "missing")


def simulation_of(cohort, shard=None):
    """Settings of a simulation. For a shard the number of subjects is that of its own last one: one more
    subject elsewhere changes nothing in it."""
    settings = asdict(PROJECT.cohorts[cohort])
    if shard is not None:
        numbers = [
            int(subject.subject.removeprefix("sub-"))
            for subject in LISTINGS[cohort].members(shard)
        ]
        settings["simulate"]["subjects"] = max(numbers)
    return {name: settings[name] for name in ("source", "simulate")}


def simulated_atlas_of(cohort):
    """The settings that decide the parcellation: nobody in the cohort does."""
    settings = asdict(PROJECT.cohorts[cohort].simulate)
    return {name: settings[name] for name in ("seed", "regions", "grid", "voxel_size")}
