from ._inclusion import (
    EXPECTED, RULES, active_rules, exclusion_kind, join_quality, include, reason_to_leave, quality_without_scan,
    coverage_without_scan, QUALITY_MEASURES, measure_scans, with_motion, crossings_of_likeness, crossings_of_inclusion,
    included_subjects,
)
from ._issues import (
    GroupDifference, group_difference, against_rest, SiteDifferences, site_differences, ClassesBySite, classes_by_site,
    SILENT, UNMEASURED, UNUSABLE, list_issues, reason_kind,
)

__all__ = [
    "EXPECTED", "RULES", "active_rules", "exclusion_kind", "join_quality", "include", "reason_to_leave",
    "quality_without_scan", "coverage_without_scan", "QUALITY_MEASURES", "measure_scans", "with_motion",
    "crossings_of_likeness", "crossings_of_inclusion", "included_subjects",
    "GroupDifference", "group_difference", "against_rest", "SiteDifferences", "site_differences", "ClassesBySite",
    "classes_by_site", "SILENT", "UNMEASURED", "UNUSABLE", "list_issues", "reason_kind",
]
