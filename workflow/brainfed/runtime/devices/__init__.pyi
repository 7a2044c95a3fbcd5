from ._driver import (
    JOBS_PER_GPU, missing_gpu, unusable_gpu, jobs_per_gpu, announce, gpus, UnusableGpuError, using_cuda,
    peak_gpu_memory,
)
from ._lease import Lease, lease

__all__ = [
    "JOBS_PER_GPU", "missing_gpu", "unusable_gpu", "jobs_per_gpu", "announce", "gpus", "UnusableGpuError", "using_cuda",
    "peak_gpu_memory",
    "Lease", "lease",
]
