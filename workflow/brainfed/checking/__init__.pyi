from ._finding import as_text
from ._project import check_project

__all__ = ["as_text", "check_project"]
