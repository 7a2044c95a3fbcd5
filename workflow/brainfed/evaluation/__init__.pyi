from ._metrics import read_predictions, class_names, class_scores, predicted, against_rest, METRICS, auc, sd_of_chance
from ._audit import LIRA, LOSS, OTHERS, PUBLIC, audit_experiment
from ._scores import (
    metrics_of, confusion_table, INSTITUTION, POOLED, score_runs, summarise, institutions_unseen, LAST, PAPER_SCORING,
    EXACT, score_institutions,
)
from ._statistics import (
    holm, CONFIDENCE, CorrectedTest, corrected_t_test, compare, paired_difference, RecoveredShare, recovered_share,
)
from ._experiment import score_experiment, compare_with_reference, test_train_ratio, ratio_of_splits
from ._patterns import (
    read_patterns, planted_connections, STRONGEST_COLUMNS, PLANTED_COLUMNS, strongest_table, planted_table, no_rows,
    IMPORTANCE_COLUMNS, read_parts, view_importance,
)
from ._pooled import calibration_curve, brier_scores, MeanRoc, mean_roc, sensitivities, subgroup_scores
from ._site_trace import FEWEST, site_trace

__all__ = [
    "read_predictions", "class_names", "class_scores", "predicted", "against_rest", "METRICS", "auc", "sd_of_chance",
    "LIRA", "LOSS", "OTHERS", "PUBLIC", "audit_experiment",
    "metrics_of", "confusion_table", "INSTITUTION", "POOLED", "score_runs", "summarise", "institutions_unseen", "LAST",
    "PAPER_SCORING", "EXACT", "score_institutions",
    "holm", "CONFIDENCE", "CorrectedTest", "corrected_t_test", "compare", "paired_difference", "RecoveredShare",
    "recovered_share",
    "score_experiment", "compare_with_reference", "test_train_ratio", "ratio_of_splits",
    "read_patterns", "planted_connections", "STRONGEST_COLUMNS", "PLANTED_COLUMNS", "strongest_table", "planted_table",
    "no_rows", "IMPORTANCE_COLUMNS", "read_parts", "view_importance",
    "calibration_curve", "brier_scores", "MeanRoc", "mean_roc", "sensitivities", "subgroup_scores",
    "FEWEST", "site_trace",
]
