"""What the settings of a cohort and its listing say to the rules that read scans, series and phenotypes."""

from brainfed.cohort.sources.known_atlases import FOLDER, KNOWN_ATLASES, by_name


def atlases_to_fetch():
    """The known atlases that the cohorts name; all where none does."""
    named = {cohort.atlas for cohort in PROJECT.cohorts.values() if by_name(cohort)}
    return sorted(named) or list(KNOWN_ATLASES)


def cohorts_from(*sources):
    """A wildcard pattern for the cohorts of these sources; one that matches nothing where there are none."""
    names = [
        name for name, cohort in PROJECT.cohorts.items() if cohort.source in sources
    ]
    return either(names) if names else "no-such-cohort"


def cohorts_yielding(kind):
    """The same for the cohorts with this kind of features."""
    return cohorts_from(
        *{cohort.source for cohort in PROJECT.cohorts.values() if cohort.kind == kind}
    )


def cohort_of(wildcards):
    return PROJECT.cohorts[wildcards.cohort]


def shard_files(wildcards, suffix):
    """The time series artefacts of all shards of a cohort, or the one of its FreeSurfer measures."""
    listing = LISTINGS[wildcards.cohort]
    if cohort_of(wildcards).kind == "morphometry":
        return [f"results/{wildcards.cohort}/morphometry/measures{suffix}"]
    return [
        f"results/{wildcards.cohort}/timeseries/{listing.atlas}/{shard}{suffix}"
        for shard in listing.shards
    ]


def series_files(wildcards):
    """The region series of a cohort; a cohort of FreeSurfer measures has none."""
    if cohort_of(wildcards).kind == "morphometry":
        return []
    return shard_files(wildcards, ".safetensors")


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


def shard_runs(wildcards):
    """Subject, its runs and its site's TR (or none) of a shard of BIDS images, in order."""
    tr = cohort_of(wildcards).tr
    return [
        [subject.subject, [asdict(run) for run in subject.runs], tr.get(subject.site)]
        for subject in LISTINGS[wildcards.cohort].members(wildcards.shard)
    ]


def run_files(wildcards, name):
    """One kind of file of all runs of a shard."""
    files = [
        getattr(run, name)
        for subject in LISTINGS[wildcards.cohort].members(wildcards.shard)
        for run in subject.runs
    ]
    return [file for file in files if file]


def sidecars_of(wildcards):
    """The json files that hold for the images of a shard, each once."""
    sidecars = [
        sidecar
        for subject in LISTINGS[wildcards.cohort].members(wildcards.shard)
        for run in subject.runs
        for sidecar in run.sidecars
    ]
    return list(dict.fromkeys(sidecars))


def extraction_settings_of(wildcards):
    """What decides the series of BIDS images, beside their files."""
    settings = settings_of(
        wildcards, "atlas", "extraction", "bids", "min_timepoints", "on_invalid"
    )
    bids = {name: settings["bids"][name] for name in ("runs", "confounds")}
    return settings | {"bids": bids}


def subjects_not_in_the_table(wildcards):
    """The subjects of a BIDS derivative that the phenotype table does not name."""
    listing = LISTINGS[wildcards.cohort]
    return list(listing.unlisted) if cohort_of(wildcards).source == "bids" else []


def averages_runs(wildcards):
    """Whether a subject's connectivity is the mean over its runs."""
    cohort = cohort_of(wildcards)
    return cohort.source == "bids" and cohort.bids.runs == "average"


def images_of_runs(wildcards):
    """Subject -> the images of its runs, for those that have a series."""
    return {
        subject.subject: [run.image for run in subject.runs]
        for subject in LISTINGS[wildcards.cohort].subjects
        if subject.has_series
    }


def exported_folders(asked=False):
    """Where cohorts of BIDS images are written as BIDS files: all, or those whose config asks for it."""
    return [
        f"results/{name}/bids"
        for name, cohort in PROJECT.cohorts.items()
        if cohort.source == "bids" and (cohort.bids.export or not asked)
    ]


def phenotype_settings_of(wildcards):
    """What decides how a phenotype table is read; a simulated one has columns and codes of its own."""
    if cohort_of(wildcards).source == "simulate":
        return settings_of(wildcards, "source", "target")
    return settings_of(
        wildcards,
        "source",
        "rows",
        "columns",
        "codes",
        "missing",
        "target",
        "classes",
    )


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


def stats_files_of(wildcards):
    """What FreeSurfer wrote: tables, or those of the stats files that exist of every subject."""
    settings, listing = cohort_of(wildcards), LISTINGS[wildcards.cohort]
    return measure_files(
        settings.freesurfer, [s.series for s in listing.subjects if s.has_series]
    )


def measured_subjects(wildcards):
    """Subject and FreeSurfer's id of it, of everybody who has one, in order."""
    return [
        [subject.subject, subject.series]
        for subject in LISTINGS[wildcards.cohort].subjects
        if subject.has_series
    ]
