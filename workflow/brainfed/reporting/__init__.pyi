from ._variants import Groups, setting_in_words, PLACES, ShownVariant, read_variant, changed_settings, by_family, places
from ._outline import ExperimentOutline, CohortOutline, read_outline, read_experiment, read_cohort, used, site_table
from ._pictures import Picture, read_pictures
from ._citations import Citation, mixed_versions
from ._colours import (
    INK, FAINT, RULE, PATIENT, UNLABELLED, SEX_COLOURS, WARM, COLD, ACCENT, ODD, KEPT, COUNTS, REAL, GENERATED, SERIES,
    ORDERED, GRAPHS, class_colours,
)
from ._contrasts import (
    GroupEffects, GroupConnectivity, compare_groups, group_effects, labelled_subjects, joined, networks,
)
from ._papers import Cited, Paper
from ._rounding import (
    METRIC_TITLES, SHOWN_METRICS, SIGNIFICANT, NONE, rounded, significant_digits, signed, short, counted, p_short,
    p_value,
)
from ._document import write_report, environment, chart_styles, vega
from ._scored import FEWEST, Interval, interval, best, Scored, read_scored, read_splits, significant, PageTests

__all__ = [
    "Groups", "setting_in_words", "PLACES", "ShownVariant", "read_variant", "changed_settings", "by_family", "places",
    "ExperimentOutline", "CohortOutline", "read_outline", "read_experiment", "read_cohort", "used", "site_table",
    "Picture", "read_pictures",
    "Citation", "mixed_versions",
    "INK", "FAINT", "RULE", "PATIENT", "UNLABELLED", "SEX_COLOURS", "WARM", "COLD", "ACCENT", "ODD", "KEPT", "COUNTS",
    "REAL", "GENERATED", "SERIES", "ORDERED", "GRAPHS", "class_colours",
    "GroupEffects", "GroupConnectivity", "compare_groups", "group_effects", "labelled_subjects",
    "joined", "networks",
    "Cited", "Paper",
    "METRIC_TITLES", "SHOWN_METRICS", "SIGNIFICANT", "NONE", "rounded", "significant_digits", "signed", "short",
    "counted", "p_short", "p_value",
    "write_report", "environment", "chart_styles", "vega",
    "FEWEST", "Interval", "interval", "best", "Scored", "read_scored", "read_splits", "significant", "PageTests",
]
