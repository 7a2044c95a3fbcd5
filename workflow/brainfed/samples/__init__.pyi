from ._labelled_subjects import HIDDEN, hidden_labels, LabelledSubjects, of_two_classes, require_training_subjects
from ._reading import rows_of, read_features, Phenotypes, read_people, phenotypes_of
from ._inputs import (
    Arrays, View, FittedModel, Scored, Score, score_at, with_alike_shared, UNTESTED, MethodInputs, Outcome,
    with_generated, without_generated,
)
from ._series import (
    window, training_offset, test_offsets, wrapped, SeriesInputs, PublicSeriesInputs, GraphSamples, read_graph_samples,
    GraphInputs,
)
from ._assemble import assemble, assemble_graphs, assemble_series
from ._inner_folds import INNER_FOLDS, duplicate_groups, inner_folds, institution_folds, first_view, choose_cost
from ._inpainting import inpainting_inputs, read_cut
from ._results import check, predictions_table, members_table, history_table, named_patterns
from ._scaling import centred_subjects, training_moments, Scaling, fit_scaling, scaled

__all__ = [
    "HIDDEN", "hidden_labels", "LabelledSubjects", "of_two_classes", "require_training_subjects",
    "rows_of", "read_features", "Phenotypes", "read_people", "phenotypes_of",
    "Arrays", "View", "FittedModel", "Scored", "Score", "score_at", "with_alike_shared", "UNTESTED", "MethodInputs",
    "Outcome", "with_generated", "without_generated",
    "window", "training_offset", "test_offsets", "wrapped", "SeriesInputs", "PublicSeriesInputs", "GraphSamples",
    "read_graph_samples", "GraphInputs",
    "assemble", "assemble_graphs", "assemble_series",
    "INNER_FOLDS", "duplicate_groups", "inner_folds", "institution_folds", "first_view", "choose_cost",
    "inpainting_inputs", "read_cut",
    "check", "predictions_table", "members_table", "history_table", "named_patterns",
    "centred_subjects", "training_moments", "Scaling", "fit_scaling", "scaled",
]
