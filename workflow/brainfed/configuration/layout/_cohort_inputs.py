"""Inputs and parameters of the rules that read scans, series, phenotypes and kept models."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from brainfed.cohort.phenotype import values_of
from brainfed.cohort.settings import CohortSettings, SplitSettings
from brainfed.cohort.sources import (
    KNOWN_ATLASES,
    BidsRun,
    Listing,
    by_name,
    codes_held,
    further_identities,
    further_measures,
    further_source,
    graph_files,
    measure_files,
    raw_folder,
)
from brainfed.configuration.layout._layout import cohort_file, graphs_file
from brainfed.configuration.planning import Variant


@dataclass(frozen=True)
class CohortInputs:
    """One cohort for the rules, with its settings in the config and its listed subjects; parameters are builtins."""

    name: str
    settings: CohortSettings
    listing: Listing

    def shard_files(self, suffix: str) -> list[str]:
        """The time series artefacts of all shards, or the artefact of its FreeSurfer measures, or of its graphs."""
        if self.settings.kind == "graphs":
            return [graphs_file(self.name).removesuffix(".safetensors") + suffix]
        if self.settings.kind == "morphometry":
            return [f"results/{self.name}/morphometry/measures{suffix}"]
        return [self.shard_file(shard, suffix) for shard in self.listing.shards]

    def shard_file(self, shard: str, suffix: str) -> str:
        """A time series artefact of one shard."""
        return f"results/{self.name}/timeseries/{self.listing.atlas}/{shard}{suffix}"

    def series_files(self) -> list[str]:
        """The region series; a cohort of FreeSurfer measures, or of graphs, has none."""
        return self.shard_files(".safetensors") if self.settings.kind == "connectivity" else []

    def settings_of(self, *names: str) -> dict[str, Any]:
        """The part of the settings that a rule uses."""
        settings = asdict(self.settings)
        return {name: settings[name] for name in names}

    def images(self, shard: str) -> list[str | None]:
        """The image, or the series file, of every subject of a shard."""
        return [subject.series for subject in self.listing.members(shard)]

    def confounds(self, shard: str) -> list[str]:
        """The confound tables of the subjects of a shard that have one."""
        return [subject.confounds for subject in self.listing.members(shard) if subject.confounds]

    def ingested(self, columns: Sequence[str]) -> dict[str, Any]:
        """What the participants with these columns are made of: nothing else of a phenotype table has an effect.

        The table of a simulated cohort is not there yet: a job reads it.
        """
        if self.settings.source == "simulate":
            return {"settings": self.settings_of("source", "target"), "columns": list(columns)}
        people = [(listed.subject, listed.person, listed.absence) for listed in self.listing.subjects if listed.person]
        return {"values": values_of(people, columns), "confounds": self._motion_tables(columns)}

    def simulated_table(self) -> str | list[str]:
        """The phenotype table of a simulated cohort."""
        return self.listing.tables[0] if self.settings.source == "simulate" else []

    def motion_tables(self, columns: Sequence[str]) -> list[str]:
        """The tables with motion estimates that participants with these columns are made of."""
        return [table for tables in self._motion_tables(columns).values() for table in tables]

    def shard_subjects(self, shard: str) -> list[list[Any]]:
        """Subject, series file, confound file (or none) and site's TR (or none) of a shard, in order."""
        members, tr = self.listing.members(shard), self.settings.tr
        return [[listed.subject, listed.series, listed.confounds, tr.get(listed.site)] for listed in members]

    def shard_runs(self, shard: str) -> list[list[Any]]:
        """Subject, its runs and its site's TR (or none) of a shard of BIDS images, in order."""
        members, tr = self.listing.members(shard), self.settings.tr
        return [[listed.subject, [*map(asdict, listed.runs)], tr.get(listed.site)] for listed in members]

    def run_files(self, shard: str, name: str) -> list[str]:
        """One kind of file of all runs of a shard."""
        return [file for run in self._runs(shard) if (file := getattr(run, name))]

    def sidecars(self, shard: str) -> list[str]:
        """The json sidecars of the images of a shard, each once."""
        return list(dict.fromkeys(sidecar for run in self._runs(shard) for sidecar in run.sidecars))

    def extraction_settings(self) -> dict[str, Any]:
        """The settings that decide the series of BIDS images."""
        settings = self.settings_of("atlas", "extraction", "bids", "min_timepoints", "on_invalid")
        return settings | {"bids": {name: settings["bids"][name] for name in ("runs", "confounds")}}

    def subjects_not_in_the_table(self) -> list[str]:
        """The subjects of a BIDS derivative that are not in the phenotype table."""
        return list(self.listing.unlisted) if self.settings.source == "bids" else []

    def averages_runs(self) -> bool:
        """Whether a subject's connectivity is the mean over its runs."""
        return self.settings.source == "bids" and self.settings.bids.runs == "average"

    def images_of_runs(self) -> dict[str, list[str]]:
        """Subject -> the images of its runs, for subjects with a series."""
        with_series = (listed for listed in self.listing.subjects if listed.has_series)
        return {listed.subject: [run.image for run in listed.runs] for listed in with_series}

    def inclusion_settings(self) -> dict[str, Any]:
        """The settings that decide who is included."""
        settings = self.settings_of("source", "constant_regions", "exclude", "target", "unlabelled")
        return settings | (self.settings_of("classes") if self.settings.kind == "graphs" else {})

    def stats_files(self) -> list[str]:
        """FreeSurfer's outputs: tables, or the existing stats files of every subject."""
        source = further_source(self.name, self.settings)
        return measure_files(source, [identity for _, identity in self.measured_subjects()])

    def measured_subjects(self) -> list[list[str]]:
        """Subject and its FreeSurfer id, for all subjects with one, in order."""
        if further_measures(self.settings):
            identities = further_identities(self.name, self.listing.subjects, self.settings)
        else:
            identities = {listed.subject: str(listed.series) for listed in self.listing.subjects if listed.has_series}
        return [[subject, identity] for subject, identity in identities.items()]

    def measure_settings(self) -> dict[str, Any]:
        """The settings that decide FreeSurfer's measures; a subject with a scan may lack them."""
        settings = self.settings_of("freesurfer", "columns", "missing", "on_invalid", "target")
        source = further_source(self.name, self.settings)
        if not self.settings.simulates_thickness:
            identities = [identity for _, identity in self.measured_subjects()]
            settings["missing"] = codes_held(source, identities, self.settings.missing)
        if not further_measures(self.settings):
            return settings
        return settings | {"freesurfer": asdict(source), "on_invalid": "drop"}

    def further_quality(self) -> list[str]:
        """The quality table of FreeSurfer's measures beside scans."""
        quality = f"results/{self.name}/morphometry/measures-quality.parquet"
        return [quality] if further_measures(self.settings) else []

    def graph_files(self) -> list[str]:
        """The text files of all data sets of graphs."""
        return graph_files(self.settings.tudataset)

    def graph_folders(self) -> dict[str, str]:
        """Data set of graphs -> folder of its files."""
        return {name: str(raw_folder(self.settings.tudataset, name)) for name in self.settings.tudataset.names}

    def graphs_of_data_sets(self) -> dict[str, list[str]]:
        """Data set of graphs -> ids of its graphs."""
        graphs: dict[str, list[str]] = {name: [] for name in self.settings.tudataset.names}
        for listed in self.listing.subjects:
            graphs[listed.site].append(listed.subject)
        return graphs

    def atlas_file(self, kind: Literal["parcellation", "labels"]) -> str | list[str]:
        """The parcellation or its region table, if the regions are those of the parcellation."""
        fits = self.listing.labels or self.settings.source != "timeseries"
        return (getattr(self.listing, kind) if self.listing.parcellation and fits else None) or []

    def simulation(self, shard: str | None = None) -> dict[str, Any]:
        """Settings of a simulation. For a shard the number of subjects ends with its last one: one more subject in
        another shard changes nothing in it; thickness is in no scan.
        """
        settings = self.settings_of("source", "simulate")
        if shard is not None or not self.settings.simulates_thickness:
            scans = {key: value for key, value in settings["simulate"].items() if not key.startswith("thickness")}
            settings["simulate"] = scans
        if shard is not None:
            numbers = [int(subject.subject.removeprefix("sub-")) for subject in self.listing.members(shard)]
            settings["simulate"]["subjects"] = max(numbers)
        return settings

    def simulated_atlas(self) -> dict[str, Any]:
        """The settings that decide the parcellation; subjects do not."""
        settings = asdict(self.settings.simulate)
        return {name: settings[name] for name in ("seed", "regions", "grid", "voxel_size")}

    def inclusion_measures(self) -> str:
        """The measures that decide who is included: those of scans alone, or with the motion of the table."""
        named = "quality" if self.settings.exclude.mean_fd is not None else "scans"
        return cohort_file(self.name, f"{named}.parquet")

    def _motion_tables(self, columns: Sequence[str]) -> dict[str, list[str]]:
        """Subject -> the tables with its motion, which the phenotype table lacks."""
        people = ((listed.subject, listed.person) for listed in self.listing.subjects)
        known = {subject for subject, person in people if person and not math.isnan(person.mean_fd)}
        tables = self.listing.motion_tables if "mean_fd" in columns else {}
        return {subject: files for subject, files in tables.items() if subject not in known}

    def _runs(self, shard: str) -> list[BidsRun]:
        return [run for listed in self.listing.members(shard) for run in listed.runs]


def cohorts_from(cohorts: Mapping[str, CohortSettings], *sources: str) -> list[str]:
    """The cohorts with these sources."""
    return [name for name, cohort in cohorts.items() if cohort.source in sources]


def cohorts_yielding(cohorts: Mapping[str, CohortSettings], kind: str) -> list[str]:
    """The cohorts with this kind of features, alone or beside another."""
    return [name for name, cohort in cohorts.items() if kind in cohort.kinds]


def exported_folders(cohorts: Mapping[str, CohortSettings], asked: bool = False) -> list[str]:
    """Folders of cohorts of BIDS images that are written as BIDS files: all, or those with the key in the config."""
    return [
        f"results/{name}/bids"
        for name, cohort in cohorts.items()
        if cohort.source == "bids" and (cohort.bids.export or not asked)
    ]


def data_sets_to_fetch(cohorts: Mapping[str, CohortSettings]) -> dict[str, list[str]]:
    """Folder -> names of the data sets of graphs that the cohorts read."""
    names: dict[str, dict[str, None]] = {}
    for cohort in cohorts.values():
        if cohort.source == "tudataset":
            names.setdefault(cohort.tudataset.folder, {}).update(dict.fromkeys(cohort.tudataset.names))
    return {folder: list(of_folder) for folder, of_folder in names.items()}


def atlases_to_fetch(cohorts: Mapping[str, CohortSettings]) -> list[str]:
    """The known atlases in the settings of the cohorts; all atlases if there is none."""
    named = {cohort.atlas for cohort in cohorts.values() if by_name(cohort)}
    return sorted(named) or list(KNOWN_ATLASES)


KEEP = "brainfed.prediction.model_file:keep"
"""Named as a string, so that an edit of predictions trains no method again whose models nobody keeps."""


def kept_parameters(variant: Variant, cohort: CohortInputs, split: SplitSettings) -> dict[str, Any]:
    """The entry points of the job, and the description of the model: builtins."""
    return {
        "keep": KEEP,
        "score": variant.method.capabilities.model,
        "about": {
            "variant": variant.name,
            "method": variant.method.name,
            "title": variant.method.title,
            "settings": variant.settings,
            "cohort": cohort.name,
            "drawn": "sites" if split.validation == "leave_one_site_out" else split.institutions,
            "target": cohort.settings.target,
            "class_names": list(cohort.settings.class_names),
            "features": variant.stages["features"].values,
            "series": {
                **cohort.settings_of(
                    *("source", "atlas", "header", "transposed", "variable"),
                    *("min_timepoints", "constant_regions", "extraction"),
                ),
                "by_run": cohort.averages_runs(),
            },
        },
    }
