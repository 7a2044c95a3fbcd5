from ._bids_tree import BidsRun
from ._files import (
    Absence, FOLDER, KNOWN_ATLASES, atlas_files, by_name, remedy_for, spelling, none_but, files_below, EXCLUDED,
    ListedSubject, Listing, shard_name, unlisted_files, missing_inputs,
)
from ._bids_listing import wanted_files
from ._freesurfer import (
    stats_names, stats_folder, measure_files, codes_held, further_measures, further_source, further_identities,
    unusable_measures,
)
from ._listing import (
    unusable_paths, simulated_subjects, raw_folder, graph_files, missing_graphs, list_graphs, list_cohort, named_series,
    list_subject, absent_files,
)
from ._simulated_subjects import simulate_subjects, write_thickness
from ._simulated_scans import write_scans, write_atlas, write_participants
from ._downloads import fetch_abide, fetch_atlases, fetch_data_sets

__all__ = [
    "BidsRun",
    "Absence", "FOLDER", "KNOWN_ATLASES", "atlas_files", "by_name", "remedy_for", "spelling", "none_but", "files_below",
    "EXCLUDED", "ListedSubject", "Listing", "shard_name", "unlisted_files", "missing_inputs",
    "wanted_files",
    "stats_names", "stats_folder", "measure_files", "codes_held", "further_measures", "further_source",
    "further_identities", "unusable_measures",
    "unusable_paths", "simulated_subjects", "raw_folder", "graph_files", "missing_graphs", "list_graphs", "list_cohort",
    "named_series", "list_subject", "absent_files",
    "simulate_subjects", "write_thickness",
    "write_scans", "write_atlas", "write_participants",
    "fetch_abide", "fetch_atlases", "fetch_data_sets",
]
