from ._driver import announce, gpus
from ._lease import JOBS_PER_GPU, jobs_per_gpu, Lease, lease, missing_gpu, unusable_gpu
from ._cuda import UnusableGpuError, using_cuda, peak_gpu_memory

__all__ = [
    "announce", "gpus",
    "JOBS_PER_GPU", "jobs_per_gpu", "Lease", "lease", "missing_gpu", "unusable_gpu",
    "UnusableGpuError", "using_cuda", "peak_gpu_memory",
]
