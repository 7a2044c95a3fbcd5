from ._job import job
from ._joint import site_code, joint_job
from ._training import train_method, inpainting_samples

__all__ = ["job", "site_code", "joint_job", "train_method", "inpainting_samples"]
