from ._study_settings import (
    JOIN, COORDINATE, REQUIRE_FLOWER, SITE_JOB, STUDY_FILE, STUDY_KEPT, RELEASED, StudySettings,
)
from ._validation import validate, mistakes, type_hints, nearest
from ._project import (
    defaults_of, ExperimentSettings, ProjectSettings, QUICK, TABLE_ENDINGS, check_names, known, check_name,
)
from ._loading import refuse_rewritten, targets_of, reports_of, load_plan, extended, extends, read_config
from ._counterparts import counterparts_of
from ._outline import (
    ledger_variants, experiments_with, clustered_variants, local_counterparts, PAPER_FIGURES, drawn_graphs,
    scope_inputs, cuts, explained_variants, truth_file, shown_variant, figure_outline, groups_drawn_as, report_outline,
    outline_files, report_files,
)

__all__ = [
    "JOIN", "COORDINATE", "REQUIRE_FLOWER", "SITE_JOB", "STUDY_FILE", "STUDY_KEPT", "RELEASED", "StudySettings",
    "validate", "mistakes", "type_hints", "nearest",
    "defaults_of", "ExperimentSettings", "ProjectSettings", "QUICK", "TABLE_ENDINGS", "check_names", "known",
    "check_name",
    "refuse_rewritten", "targets_of", "reports_of", "load_plan", "extended", "extends", "read_config",
    "counterparts_of",
    "ledger_variants", "experiments_with", "clustered_variants", "local_counterparts", "PAPER_FIGURES", "drawn_graphs",
    "scope_inputs", "cuts", "explained_variants", "truth_file", "shown_variant", "figure_outline", "groups_drawn_as",
    "report_outline", "outline_files", "report_files",
]
