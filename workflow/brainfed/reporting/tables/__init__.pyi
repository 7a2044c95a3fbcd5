from ._confounds import (
    ShownGraph, read_graph, distinct_titles, homophily_table, site_trace_table, SiteRow, site_rows, find_confounds,
    confound_sentences,
)
from ._exchanges import (
    Crossing, Cost, read_exchanges, with_totals, read_crossings, crossings_of, read_costs, readable,
    readable_bytes, readable_seconds,
)
from ._follow import write_followed
from ._patterns import ShownPattern, read_strongest, planted_sentences, ViewRow, view_rows, shown_patterns, end_name
from ._scores import (
    SCOPE_TITLES, Cell, score_cell, Row, ScoreTable, DifferenceTable, without_effect, score_rows, undefined_count,
    difference_table, CounterpartRow, counterpart_rows, missing_counterparts, counterpart_notes,
)
from ._robustness import (
    Drop, read_drops, drop_table, poison_finding, ATTACK_TITLES, AuditTable, Leak, read_audit, read_leaks,
    spent,
)
from ._subjects import Characteristic, characteristics, Ways, read_ways, Count, FlowStep, flow_steps

__all__ = [
    "ShownGraph", "read_graph", "distinct_titles", "homophily_table", "site_trace_table", "SiteRow", "site_rows",
    "find_confounds", "confound_sentences",
    "Crossing", "Cost", "read_exchanges", "with_totals", "read_crossings", "crossings_of", "read_costs",
    "readable", "readable_bytes", "readable_seconds",
    "write_followed",
    "ShownPattern", "read_strongest", "planted_sentences", "ViewRow", "view_rows", "shown_patterns", "end_name",
    "SCOPE_TITLES", "Cell", "score_cell", "Row", "ScoreTable", "DifferenceTable", "without_effect", "score_rows",
    "undefined_count", "difference_table", "CounterpartRow", "counterpart_rows", "missing_counterparts",
    "counterpart_notes",
    "Drop", "read_drops", "drop_table", "poison_finding", "ATTACK_TITLES", "AuditTable", "Leak",
    "read_audit", "read_leaks", "spent",
    "Characteristic", "characteristics", "Ways", "read_ways", "Count", "FlowStep", "flow_steps",
]
