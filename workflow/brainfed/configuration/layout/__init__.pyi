from ._layout import (
    BETWEEN, cohort_file, participants_file, graphs_file, split_file, table_pattern, stage_pattern, beside, timing_of,
    covariance_pattern, model_file, method_file, result_files, lock_files, Layout,
)
from ._layout import is_joint, trains_jointly, joint_files, is_private, sets_added_up, all_predictions, own_files
from ._cohort_inputs import (
    CohortInputs, cohorts_from, cohorts_yielding, exported_folders, data_sets_to_fetch, atlases_to_fetch,
    kept_parameters,
)

__all__ = [
    "BETWEEN", "cohort_file", "participants_file", "graphs_file", "split_file", "table_pattern", "stage_pattern",
    "beside", "timing_of", "covariance_pattern", "model_file", "method_file", "result_files", "lock_files", "Layout",
    "is_joint", "trains_jointly", "joint_files", "is_private", "sets_added_up", "all_predictions", "own_files",
    "CohortInputs", "cohorts_from", "cohorts_yielding", "exported_folders", "data_sets_to_fetch", "atlases_to_fetch",
    "kept_parameters",
]
