from ._job import job
from ._joint import joint_job
from ._training import train_method

__all__ = ["job", "joint_job", "train_method"]
