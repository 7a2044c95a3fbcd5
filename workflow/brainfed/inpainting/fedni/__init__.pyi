from ._losses import carried

__all__ = ["carried"]
