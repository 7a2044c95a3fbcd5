from ._connectivity import draw_connectivity
from ._graphs import draw_graphs
from ._patterns import draw_patterns
from ._scopes import read_scope_graphs, draw_scopes

__all__ = ["draw_connectivity", "draw_graphs", "draw_patterns", "read_scope_graphs", "draw_scopes"]
