from ._design import RidgeTask
from ._training import train_ridge

__all__ = ["RidgeTask", "train_ridge"]
